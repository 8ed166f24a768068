"""SaslHandshake, key 17, versions 0-1.

The client names the SASL mechanism that it wants (KIP-43).

* v1: the tokens that follow come in SaslAuthenticate, not bare (KIP-152)
"""

from ..api import Api
from ..schema import STRING, array, int16, string, struct

SASL_HANDSHAKE = Api(
    key=17,
    name="SaslHandshake",
    versions=range(2),
    flexible=None,
    request=struct(string("mechanism")),
    response=struct(int16("error_code"), array("mechanisms", STRING)),
)
