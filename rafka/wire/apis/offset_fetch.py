"""OffsetFetch, key 9, versions 1-10.

How far a group has read.

Up to v7 one group is asked for and the answer stands in the message itself; from v8 on
there are arrays of both (KIP-709).

* v2: all topics, by null; an error for the answer as a whole
* v3: throttle time
* v5: leader epoch (KIP-320)
* v6: flexible
* v7: whether to wait for open transactions (KIP-447)
* v8: many groups at once
* v9: member id and epoch (KIP-848)
* v10: topics by id (KIP-516)
"""

from ..api import Api
from ..schema import (
    INT32,
    array,
    boolean,
    int16,
    int32,
    int64,
    nullable_array,
    nullable_string,
    string,
    struct,
    uuid,
)

OFFSET_FETCH = Api(
    key=9,
    name="OffsetFetch",
    versions=range(1, 11),
    flexible=6,
    request=struct(
        string("group_id", until=7),
        array("topics", struct(string("name"), array("partition_indexes", INT32)), until=7, nullable_since=2),
        array(
            "groups",
            struct(
                string("group_id"),
                nullable_string("member_id", since=9),
                int32("member_epoch", since=9, default=-1),
                nullable_array(
                    "topics",
                    struct(
                        string("name", until=9), uuid("topic_id", since=10), array("partition_indexes", INT32)
                    ),
                    default=(),
                ),
            ),
            since=8,
        ),
        boolean("require_stable", since=7),
    ),
    response=struct(
        int32("throttle_time_ms", since=3),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int64("committed_offset"),
                        int32("committed_leader_epoch", since=5, default=-1),
                        nullable_string("metadata", default=""),
                        int16("error_code"),
                    ),
                ),
            ),
            until=7,
        ),
        int16("error_code", since=2, until=7),
        array(
            "groups",
            struct(
                string("group_id"),
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
                                int32("committed_leader_epoch", default=-1),
                                nullable_string("metadata", default=""),
                                int16("error_code"),
                            ),
                        ),
                    ),
                ),
                int16("error_code"),
            ),
            since=8,
        ),
    ),
)
