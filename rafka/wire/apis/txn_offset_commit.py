"""TxnOffsetCommit, key 28, versions 0-5.

Offsets of a group that count once the transaction commits.

* v2: leader epoch
* v3: flexible; generation, member and instance (KIP-447)
* v4: TRANSACTION_ABORTABLE (KIP-890)
* v5: the group becomes part of the transaction by this alone (KIP-890)
"""

from ..api import Api
from ..schema import array, int16, int32, int64, nullable_string, string, struct

TXN_OFFSET_COMMIT = Api(
    key=28,
    name="TxnOffsetCommit",
    versions=range(6),
    flexible=3,
    request=struct(
        string("transactional_id"),
        string("group_id"),
        int64("producer_id"),
        int16("producer_epoch"),
        int32("generation_id", since=3, default=-1),
        string("member_id", since=3),
        nullable_string("group_instance_id", since=3),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int64("committed_offset"),
                        int32("committed_leader_epoch", since=2, default=-1),
                        nullable_string("committed_metadata", default=""),
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
                string("name"), array("partitions", struct(int32("partition_index"), int16("error_code")))
            ),
        ),
    ),
)
