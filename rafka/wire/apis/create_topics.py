"""CreateTopics, key 19, versions 2-7.

Make topics, with a number of partitions or with replicas named one by one.

* v4: the broker's own number of partitions and replicas where -1 is given (KIP-464)
* v5: flexible; the answer tells the topic's configuration (KIP-525)
* v6: THROTTLING_QUOTA_EXCEEDED (KIP-599)
* v7: topic id in the answer (KIP-516)
"""

from ..api import Api
from ..schema import (
    INT32,
    array,
    boolean,
    int8,
    int16,
    int32,
    nullable_array,
    nullable_string,
    string,
    struct,
    uuid,
)

CREATE_TOPICS = Api(
    key=19,
    name="CreateTopics",
    versions=range(2, 8),
    flexible=5,
    request=struct(
        array(
            "topics",
            struct(
                string("name"),
                int32("num_partitions"),
                int16("replication_factor"),
                array("assignments", struct(int32("partition_index"), array("broker_ids", INT32))),
                array("configs", struct(string("name"), nullable_string("value", default=""))),
            ),
        ),
        int32("timeout_ms", default=60000),
        boolean("validate_only"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                string("name"),
                uuid("topic_id", since=7),
                int16("error_code"),
                nullable_string("error_message", default=""),
                int16("topic_config_error_code", since=5, tag=0),
                int32("num_partitions", since=5, default=-1),
                int16("replication_factor", since=5, default=-1),
                nullable_array(
                    "configs",
                    struct(
                        string("name"),
                        nullable_string("value", default=""),
                        boolean("read_only"),
                        int8("config_source", default=-1),
                        boolean("is_sensitive"),
                    ),
                    since=5,
                    default=(),
                ),
            ),
        ),
    ),
)
