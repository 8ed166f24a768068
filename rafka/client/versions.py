"""Which version of a request to send: the newest that both sides speak."""

from __future__ import annotations

from typing import Any, Final

from ..wire.apis.api_versions import API_VERSIONS
from .errors import UnsupportedVersion
from .messages import ApiVersionsReply, Request

FIRST_ASKED: Final = max(API_VERSIONS.versions)  # of ApiVersions, before anything is known


class Versions:
    """What one broker speaks."""

    def __init__(self, reply: ApiVersionsReply, broker: str) -> None:
        self.reply: Final = reply
        self._broker = broker
        self._ranges = {one.api_key: (one.min_version, one.max_version) for one in reply.api_keys}
        self._chosen: dict[tuple[type[Request[Any]], int], int] = {}

    def choose(self, request: type[Request[Any]], at_least: int = 0) -> int:
        """The version to send. `at_least` is the first version that can say what is asked."""
        chosen = self._chosen.get((request, at_least))
        if chosen is None:
            chosen = self._chosen[request, at_least] = self._choose(request, at_least)
        return chosen

    def _choose(self, request: type[Request[Any]], at_least: int) -> int:
        api = request.api
        ours = (max(min(api.versions), at_least), max(api.versions))
        if request.newest is not None:
            ours = (ours[0], min(ours[1], request.newest))
        theirs = self._ranges.get(api.key)
        if theirs is None:
            raise UnsupportedVersion(f"{self._broker} does not offer {api.name}: a newer broker is needed")
        version = min(ours[1], theirs[1])
        if version < max(ours[0], theirs[0]):
            raise UnsupportedVersion(
                f"{self._broker} speaks versions {theirs[0]} to {theirs[1]} of {api.name}, "
                f"and {ours[0]} to {ours[1]} are needed: a {'newer' if theirs[1] < ours[0] else 'older'} "
                "broker would do"
            )
        return version


def after_refusal(reply: ApiVersionsReply) -> int:
    """The version of ApiVersions to ask for again, after a broker refused ours (KIP-511).

    The refusal names the range it does speak; older brokers name nothing, and speak version 0.
    """
    for one in reply.api_keys:
        if one.api_key == API_VERSIONS.key:
            return max(0, min(one.max_version, FIRST_ASKED))
    return 0
