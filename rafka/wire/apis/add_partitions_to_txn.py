"""AddPartitionsToTxn, key 24, versions 0-5.

A transactional producer says which partitions it is about to write to.

Up to v3 a client asks for its own transaction; from v4 on brokers ask for many, and may
only want to know whether the partitions are part of one already (KIP-890).

* v2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH (KIP-588)
* v3: flexible
* v4: many transactions at once, and asking without adding
* v5: TRANSACTION_ABORTABLE (KIP-890)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int16, int32, int64, string, struct

_TOPIC = struct(string("name"), array("partitions", INT32))
_TOPIC_RESULT = struct(
    string("name"),
    array("results_by_partition", struct(int32("partition_index"), int16("partition_error_code"))),
)

ADD_PARTITIONS_TO_TXN = Api(
    key=24,
    name="AddPartitionsToTxn",
    versions=range(6),
    flexible=3,
    request=struct(
        array(
            "transactions",
            struct(
                string("transactional_id"),
                int64("producer_id"),
                int16("producer_epoch"),
                boolean("verify_only"),
                array("topics", _TOPIC),
            ),
            since=4,
        ),
        string("v3_and_below_transactional_id", until=3),
        int64("v3_and_below_producer_id", until=3),
        int16("v3_and_below_producer_epoch", until=3),
        array("v3_and_below_topics", _TOPIC, until=3),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code", since=4),
        array(
            "results_by_transaction",
            struct(string("transactional_id"), array("topic_results", _TOPIC_RESULT)),
            since=4,
        ),
        array("results_by_topic_v3_and_below", _TOPIC_RESULT, until=3),
    ),
)
