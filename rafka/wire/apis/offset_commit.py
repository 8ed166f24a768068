"""OffsetCommit, key 8, versions 2-10.

A group remembers how far it has read.

* v2: retention time, until v4: it is the broker's matter since (KIP-211)
* v3: throttle time
* v6: leader epoch (KIP-320)
* v7: group instance id (KIP-345)
* v8: flexible
* v9: the member epochs of KIP-848, in the place of the generation
* v10: topics by id (KIP-516)
"""

from ..api import Api
from ..schema import array, int16, int32, int64, nullable_string, string, struct, uuid

OFFSET_COMMIT = Api(
    key=8,
    name="OffsetCommit",
    versions=range(2, 11),
    flexible=8,
    request=struct(
        string("group_id"),
        int32("generation_id_or_member_epoch", default=-1),
        string("member_id"),
        nullable_string("group_instance_id", since=7),
        int64("retention_time_ms", until=4, default=-1),
        array(
            "topics",
            struct(
                string("name", until=9),
                uuid("topic_id", since=10),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int64("committed_offset"),
                        int32("committed_leader_epoch", since=6, default=-1),
                        nullable_string("committed_metadata", default=""),
                    ),
                ),
            ),
        ),
    ),
    response=struct(
        int32("throttle_time_ms", since=3),
        array(
            "topics",
            struct(
                string("name", until=9),
                uuid("topic_id", since=10),
                array("partitions", struct(int32("partition_index"), int16("error_code"))),
            ),
        ),
    ),
)
