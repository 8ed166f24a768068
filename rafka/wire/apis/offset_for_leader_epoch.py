"""OffsetForLeaderEpoch, key 23, versions 2-4.

Where an epoch ended: so a client finds out whether its log has been cut (KIP-101, KIP-320).

* v2: the leader epoch that the client knows
* v3: replica id; consumers send -2
* v4: flexible
"""

from ..api import Api
from ..schema import array, int16, int32, int64, string, struct

OFFSET_FOR_LEADER_EPOCH = Api(
    key=23,
    name="OffsetForLeaderEpoch",
    versions=range(2, 5),
    flexible=4,
    request=struct(
        int32("replica_id", since=3, default=-2),
        array(
            "topics",
            struct(
                string("topic"),
                array(
                    "partitions",
                    struct(
                        int32("partition"), int32("current_leader_epoch", default=-1), int32("leader_epoch")
                    ),
                ),
            ),
        ),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                string("topic"),
                array(
                    "partitions",
                    struct(
                        int16("error_code"),
                        int32("partition"),
                        int32("leader_epoch", default=-1),
                        int64("end_offset", default=-1),
                    ),
                ),
            ),
        ),
    ),
)
