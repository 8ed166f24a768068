"""DeleteRecords, key 21, versions 0-2.

Delete what lies before an offset of a partition (KIP-107).

* v2: flexible
"""

from ..api import Api
from ..schema import array, int16, int32, int64, string, struct

DELETE_RECORDS = Api(
    key=21,
    name="DeleteRecords",
    versions=range(3),
    flexible=2,
    request=struct(
        array(
            "topics",
            struct(string("name"), array("partitions", struct(int32("partition_index"), int64("offset")))),
        ),
        int32("timeout_ms"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                string("name"),
                array(
                    "partitions",
                    struct(int32("partition_index"), int64("low_watermark"), int16("error_code")),
                ),
            ),
        ),
    ),
)
