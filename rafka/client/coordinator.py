"""The broker that coordinates a group or a transactional id: found when asked, and again when it has moved.

A coordinator may be another broker tomorrow, or still be loading what it has to know. Both are
passing errors; whoever asks through here is spared them for as long as one call may take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ..errors import ErrorCode
from .cluster import GENERAL, Cluster
from .errors import (
    ClientError,
    ConnectionLost,
    RequestTimedOut,
    UnsupportedVersion,
    error_code,
    group_named,
    refused,
)
from .messages import FindCoordinator, Request
from .messages.group import FoundCoordinator
from .model import Node

ReplyT = TypeVar("ReplyT")

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
MANY_KEYS: Final = 4  # the first version of FindCoordinator that takes more than one key

MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
PASSING: Final = MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNSTABLE_OFFSET_COMMIT}


class Coordinator:
    """Of one group, or of one transactional id."""

    def __init__(self, cluster: Cluster, group_id: str, key_type: int = GROUP_KEY) -> None:
        self.group_id: Final = group_id
        self._key_type = key_type
        self._cluster = cluster
        self._node_id: int | None = None

    async def node_id(self) -> int:
        """Who it is. One try; what fails may be tried again where `retriable` says so."""
        if self._node_id is None:
            nodes = await find_coordinators(self._cluster, [self.group_id], self._key_type)
            self._node_id = nodes[self.group_id].node_id
        return self._node_id

    def forget(self) -> None:
        """Find it anew before the next question."""
        self._node_id = None

    async def ask_once(
        self,
        request: Request[ReplyT],
        *,
        purpose: str = GENERAL,
        within: float | None = None,
        at_least: int = 0,
    ) -> ReplyT:
        """Its answer, whatever error code is in it. A coordinator that cannot be asked is forgotten."""
        if within is None:
            within = self._cluster.settings.request_timeout
        try:
            connection = await self._cluster.connection(await self.node_id(), purpose)
            return await connection.ask(request, within=within, at_least=at_least)
        except (ConnectionLost, RequestTimedOut):
            self.forget()
            raise

    async def ask(
        self,
        request: Request[ReplyT],
        codes: Callable[[ReplyT], Iterable[int]],
        *,
        at_least: int = 0,
    ) -> ReplyT:
        """Its answer, once none of the codes in it is a passing one."""

        async def once() -> ReplyT:
            reply = await self.ask_once(request, at_least=at_least)
            for number in codes(reply):
                self.check(number)
            return reply

        return await self._cluster.persist(once)

    def check(self, number: int) -> None:
        """Raise where a code says: not here, or not now."""
        code = error_code(number)
        if code in MOVED:
            self.forget()
        if code in PASSING:
            raise refused(number, _named(self.group_id, self._key_type))


async def find_coordinators(
    cluster: Cluster, keys: Sequence[str], key_type: int = GROUP_KEY
) -> dict[str, Node]:
    """Who coordinates each of these groups, or transactional ids. One try."""
    try:
        found = await _find_together(cluster, keys, key_type)
    except UnsupportedVersion:
        found = [await _find_one(cluster, key, key_type) for key in keys]
    nodes = {}
    for one in found:
        if one.error_code:
            raise _not_found(one, key_type)
        node = Node(node_id=one.node_id, host=one.host, port=one.port)
        cluster.meet(node)
        nodes[one.key] = node
    return nodes


async def _find_together(cluster: Cluster, keys: Sequence[str], key_type: int) -> list[FoundCoordinator]:
    request = FindCoordinator(key="", coordinator_keys=list(keys), key_type=key_type)
    return (await cluster.ask_any(request, at_least=MANY_KEYS)).coordinators


async def _find_one(cluster: Cluster, key: str, key_type: int) -> FoundCoordinator:
    reply = await cluster.ask_any(FindCoordinator(key=key, coordinator_keys=[key], key_type=key_type))
    return FoundCoordinator(
        key=key,
        node_id=reply.node_id,
        host=reply.host,
        port=reply.port,
        error_code=reply.error_code,
        error_message=reply.error_message,
    )


def _named(key: str, key_type: int) -> str:
    return group_named(key) if key_type == GROUP_KEY else f"transactional id {key!r}"


def _not_found(answer: FoundCoordinator, key_type: int) -> ClientError:
    # Kafka sends the message "NONE" or an empty one where there is nothing to say.
    message = answer.error_message if answer.error_message not in ("", "NONE") else None
    return refused(answer.error_code, _named(answer.key, key_type), message)
