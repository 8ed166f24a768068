"""OffsetDelete, key 47, version 0.

Forget a group's offsets of some partitions (KIP-496).
"""

from ..api import Api
from ..schema import array, int16, int32, string, struct

OFFSET_DELETE = Api(
    key=47,
    name="OffsetDelete",
    versions=range(1),
    flexible=None,
    request=struct(
        string("group_id"),
        array("topics", struct(string("name"), array("partitions", struct(int32("partition_index"))))),
    ),
    response=struct(
        int16("error_code"),
        int32("throttle_time_ms"),
        array(
            "topics",
            struct(
                string("name"), array("partitions", struct(int32("partition_index"), int16("error_code")))
            ),
        ),
    ),
)
