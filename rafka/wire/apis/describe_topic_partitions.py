"""DescribeTopicPartitions, key 75, version 0.

The partitions of topics, page by page: a cursor says where to go on (KIP-966).
"""

from ..api import Api
from ..schema import (
    INT32,
    array,
    boolean,
    int16,
    int32,
    nullable_array,
    nullable_nested,
    nullable_string,
    string,
    struct,
    uuid,
)

DESCRIBE_TOPIC_PARTITIONS = Api(
    key=75,
    name="DescribeTopicPartitions",
    versions=range(1),
    flexible=0,
    request=struct(
        array("topics", struct(string("name"))),
        int32("response_partition_limit", default=2000),
        nullable_nested("cursor", struct(string("topic_name"), int32("partition_index"))),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                int16("error_code"),
                nullable_string("name", default=""),
                uuid("topic_id"),
                boolean("is_internal"),
                array(
                    "partitions",
                    struct(
                        int16("error_code"),
                        int32("partition_index"),
                        int32("leader_id"),
                        int32("leader_epoch", default=-1),
                        array("replica_nodes", INT32),
                        array("isr_nodes", INT32),
                        nullable_array("eligible_leader_replicas", INT32),
                        nullable_array("last_known_elr", INT32),
                        array("offline_replicas", INT32),
                    ),
                ),
                int32("topic_authorized_operations", default=-2147483648),
            ),
        ),
        nullable_nested("next_cursor", struct(string("topic_name"), int32("partition_index"))),
    ),
)
