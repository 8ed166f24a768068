"""LeaveGroup, key 13, versions 0-5.

Members leave a group.

Up to v2 one member leaves; from v3 on there is an array of them (KIP-345).

* v1: throttle time
* v3: many members, static ones among them
* v4: flexible
* v5: the reason for leaving (KIP-800)
"""

from ..api import Api
from ..schema import array, int16, int32, nullable_string, string, struct

LEAVE_GROUP = Api(
    key=13,
    name="LeaveGroup",
    versions=range(6),
    flexible=4,
    request=struct(
        string("group_id"),
        string("member_id", until=2),
        array(
            "members",
            struct(
                string("member_id"), nullable_string("group_instance_id"), nullable_string("reason", since=5)
            ),
            since=3,
        ),
    ),
    response=struct(
        int32("throttle_time_ms", since=1),
        int16("error_code"),
        array(
            "members",
            struct(
                string("member_id"), nullable_string("group_instance_id", default=""), int16("error_code")
            ),
            since=3,
        ),
    ),
)
