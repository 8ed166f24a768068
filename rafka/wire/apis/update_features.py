"""UpdateFeatures, key 57, versions 0-2.

Which level of a feature the cluster goes by (KIP-584).

* v1: the kind of change, and a dry run
* v2: one error for all, since all are changed or none
"""

from ..api import Api
from ..schema import array, boolean, int8, int16, int32, nullable_string, string, struct

UPDATE_FEATURES = Api(
    key=57,
    name="UpdateFeatures",
    versions=range(3),
    flexible=0,
    request=struct(
        int32("timeout_ms", default=60_000),
        array(
            "feature_updates",
            struct(
                string("feature"),
                int16("max_version_level"),
                boolean("allow_downgrade", until=0),
                int8("upgrade_type", since=1, default=1),
            ),
        ),
        boolean("validate_only", since=1),
    ),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        nullable_string("error_message", default=""),
        array(
            "results",
            struct(string("feature"), int16("error_code"), nullable_string("error_message", default="")),
            until=1,
        ),
    ),
)
