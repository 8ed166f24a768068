"""Produce, key 0, versions 3-13.

A producer hands over record batches, one set for each partition.

Versions 0-2 carried older record formats and are gone (KIP-896). ApiVersions lists them
all the same: old librdkafka takes its features from exact low versions.

* v3: record batches v2, transactional id (KIP-98)
* v5: log start offset in the answer
* v7: zstd (KIP-110)
* v8: which records were bad, and a message (KIP-467)
* v9: flexible
* v10: in the answer, who leads now and where that node is (KIP-951)
* v12: partitions join the transaction by being written to (KIP-890)
* v13: topics by id (KIP-516)
"""

from ..api import Api
from ..schema import array, int16, int32, int64, nested, nullable_string, records, string, struct, uuid

PRODUCE = Api(
    key=0,
    name="Produce",
    versions=range(3, 14),
    flexible=9,
    listed=range(14),
    request=struct(
        nullable_string("transactional_id"),
        int16("acks"),
        int32("timeout_ms"),
        array(
            "topic_data",
            struct(
                string("name", until=12),
                uuid("topic_id", since=13),
                array("partition_data", struct(int32("index"), records("records"))),
            ),
        ),
    ),
    response=struct(
        array(
            "responses",
            struct(
                string("name", until=12),
                uuid("topic_id", since=13),
                array(
                    "partition_responses",
                    struct(
                        int32("index"),
                        int16("error_code"),
                        int64("base_offset"),
                        int64("log_append_time_ms", default=-1),
                        int64("log_start_offset", since=5, default=-1),
                        array(
                            "record_errors",
                            struct(int32("batch_index"), nullable_string("batch_index_error_message")),
                            since=8,
                        ),
                        nullable_string("error_message", since=8),
                        nested(
                            "current_leader",
                            struct(int32("leader_id", default=-1), int32("leader_epoch", default=-1)),
                            since=10,
                            tag=0,
                        ),
                    ),
                ),
            ),
        ),
        int32("throttle_time_ms"),
        array(
            "node_endpoints",
            struct(int32("node_id"), string("host"), int32("port"), nullable_string("rack")),
            since=10,
            tag=0,
        ),
    ),
)
