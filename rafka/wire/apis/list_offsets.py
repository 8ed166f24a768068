"""ListOffsets, key 2, versions 1-11.

Which offset belongs to a timestamp, or to a name for one: -1 the end, -2 the start.

* v1: one offset, with its timestamp, in place of a list
* v2: isolation level (KIP-98)
* v4: leader epoch (KIP-320)
* v6: flexible
* v7: -3, the record with the greatest timestamp (KIP-734)
* v8: -4, the earliest offset that is kept locally (KIP-405)
* v9: -5, the latest offset in tiered storage (KIP-1005)
* v10: timeout, as tiered storage may take its time (KIP-1075)
* v11: -6, the earliest offset that waits to be tiered (KIP-1023)
"""

from ..api import Api
from ..schema import array, int8, int16, int32, int64, string, struct

LIST_OFFSETS = Api(
    key=2,
    name="ListOffsets",
    versions=range(1, 12),
    flexible=6,
    request=struct(
        int32("replica_id"),
        int8("isolation_level", since=2),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int32("current_leader_epoch", since=4, default=-1),
                        int64("timestamp"),
                    ),
                ),
            ),
        ),
        int32("timeout_ms", since=10),
    ),
    response=struct(
        int32("throttle_time_ms", since=2),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int16("error_code"),
                        int64("timestamp", default=-1),
                        int64("offset", default=-1),
                        int32("leader_epoch", since=4, default=-1),
                    ),
                ),
            ),
        ),
    ),
)
