"""DescribeGroups, key 15, versions 0-6.

The state of classic groups and their members.

* v1: throttle time
* v3: authorised operations (KIP-430)
* v4: group instance id (KIP-345)
* v5: flexible
* v6: a message with the error, and GROUP_ID_NOT_FOUND (KIP-1043)
"""

from ..api import Api
from ..schema import STRING, array, boolean, bytes_, int16, int32, nullable_string, string, struct

DESCRIBE_GROUPS = Api(
    key=15,
    name="DescribeGroups",
    versions=range(7),
    flexible=5,
    request=struct(array("groups", STRING), boolean("include_authorized_operations", since=3)),
    response=struct(
        int32("throttle_time_ms", since=1),
        array(
            "groups",
            struct(
                int16("error_code"),
                nullable_string("error_message", since=6),
                string("group_id"),
                string("group_state"),
                string("protocol_type"),
                string("protocol_data"),
                array(
                    "members",
                    struct(
                        string("member_id"),
                        nullable_string("group_instance_id", since=4),
                        string("client_id"),
                        string("client_host"),
                        bytes_("member_metadata"),
                        bytes_("member_assignment"),
                    ),
                ),
                int32("authorized_operations", since=3, default=-2147483648),
            ),
        ),
    ),
)
