"""ConsumerGroupDescribe, key 69, versions 0-1.

The state of groups of the next-generation protocol and their members (KIP-848). rafka has no such
groups and does not serve this: it is what our client asks of brokers that have some.

* v1: whether a member speaks the classic protocol (KIP-1099)
"""

from ..api import Api
from ..schema import (
    INT32,
    STRING,
    array,
    boolean,
    int8,
    int16,
    int32,
    nested,
    nullable_string,
    string,
    struct,
    uuid,
)

_ASSIGNMENT = struct(
    array("topic_partitions", struct(uuid("topic_id"), string("topic_name"), array("partitions", INT32)))
)

CONSUMER_GROUP_DESCRIBE = Api(
    key=69,
    name="ConsumerGroupDescribe",
    versions=range(2),
    flexible=0,
    request=struct(array("group_ids", STRING), boolean("include_authorized_operations")),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "groups",
            struct(
                int16("error_code"),
                nullable_string("error_message"),
                string("group_id"),
                string("group_state"),
                int32("group_epoch"),
                int32("assignment_epoch"),
                string("assignor_name"),
                array(
                    "members",
                    struct(
                        string("member_id"),
                        nullable_string("instance_id"),
                        nullable_string("rack_id"),
                        int32("member_epoch"),
                        string("client_id"),
                        string("client_host"),
                        array("subscribed_topic_names", STRING),
                        nullable_string("subscribed_topic_regex"),
                        nested("assignment", _ASSIGNMENT),
                        nested("target_assignment", _ASSIGNMENT),
                        int8("member_type", since=1, default=-1),
                    ),
                ),
                int32("authorized_operations", default=-2147483648),
            ),
        ),
    ),
)
