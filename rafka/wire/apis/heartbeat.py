"""Heartbeat, key 12, versions 0-4.

A member says it is alive, and learns whether it must rejoin.

* v1: throttle time in the answer
* v3: group instance id, for static members (KIP-345)
* v4: flexible
"""

from ..api import Api
from ..schema import int16, int32, nullable_string, string, struct

HEARTBEAT = Api(
    key=12,
    name="Heartbeat",
    versions=range(5),
    flexible=4,
    request=struct(
        string("group_id"),
        int32("generation_id"),
        string("member_id"),
        nullable_string("group_instance_id", since=3),
    ),
    response=struct(int32("throttle_time_ms", since=1), int16("error_code")),
)
