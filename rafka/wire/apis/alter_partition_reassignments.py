"""AlterPartitionReassignments, key 45, versions 0-1.

Move partitions to other brokers, or call it off with null replicas (KIP-455).

* v1: whether the number of replicas may change (KIP-860)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int16, int32, nullable_array, nullable_string, string, struct

ALTER_PARTITION_REASSIGNMENTS = Api(
    key=45,
    name="AlterPartitionReassignments",
    versions=range(2),
    flexible=0,
    request=struct(
        int32("timeout_ms", default=60000),
        boolean("allow_replication_factor_change", since=1, default=True),
        array(
            "topics",
            struct(
                string("name"),
                array("partitions", struct(int32("partition_index"), nullable_array("replicas", INT32))),
            ),
        ),
    ),
    response=struct(
        int32("throttle_time_ms"),
        boolean("allow_replication_factor_change", since=1, default=True),
        int16("error_code"),
        nullable_string("error_message", default=""),
        array(
            "responses",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int16("error_code"),
                        nullable_string("error_message", default=""),
                    ),
                ),
            ),
        ),
    ),
)
