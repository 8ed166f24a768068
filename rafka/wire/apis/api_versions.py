"""ApiVersions, key 18, versions 0-4.

Which APIs the broker speaks, and in which versions. Most clients ask this first.

A broker that does not know the version asked in answers in v0, with an error; that is
why the header of the answer is never flexible.

* v1: throttle time
* v3: flexible; name and version of the client's software (KIP-511); features (KIP-584)
* v4: features whose lowest version is 0 are no longer left out (KIP-1022)
"""

from ..api import Api
from ..schema import array, boolean, int16, int32, int64, string, struct

API_VERSIONS = Api(
    key=18,
    name="ApiVersions",
    versions=range(5),
    flexible=3,
    request=struct(string("client_software_name", since=3), string("client_software_version", since=3)),
    response=struct(
        int16("error_code"),
        array("api_keys", struct(int16("api_key"), int16("min_version"), int16("max_version"))),
        int32("throttle_time_ms", since=1),
        array(
            "supported_features",
            struct(string("name"), int16("min_version"), int16("max_version")),
            since=3,
            tag=0,
        ),
        int64("finalized_features_epoch", since=3, tag=1, default=-1),
        array(
            "finalized_features",
            struct(string("name"), int16("max_version_level"), int16("min_version_level")),
            since=3,
            tag=2,
        ),
        boolean("zk_migration_ready", since=3, tag=3),
    ),
)
