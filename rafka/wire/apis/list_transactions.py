"""ListTransactions, key 66, versions 0-2.

Which transactional ids there are (KIP-664).

* v1: only those that began long ago (KIP-994)
* v2: only those whose id matches a pattern (KIP-1152)
"""

from ..api import Api
from ..schema import INT64, STRING, array, int16, int32, int64, nullable_string, string, struct

LIST_TRANSACTIONS = Api(
    key=66,
    name="ListTransactions",
    versions=range(3),
    flexible=0,
    request=struct(
        array("state_filters", STRING),
        array("producer_id_filters", INT64),
        int64("duration_filter", since=1, default=-1),
        nullable_string("transactional_id_pattern", since=2),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        array("unknown_state_filters", STRING),
        array(
            "transaction_states",
            struct(string("transactional_id"), int64("producer_id"), string("transaction_state")),
        ),
    ),
)
