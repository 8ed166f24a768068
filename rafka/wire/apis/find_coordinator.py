"""FindCoordinator, key 10, versions 0-6.

Which broker coordinates a group or a transactional id.

Up to v3 one key is asked for and the answer stands in the message itself; from v4 on
there are arrays of both (KIP-699).

* v1: type of key (KIP-98)
* v3: flexible
* v4: many keys at once
* v5: TRANSACTION_ABORTABLE (KIP-890)
* v6: share groups (KIP-932)
"""

from ..api import Api
from ..schema import STRING, array, int8, int16, int32, nullable_string, string, struct

FIND_COORDINATOR = Api(
    key=10,
    name="FindCoordinator",
    versions=range(7),
    flexible=3,
    request=struct(
        string("key", until=3), int8("key_type", since=1), array("coordinator_keys", STRING, since=4)
    ),
    response=struct(
        int32("throttle_time_ms", since=1),
        int16("error_code", until=3),
        nullable_string("error_message", since=1, until=3, default=""),
        int32("node_id", until=3),
        string("host", until=3),
        int32("port", until=3),
        array(
            "coordinators",
            struct(
                string("key"),
                int32("node_id"),
                string("host"),
                int32("port"),
                int16("error_code"),
                nullable_string("error_message", default=""),
            ),
            since=4,
        ),
    ),
)
