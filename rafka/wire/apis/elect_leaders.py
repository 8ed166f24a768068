"""ElectLeaders, key 43, versions 0-2.

Elect the preferred leader, or any (KIP-183, KIP-460).

* v1: the type of election, an error for the answer as a whole
* v2: flexible
"""

from ..api import Api
from ..schema import INT32, array, int8, int16, int32, nullable_array, nullable_string, string, struct

ELECT_LEADERS = Api(
    key=43,
    name="ElectLeaders",
    versions=range(3),
    flexible=2,
    request=struct(
        int8("election_type", since=1),
        nullable_array("topic_partitions", struct(string("topic"), array("partitions", INT32)), default=()),
        int32("timeout_ms", default=60000),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code", since=1),
        array(
            "replica_election_results",
            struct(
                string("topic"),
                array(
                    "partition_result",
                    struct(
                        int32("partition_id"),
                        int16("error_code"),
                        nullable_string("error_message", default=""),
                    ),
                ),
            ),
        ),
    ),
)
