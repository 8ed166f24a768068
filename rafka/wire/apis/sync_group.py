"""SyncGroup, key 14, versions 0-5.

The leader hands in the assignment, and each member is answered with its own part.

* v1: throttle time
* v3: group instance id (KIP-345)
* v4: flexible
* v5: protocol type and name (KIP-559)
"""

from ..api import Api
from ..schema import array, bytes_, int16, int32, nullable_string, string, struct

SYNC_GROUP = Api(
    key=14,
    name="SyncGroup",
    versions=range(6),
    flexible=4,
    request=struct(
        string("group_id"),
        int32("generation_id"),
        string("member_id"),
        nullable_string("group_instance_id", since=3),
        nullable_string("protocol_type", since=5),
        nullable_string("protocol_name", since=5),
        array("assignments", struct(string("member_id"), bytes_("assignment"))),
    ),
    response=struct(
        int32("throttle_time_ms", since=1),
        int16("error_code"),
        nullable_string("protocol_type", since=5),
        nullable_string("protocol_name", since=5),
        bytes_("assignment"),
    ),
)
