"""SaslAuthenticate, key 36, versions 0-2.

One token of a SASL exchange, and the answer to it (KIP-152).

* v1: how long the session may last (KIP-368)
* v2: flexible
"""

from ..api import Api
from ..schema import bytes_, int16, int64, nullable_string, struct

SASL_AUTHENTICATE = Api(
    key=36,
    name="SaslAuthenticate",
    versions=range(3),
    flexible=2,
    request=struct(bytes_("auth_bytes")),
    response=struct(
        int16("error_code"),
        nullable_string("error_message", default=""),
        bytes_("auth_bytes"),
        int64("session_lifetime_ms", since=1),
    ),
)
