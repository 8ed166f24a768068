"""DescribeTransactions, key 65, version 0.

The state of transactional ids, one by one (KIP-664).
"""

from ..api import Api
from ..schema import INT32, STRING, array, int16, int32, int64, string, struct

DESCRIBE_TRANSACTIONS = Api(
    key=65,
    name="DescribeTransactions",
    versions=range(1),
    flexible=0,
    request=struct(array("transactional_ids", STRING)),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "transaction_states",
            struct(
                int16("error_code"),
                string("transactional_id"),
                string("transaction_state"),
                int32("transaction_timeout_ms"),
                int64("transaction_start_time_ms"),
                int64("producer_id"),
                int16("producer_epoch"),
                array("topics", struct(string("topic"), array("partitions", INT32))),
            ),
        ),
    ),
)
