"""JoinGroup, key 11, versions 0-9.

A member joins a group and is answered when the generation has formed.

* v1: rebalance timeout apart from the session timeout
* v2: throttle time
* v4: who comes without a member id is given one, and has to join again (KIP-394)
* v5: group instance id (KIP-345)
* v6: flexible
* v7: protocol type in the answer (KIP-559)
* v8: the reason for joining (KIP-800)
* v9: the leader may be told to leave the assignment as it is (KIP-814)
"""

from ..api import Api
from ..schema import array, boolean, bytes_, int16, int32, nullable_string, string, struct

JOIN_GROUP = Api(
    key=11,
    name="JoinGroup",
    versions=range(10),
    flexible=6,
    request=struct(
        string("group_id"),
        int32("session_timeout_ms"),
        int32("rebalance_timeout_ms", since=1, default=-1),
        string("member_id"),
        nullable_string("group_instance_id", since=5),
        string("protocol_type"),
        array("protocols", struct(string("name"), bytes_("metadata"))),
        nullable_string("reason", since=8),
    ),
    response=struct(
        int32("throttle_time_ms", since=2),
        int16("error_code"),
        int32("generation_id", default=-1),
        nullable_string("protocol_type", since=7),
        string("protocol_name", nullable_since=7),
        string("leader"),
        boolean("skip_assignment", since=9),
        string("member_id"),
        array(
            "members",
            struct(string("member_id"), nullable_string("group_instance_id", since=5), bytes_("metadata")),
        ),
    ),
)
