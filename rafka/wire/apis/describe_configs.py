"""DescribeConfigs, key 32, versions 1-4.

How topics, brokers, loggers, groups and client metrics are configured (KIP-133).

* v1: where each value comes from, and what it stands in for (KIP-226)
* v3: the type of each value, and its documentation (KIP-569)
* v4: flexible
"""

from ..api import Api
from ..schema import (
    STRING,
    array,
    boolean,
    int8,
    int16,
    int32,
    nullable_array,
    nullable_string,
    string,
    struct,
)

DESCRIBE_CONFIGS = Api(
    key=32,
    name="DescribeConfigs",
    versions=range(1, 5),
    flexible=4,
    request=struct(
        array(
            "resources",
            struct(
                int8("resource_type"),
                string("resource_name"),
                nullable_array("configuration_keys", STRING, default=()),
            ),
        ),
        boolean("include_synonyms"),
        boolean("include_documentation", since=3),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "results",
            struct(
                int16("error_code"),
                nullable_string("error_message", default=""),
                int8("resource_type"),
                string("resource_name"),
                array(
                    "configs",
                    struct(
                        string("name"),
                        nullable_string("value", default=""),
                        boolean("read_only"),
                        int8("config_source", default=-1),
                        boolean("is_sensitive"),
                        array(
                            "synonyms",
                            struct(string("name"), nullable_string("value", default=""), int8("source")),
                        ),
                        int8("config_type", since=3),
                        nullable_string("documentation", since=3, default=""),
                    ),
                ),
            ),
        ),
    ),
)
