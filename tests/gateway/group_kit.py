"""Requests of groups in any version, and a link that answers them as a test says."""

from __future__ import annotations

from typing import Any

from rafka.errors import ErrorCode, KafkaError
from rafka.ops.base import Envelope
from rafka.types import TopicId
from rafka.wire.api import Api
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.sync_group import SYNC_GROUP

from .kit import Client, ScriptedLink, request

TOPIC_ID = TopicId(b"sixteen bytes...")
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


async def ask(client: Client, api: Api, version: int, body: Any) -> Any:
    await client.send(request(api, version, body))
    return await client.reply(api, version)


def answer(link: ScriptedLink, op: type[Any], reply: Any) -> None:
    """Have every op of this type answered so; an error is a refusal."""

    def told(_: Envelope, __: Any) -> Any:
        if isinstance(reply, ErrorCode):
            raise KafkaError(reply)
        return reply

    link.answers[op] = told


def joining(**given: Any) -> Any:
    protocols = [JOIN_GROUP.Request.Protocols(name="range", metadata=b"m")]
    return JOIN_GROUP.Request(
        **{
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": protocols,
            **given,
        }
    )


def syncing(**given: Any) -> Any:
    return SYNC_GROUP.Request(**{"group_id": "g", "generation_id": 1, "member_id": "ann", **given})


def fetching(version: int) -> Any:
    """Offsets of two partitions of one group."""
    if version >= 8:
        asked_group = OFFSET_FETCH.Request.Groups(group_id="g")
        topic = OFFSET_FETCH.Request.Groups.Topics(name="t", topic_id=TOPIC_ID, partition_indexes=[1, 2])
        asked_group.topics = [topic]
        return OFFSET_FETCH.Request(groups=[asked_group])
    topic = OFFSET_FETCH.Request.Topics(name="t", partition_indexes=[1, 2])
    return OFFSET_FETCH.Request(group_id="g", topics=[topic], require_stable=version >= 7)
