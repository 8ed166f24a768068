"""IncrementalAlterConfigs, key 44, versions 0-1.

Set, delete, append to or subtract from single configuration values (KIP-339).

* v1: flexible
"""

from ..api import Api
from ..schema import array, boolean, int8, int16, int32, nullable_string, string, struct

INCREMENTAL_ALTER_CONFIGS = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=range(2),
    flexible=1,
    request=struct(
        array(
            "resources",
            struct(
                int8("resource_type"),
                string("resource_name"),
                array(
                    "configs",
                    struct(string("name"), int8("config_operation"), nullable_string("value", default="")),
                ),
            ),
        ),
        boolean("validate_only"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "responses",
            struct(
                int16("error_code"),
                nullable_string("error_message", default=""),
                int8("resource_type"),
                string("resource_name"),
            ),
        ),
    ),
)
