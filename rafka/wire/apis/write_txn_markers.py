"""WriteTxnMarkers, key 27, versions 1-2.

A coordinator, or an administrator who ends a transaction that hangs, has markers written.

* v1: flexible
* v2: the transaction's version (KIP-1228)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int8, int16, int32, int64, string, struct

WRITE_TXN_MARKERS = Api(
    key=27,
    name="WriteTxnMarkers",
    versions=range(1, 3),
    flexible=1,
    request=struct(
        array(
            "markers",
            struct(
                int64("producer_id"),
                int16("producer_epoch"),
                boolean("transaction_result"),
                array("topics", struct(string("name"), array("partition_indexes", INT32))),
                int32("coordinator_epoch"),
                int8("transaction_version", since=2),
            ),
        ),
    ),
    response=struct(
        array(
            "markers",
            struct(
                int64("producer_id"),
                array(
                    "topics",
                    struct(
                        string("name"),
                        array("partitions", struct(int32("partition_index"), int16("error_code"))),
                    ),
                ),
            ),
        ),
    ),
)
