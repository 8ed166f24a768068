"""A codec builds and reads any attrs class: names and type hints are all that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Any, ClassVar

import attrs
import pytest

from rafka.types import message
from rafka.wire.apis.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.list_offsets import LIST_OFFSETS
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.errors import UnwritableError, WireError


@message
class Wanted:
    partition_index: int
    timestamp: int
    tried: int = 0  # the wire knows nothing of it


@message
class WantedTopic:
    name: str
    partitions: tuple[Wanted, ...]


@message
class ListOffsets:
    code: ClassVar[int] = 2

    topics: Sequence[WantedTopic]
    isolation_level: int
    notes: list[str] = attrs.field(factory=list)


def list_offsets_body(version: int) -> bytes:
    out = bytearray()
    cls = LIST_OFFSETS.Request
    partitions = [cls.Topics.Partitions(partition_index=i, timestamp=-i) for i in range(3)]
    value = cls(replica_id=7, isolation_level=1, topics=[cls.Topics(name="orders", partitions=partitions)])
    LIST_OFFSETS.request_encoder(version)(value, out)
    return bytes(out)


@pytest.mark.parametrize("version", LIST_OFFSETS.versions)
def test_an_op_is_built_from_the_fields_that_it_names(version: int) -> None:
    body = list_offsets_body(version)
    op, end = LIST_OFFSETS.request_decoder(version, ListOffsets)(body, 0)

    partitions = tuple(Wanted(partition_index=i, timestamp=-i) for i in range(3))
    assert op == ListOffsets(
        topics=[WantedTopic(name="orders", partitions=partitions)],
        isolation_level=1 if version >= 2 else 0,  # the wire's default, where the version does not bring it
    )
    assert end == len(body)


def test_each_object_has_factory_made_values_of_its_own() -> None:
    decode = LIST_OFFSETS.request_decoder(1, ListOffsets)
    one, other = (decode(list_offsets_body(1), 0)[0] for _ in range(2))
    assert one.notes == other.notes == []
    assert one.notes is not other.notes


def test_a_factory_may_look_at_the_object_that_it_is_for() -> None:
    @attrs.define(kw_only=True)
    class Named:
        group_id: str
        shout: str = attrs.Factory(lambda self: type(self).__name__.upper(), takes_self=True)

    body = b"\x00\x01g" + pack(">i", 1) + b"\x00\x01m"
    assert HEARTBEAT.request_decoder(0, Named)(body, 0)[0] == Named(group_id="g")


@pytest.mark.parametrize("version", LIST_OFFSETS.versions)
def test_what_an_object_lacks_is_written_as_the_default(version: int) -> None:
    partitions = (Wanted(partition_index=0, timestamp=-1),)
    op = ListOffsets(topics=[WantedTopic(name="t", partitions=partitions)], isolation_level=1)
    cls = LIST_OFFSETS.Request
    same = cls(
        isolation_level=1,
        topics=[cls.Topics(name="t", partitions=[cls.Topics.Partitions(partition_index=0, timestamp=-1)])],
    )
    out, expected = bytearray(), bytearray()
    LIST_OFFSETS.request_encoder(version, ListOffsets)(op, out)
    LIST_OFFSETS.request_encoder(version)(same, expected)
    assert out == expected


@message
class Nothing:
    """Not one field of any message."""


@pytest.mark.parametrize(
    "api", [FETCH, PRODUCE, METADATA, DESCRIBE_TOPIC_PARTITIONS], ids=lambda api: api.name
)
def test_a_class_without_fields_passes_over_all_and_writes_defaults(api: Any) -> None:
    for version in api.versions:
        out, expected = bytearray(), bytearray()
        splices: list[Any] = []
        more = (splices,) if api.response_splices else ()
        api.response_encoder(version, Nothing)(Nothing(), out, *more)
        api.response_encoder(version)(api.Response(), expected, *more)
        assert (out, splices) == (expected, [])
        assert api.response_decoder(version, Nothing)(out, 0) == (Nothing(), len(out))


def test_what_is_passed_over_is_checked_all_the_same() -> None:
    decode = HEARTBEAT.request_decoder(0, Nothing)
    assert decode(b"\x00\x01g" + pack(">i", 1) + b"\x00\x01m", 0)[1] == 10
    with pytest.raises(WireError, match="member_id is null"):
        decode(b"\x00\x01g" + pack(">i", 1) + b"\xff\xff", 0)
    with pytest.raises(WireError, match="cut short"):
        decode(b"\x00\x01g" + pack(">i", 1) + b"\x00\x02m", 0)


@message
class Place:
    topic_name: str = ""
    partition_index: int = 0


@message
class Page:
    cursor: Place | None


def test_a_struct_that_may_be_null_is_an_object_or_none() -> None:
    encode = DESCRIBE_TOPIC_PARTITIONS.request_encoder(0, Page)
    decode = DESCRIBE_TOPIC_PARTITIONS.request_decoder(0, Page)
    for page in (Page(cursor=None), Page(cursor=Place(topic_name="t", partition_index=3))):
        out = bytearray()
        encode(page, out)
        assert decode(out, 0) == (page, len(out))


def test_a_tagged_struct_of_defaults_does_not_travel() -> None:
    leader = PRODUCE.Response.Responses.PartitionResponses.CurrentLeader

    def written(current_leader: object) -> bytes:
        partition = PRODUCE.Response.Responses.PartitionResponses(current_leader=current_leader)
        topic = PRODUCE.Response.Responses(partition_responses=[partition])
        out = bytearray()
        PRODUCE.response_encoder(10)(PRODUCE.Response(responses=[topic]), out)
        return bytes(out)

    assert written(leader()) == written(None)
    assert len(written(leader(leader_id=1))) == len(written(None)) + 2 + 9


# --- records -------------------------------------------------------------------------


def produce_body(records: bytes) -> bytes:
    out = bytearray()
    cls = PRODUCE.Request
    partition = cls.TopicData.PartitionData(index=0, records=records)
    splices: list[tuple[int, bytes]] = []
    PRODUCE.request_encoder(9)(
        cls(topic_data=[cls.TopicData(name="t", partition_data=[partition])]), out, splices
    )
    ((at, piece),) = splices
    return bytes(out[:at]) + piece + bytes(out[at:])


def test_records_are_a_view_of_the_frame() -> None:
    frame = bytearray(produce_body(b"batch"))
    request, _ = PRODUCE.request_decoder(9)(memoryview(frame), 0)
    records = request.topic_data[0].partition_data[0].records

    assert isinstance(records, memoryview)
    frame[frame.index(b"batch")] = ord("w")
    assert bytes(records) == b"watch"


def test_records_are_written_between_uncopied() -> None:
    cls = FETCH.Response
    pieces = [b"one", memoryview(b"three"), b""]
    partitions = [
        cls.Responses.Partitions(partition_index=0, records=b"whole"),
        cls.Responses.Partitions(partition_index=1, records=pieces),
        cls.Responses.Partitions(partition_index=2, records=b""),
    ]
    out, splices = bytearray(), list[tuple[int, Any]]()
    FETCH.response_encoder(4)(cls(responses=[cls.Responses(topic="t", partitions=partitions)]), out, splices)

    assert [piece for _, piece in splices] == [b"whole", *pieces]
    assert [out[at - 4 : at] for at, _ in splices] == [pack(">i", 5)] + [pack(">i", 8)] * 3
    assert FETCH.response_splices
    assert not FETCH.request_splices


# --- refused -------------------------------------------------------------------------


def test_a_class_frozen_at_run_time_is_refused() -> None:
    @attrs.frozen
    class Frozen:
        group_id: str

    with pytest.raises(TypeError, match="is frozen"):
        HEARTBEAT.request_decoder(4, Frozen)


def test_a_field_that_nobody_can_fill_is_refused() -> None:
    @attrs.define
    class Odd:
        colour: str

    with pytest.raises(TypeError, match="colour has no default"):
        HEARTBEAT.request_decoder(4, Odd)


def test_elements_of_no_attrs_class_are_refused() -> None:
    @attrs.define
    class Vague:
        topics: list[Any]

    with pytest.raises(TypeError, match="names no attrs class"):
        LIST_OFFSETS.request_decoder(4, Vague)


@message
class LedPartition:
    current_leader: Place


@message
class LedTopic:
    partitions: list[LedPartition]


@message
class LedReply:
    responses: list[LedTopic]


def test_a_struct_that_is_not_always_there_must_be_optional() -> None:
    with pytest.raises(TypeError, match=r"current_leader is not always there"):
        FETCH.response_decoder(12, LedReply)


@pytest.mark.parametrize("version", [-1, 5, 999])
def test_a_version_that_is_not_there_is_refused(version: int) -> None:
    with pytest.raises(ValueError, match="has no version"):
        HEARTBEAT.request_decoder(version)


@pytest.mark.parametrize(
    ("api", "version", "value"),
    [
        (HEARTBEAT, 0, HEARTBEAT.Request(group_id=None)),
        (HEARTBEAT, 4, HEARTBEAT.Request(group_id="x" * 32768)),
        (HEARTBEAT, 0, HEARTBEAT.Request(group_id="x" * 32768)),
        (HEARTBEAT, 4, HEARTBEAT.Request(generation_id=2**31)),
        (METADATA, 0, METADATA.Request(topics=None)),
    ],
)
def test_what_has_no_form_on_the_wire_is_said_to_have_none(api: Any, version: int, value: object) -> None:
    with pytest.raises(UnwritableError, match=f"{api.name} request v{version}"):
        api.request_encoder(version)(value, bytearray())
