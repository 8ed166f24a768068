"""EndTxn, key 26, versions 0-5.

A transactional producer commits or aborts.

* v2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH (KIP-588)
* v3: flexible
* v4: TRANSACTION_ABORTABLE (KIP-890)
* v5: every transaction ends with a new epoch, which the answer tells (KIP-890)
"""

from ..api import Api
from ..schema import boolean, int16, int32, int64, string, struct

END_TXN = Api(
    key=26,
    name="EndTxn",
    versions=range(6),
    flexible=3,
    request=struct(
        string("transactional_id"), int64("producer_id"), int16("producer_epoch"), boolean("committed")
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        int64("producer_id", since=5, default=-1),
        int16("producer_epoch", since=5, default=-1),
    ),
)
