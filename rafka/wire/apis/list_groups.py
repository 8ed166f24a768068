"""ListGroups, key 16, versions 0-5.

Which groups the broker coordinates.

* v1: throttle time
* v3: flexible
* v4: only groups in some states (KIP-518)
* v5: only groups of some types (KIP-848)
"""

from ..api import Api
from ..schema import STRING, array, int16, int32, string, struct

LIST_GROUPS = Api(
    key=16,
    name="ListGroups",
    versions=range(6),
    flexible=3,
    request=struct(array("states_filter", STRING, since=4), array("types_filter", STRING, since=5)),
    response=struct(
        int32("throttle_time_ms", since=1),
        int16("error_code"),
        array(
            "groups",
            struct(
                string("group_id"),
                string("protocol_type"),
                string("group_state", since=4),
                string("group_type", since=5),
            ),
        ),
    ),
)
