"""The codecs as cattrs hooks."""

from __future__ import annotations

from struct import pack

import pytest

from rafka.types import message
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.convert import Bound, wire_converter


@message
class Heartbeat:
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@message
class HeartbeatReply:
    error_code: int = 0


BOUND = [Bound(HEARTBEAT, Heartbeat, HeartbeatReply), Bound(PRODUCE, request=PRODUCE.Request)]


@pytest.mark.parametrize("version", HEARTBEAT.versions)
def test_an_op_goes_to_bytes_and_back(version: int) -> None:
    converter = wire_converter(version, BOUND)
    op = Heartbeat(group_id="g", generation_id=3, member_id="ann")
    body = converter.unstructure(op)

    assert body[: 3 if version < 4 else 2] == (b"\x00\x01g" if version < 4 else b"\x02g")
    assert converter.structure(memoryview(body), Heartbeat) == op


def test_each_version_has_a_converter_of_its_own() -> None:
    bodies = {bytes(wire_converter(version, BOUND).unstructure(HeartbeatReply())) for version in (0, 1, 4)}
    assert bodies == {pack(">h", 0), pack(">ih", 0, 0), pack(">ih", 0, 0) + b"\x00"}


def test_record_batches_are_joined() -> None:
    converter = wire_converter(9, BOUND)
    topic = PRODUCE.Request.TopicData
    partition = topic.PartitionData(index=1, records=b"batch")
    request = PRODUCE.Request(topic_data=[topic(name="t", partition_data=[partition])])
    assert converter.structure(converter.unstructure(request), PRODUCE.Request) == request


def test_a_version_is_only_missed_when_it_is_used() -> None:
    converter = wire_converter(13, BOUND)
    assert converter.unstructure(PRODUCE.Request())
    with pytest.raises(ValueError, match="Heartbeat has no version 13"):
        converter.unstructure(HeartbeatReply())
