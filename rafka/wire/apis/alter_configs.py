"""AlterConfigs, key 33, versions 0-2.

Replace all of a resource's configuration. IncrementalAlterConfigs changes parts of it.

* v2: flexible
"""

from ..api import Api
from ..schema import array, boolean, int8, int16, int32, nullable_string, string, struct

ALTER_CONFIGS = Api(
    key=33,
    name="AlterConfigs",
    versions=range(3),
    flexible=2,
    request=struct(
        array(
            "resources",
            struct(
                int8("resource_type"),
                string("resource_name"),
                array("configs", struct(string("name"), nullable_string("value", default=""))),
            ),
        ),
        boolean("validate_only"),
    ),
    response=struct(
        int32("throttle_time_ms"),
        array(
            "responses",
            struct(
                int16("error_code"),
                nullable_string("error_message", default=""),
                int8("resource_type"),
                string("resource_name"),
            ),
        ),
    ),
)
