"""ApiVersions: what is served, read off the routes.

The one request that may come in a version nobody knows: it is then answered in
version 0, so that any client can find out what to speak.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode
from ..ops.base import Envelope
from ..ops.features import SUPPORTED, Levels
from ..types import message
from ..wire.apis.api_versions import API_VERSIONS

if TYPE_CHECKING:
    from .server import Gateway

SERVED_KEPT: Final = 16  # answers: they differ by version and by the levels of features
OUR_CLIENT: Final = "rafka"  # the software name of rafka's own client
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


@message
class ServedApi:
    api_key: int
    min_version: int
    max_version: int


@message
class SupportedFeature:
    name: str
    min_version: int
    max_version: int


@message
class FinalizedFeature:
    name: str
    max_version_level: int
    min_version_level: int


@message
class ApiVersionsReply:
    error_code: ErrorCode = ErrorCode.NONE
    api_keys: Sequence[ServedApi] = ()
    supported_features: Sequence[SupportedFeature] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeature] = ()


def answer(gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int) -> ApiVersionsReply:
    request, _ = API_VERSIONS.request_decoder(version)(frame, at)
    if version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsReply(error_code=ErrorCode.INVALID_REQUEST)
    return served(version, gateway.levels, to_ours=request.client_software_name == OUR_CLIENT)


def unsupported(
    gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int
) -> ApiVersionsReply:
    """The body is not looked at: nobody knows what it means."""
    versions = API_VERSIONS.versions
    return ApiVersionsReply(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ServedApi(api_key=API_VERSIONS.key, min_version=versions[0], max_version=versions[-1])],
    )


@lru_cache(maxsize=SERVED_KEPT)
def served(version: int, levels: Levels, to_ours: bool) -> ApiVersionsReply:
    from .routes import ROUTES

    return ApiVersionsReply(
        api_keys=[
            ServedApi(api_key=key, min_version=route.api.listed[0], max_version=route.api.listed[-1])
            for key, route in sorted(ROUTES.items())
            if to_ours or not route.own
        ],
        # Version 3 has no way to say a lowest level of 0, so such features are left out of it.
        supported_features=[
            SupportedFeature(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED.items()
            if low > 0 or version >= 4
        ],
        finalized_features_epoch=levels.epoch,
        finalized_features=[
            FinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name, level in levels.of
            if level > 0
        ],
    )
