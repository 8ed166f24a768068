"""AddOffsetsToTxn, key 25, versions 0-4.

A transactional producer says for which group it is about to commit offsets.

* v2: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH (KIP-588)
* v3: flexible
* v4: TRANSACTION_ABORTABLE (KIP-890)
"""

from ..api import Api
from ..schema import int16, int32, int64, string, struct

ADD_OFFSETS_TO_TXN = Api(
    key=25,
    name="AddOffsetsToTxn",
    versions=range(5),
    flexible=3,
    request=struct(
        string("transactional_id"), int64("producer_id"), int16("producer_epoch"), string("group_id")
    ),
    response=struct(int32("throttle_time_ms"), int16("error_code")),
)
