"""DeleteTopics, key 20, versions 1-6.

Delete topics, by name or by id.

* v1: throttle time
* v4: flexible
* v5: a message with the error; THROTTLING_QUOTA_EXCEEDED (KIP-599)
* v6: topics by id (KIP-516), in an array of structs where there were bare names
"""

from ..api import Api
from ..schema import STRING, array, int16, int32, nullable_string, string, struct, uuid

DELETE_TOPICS = Api(
    key=20,
    name="DeleteTopics",
    versions=range(1, 7),
    flexible=4,
    request=struct(
        array("topics", struct(nullable_string("name"), uuid("topic_id")), since=6),
        array("topic_names", STRING, until=5),
        int32("timeout_ms"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "responses",
            struct(
                string("name", nullable_since=6),
                uuid("topic_id", since=6),
                int16("error_code"),
                nullable_string("error_message", since=5),
            ),
        ),
    ),
)
