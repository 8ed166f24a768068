"""GroupHistory, key 30000, version 0.

The rebalances that a group went through: why each began, how long its phases took, what
every member gained, lost and waited for. Kafka has no such request, so the key is one
that it will not come to use, and ApiVersions lists it to rafka's own client only.

With `max_wait_ms` the answer waits for a rebalance that is told after the moment `after`, if
there is none: so a command line can follow a group as it happens. It gives the `told_ms` of the
last one that it has, and not its number: those begin again when the broker does.
"""

from ..api import Api
from ..schema import array, boolean, int16, int32, int64, nullable_string, string, struct

GROUP_HISTORY = Api(
    key=30_000,
    name="GroupHistory",
    versions=range(1),
    flexible=0,
    request=struct(string("group_id"), int64("after"), int32("max_wait_ms")),
    response=struct(
        int16("error_code"),
        nullable_string("error_message"),
        string("stable_id"),
        string("locator"),
        array(
            "rebalances",
            struct(
                int64("number"),
                int64("began_ms"),
                string("trigger"),
                string("trigger_member"),
                string("reason"),
                string("outcome"),
                int32("generation_id", default=-1),
                string("protocol_type"),
                string("protocol_name"),
                string("leader"),
                int64("join_ms"),
                int64("sync_ms", default=-1),
                int32("members_before"),
                int32("members_after"),
                int32("moved", default=-1),
                int64("told_ms"),
                array(
                    "members",
                    struct(
                        string("member_id"),
                        nullable_string("group_instance_id"),
                        string("client_id"),
                        string("client_host"),
                        boolean("joined"),
                        int32("gained", default=-1),
                        int32("lost", default=-1),
                        int64("pause_ms", default=-1),
                    ),
                ),
            ),
        ),
    ),
)
