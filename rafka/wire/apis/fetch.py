"""Fetch, key 1, versions 4-18.

A consumer asks for record batches, and waits until there are enough of them.

* v4: isolation level, aborted transactions, last stable offset (KIP-98)
* v5: log start offset
* v7: sessions: only what changed is sent (KIP-227)
* v9: the leader epoch that the client knows (KIP-320)
* v10: zstd (KIP-110)
* v11: rack, preferred read replica (KIP-392)
* v12: flexible; diverging epoch, for followers whose log took another way (KIP-595)
* v13: topics by id (KIP-516)
* v15: who the follower is, in a tagged struct (KIP-903)
* v16: where the nodes are that lead now (KIP-951)
* v17: the follower's log directory (KIP-853)
* v18: the follower's high watermark (KIP-1166)
"""

from ..api import Api
from ..schema import (
    INT32,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    nullable_array,
    nullable_string,
    records,
    string,
    struct,
    uuid,
)

FETCH = Api(
    key=1,
    name="Fetch",
    versions=range(4, 19),
    flexible=12,
    request=struct(
        nullable_string("cluster_id", since=12, tag=0),
        int32("replica_id", until=14, default=-1),
        nested(
            "replica_state",
            struct(int32("replica_id", default=-1), int64("replica_epoch", default=-1)),
            since=15,
            tag=1,
        ),
        int32("max_wait_ms"),
        int32("min_bytes"),
        int32("max_bytes", default=2147483647),
        int8("isolation_level"),
        int32("session_id", since=7),
        int32("session_epoch", since=7, default=-1),
        array(
            "topics",
            struct(
                string("topic", until=12),
                uuid("topic_id", since=13),
                array(
                    "partitions",
                    struct(
                        int32("partition"),
                        int32("current_leader_epoch", since=9, default=-1),
                        int64("fetch_offset"),
                        int32("last_fetched_epoch", since=12, default=-1),
                        int64("log_start_offset", since=5, default=-1),
                        int32("partition_max_bytes"),
                        uuid("replica_directory_id", since=17, tag=0),
                        int64("high_watermark", since=18, tag=1, default=9223372036854775807),
                    ),
                ),
            ),
        ),
        array(
            "forgotten_topics_data",
            struct(string("topic", until=12), uuid("topic_id", since=13), array("partitions", INT32)),
            since=7,
        ),
        string("rack_id", since=11),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code", since=7),
        int32("session_id", since=7),
        array(
            "responses",
            struct(
                string("topic", until=12),
                uuid("topic_id", since=13),
                array(
                    "partitions",
                    struct(
                        int32("partition_index"),
                        int16("error_code"),
                        int64("high_watermark"),
                        int64("last_stable_offset", default=-1),
                        int64("log_start_offset", since=5, default=-1),
                        nested(
                            "diverging_epoch",
                            struct(int32("epoch", default=-1), int64("end_offset", default=-1)),
                            since=12,
                            tag=0,
                        ),
                        nested(
                            "current_leader",
                            struct(int32("leader_id", default=-1), int32("leader_epoch", default=-1)),
                            since=12,
                            tag=1,
                        ),
                        nested(
                            "snapshot_id",
                            struct(int64("end_offset", default=-1), int32("epoch", default=-1)),
                            since=12,
                            tag=2,
                        ),
                        nullable_array(
                            "aborted_transactions",
                            struct(int64("producer_id"), int64("first_offset")),
                            default=(),
                        ),
                        int32("preferred_read_replica", since=11, default=-1),
                        records("records"),
                    ),
                ),
            ),
        ),
        array(
            "node_endpoints",
            struct(int32("node_id"), string("host"), int32("port"), nullable_string("rack")),
            since=16,
            tag=0,
        ),
    ),
)
