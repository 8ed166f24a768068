"""ListConfigResources, key 74, versions 0-1.

Which resources have a configuration (KIP-1142).

* v0: client metrics only (KIP-714), when it was called ListClientMetricsResources
* v1: any type of resource
"""

from ..api import Api
from ..schema import INT8, array, int8, int16, int32, string, struct

LIST_CONFIG_RESOURCES = Api(
    key=74,
    name="ListConfigResources",
    versions=range(2),
    flexible=0,
    request=struct(array("resource_types", INT8, since=1)),
    response=struct(
        int32("throttle_time_ms"),
        int16("error_code"),
        array(
            "config_resources", struct(string("resource_name"), int8("resource_type", since=1, default=16))
        ),
    ),
)
