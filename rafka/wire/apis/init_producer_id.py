"""InitProducerId, key 22, versions 0-5.

A producer gets its id and epoch: with these its retries are told from new records.

Version 6, for transactions that outlive two phases (KIP-939), is not stable in Kafka yet.

* v2: flexible
* v3: a producer may ask for the next epoch of the id it has (KIP-360)
* v4: PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH (KIP-588)
* v5: TRANSACTION_ABORTABLE (KIP-890)
"""

from ..api import Api
from ..schema import int16, int32, int64, nullable_string, struct

INIT_PRODUCER_ID = Api(
    key=22,
    name="InitProducerId",
    versions=range(6),
    flexible=2,
    request=struct(
        nullable_string("transactional_id", default=""),
        int32("transaction_timeout_ms"),
        int64("producer_id", since=3, default=-1),
        int16("producer_epoch", since=3, default=-1),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        int64("producer_id", default=-1),
        int16("producer_epoch"),
    ),
)
