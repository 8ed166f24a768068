"""Metadata, key 3, versions 0-13.

Which brokers there are, and which of them leads each partition.

In v0 an empty list of topics means all; from v1 on null does, and empty means none.

* v1: rack, controller, internal topics
* v2: cluster id
* v4: whether a topic may be made by being asked for
* v5: offline replicas (KIP-112)
* v7: leader epoch (KIP-320)
* v8: authorised operations (KIP-430)
* v9: flexible
* v10: topic ids (KIP-516)
* v11: authorised operations of the cluster have moved to DescribeCluster (KIP-700)
* v12: topics may be asked for by id
* v13: an error for the answer as a whole (KIP-1102)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int16, int32, nullable_string, string, struct, uuid

METADATA = Api(
    key=3,
    name="Metadata",
    versions=range(14),
    flexible=9,
    request=struct(
        array(
            "topics", struct(uuid("topic_id", since=10), string("name", nullable_since=10)), nullable_since=1
        ),
        boolean("allow_auto_topic_creation", since=4, default=True),
        boolean("include_cluster_authorized_operations", since=8, until=10),
        boolean("include_topic_authorized_operations", since=8),
    ),
    response=struct(
        int32("throttle_time_ms", since=3),
        array(
            "brokers",
            struct(int32("node_id"), string("host"), int32("port"), nullable_string("rack", since=1)),
        ),
        nullable_string("cluster_id", since=2),
        int32("controller_id", since=1, default=-1),
        array(
            "topics",
            struct(
                int16("error_code"),
                string("name", nullable_since=12),
                uuid("topic_id", since=10),
                boolean("is_internal", since=1),
                array(
                    "partitions",
                    struct(
                        int16("error_code"),
                        int32("partition_index"),
                        int32("leader_id"),
                        int32("leader_epoch", since=7, default=-1),
                        array("replica_nodes", INT32),
                        array("isr_nodes", INT32),
                        array("offline_replicas", INT32, since=5),
                    ),
                ),
                int32("topic_authorized_operations", since=8, default=-2147483648),
            ),
        ),
        int32("cluster_authorized_operations", since=8, until=10, default=-2147483648),
        int16("error_code", since=13),
    ),
)
