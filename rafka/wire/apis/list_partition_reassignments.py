"""ListPartitionReassignments, key 46, version 0.

Which partitions are on their way to other brokers (KIP-455).
"""

from ..api import Api
from ..schema import INT32, array, int16, int32, nullable_array, nullable_string, string, struct

LIST_PARTITION_REASSIGNMENTS = Api(
    key=46,
    name="ListPartitionReassignments",
    versions=range(1),
    flexible=0,
    request=struct(
        int32("timeout_ms", default=60000),
        nullable_array("topics", struct(string("name"), array("partition_indexes", INT32))),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        nullable_string("error_message", default=""),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        array("replicas", INT32),
                        array("adding_replicas", INT32),
                        array("removing_replicas", INT32),
                    ),
                ),
            ),
        ),
    ),
)
