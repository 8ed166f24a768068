"""DeleteGroups, key 42, versions 0-2.

Delete groups that have no members, and their offsets (KIP-229).

* v2: flexible
"""

from ..api import Api
from ..schema import STRING, array, int16, int32, string, struct

DELETE_GROUPS = Api(
    key=42,
    name="DeleteGroups",
    versions=range(3),
    flexible=2,
    request=struct(array("groups_names", STRING)),
    response=struct(
        int32("throttle_time_ms"), array("results", struct(string("group_id"), int16("error_code")))
    ),
)
