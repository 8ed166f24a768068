"""CreatePartitions, key 37, versions 0-3.

Give topics more partitions (KIP-195).

* v2: flexible
* v3: THROTTLING_QUOTA_EXCEEDED (KIP-599)
"""

from ..api import Api
from ..schema import INT32, array, boolean, int16, int32, nullable_array, nullable_string, string, struct

CREATE_PARTITIONS = Api(
    key=37,
    name="CreatePartitions",
    versions=range(4),
    flexible=2,
    request=struct(
        array(
            "topics",
            struct(
                string("name"),
                int32("count"),
                nullable_array("assignments", struct(array("broker_ids", INT32)), default=()),
            ),
        ),
        int32("timeout_ms"),
        boolean("validate_only"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array("results", struct(string("name"), int16("error_code"), nullable_string("error_message"))),
    ),
)
