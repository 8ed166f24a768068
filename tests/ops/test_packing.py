"""Ops and replies survive the way to another process, also to one of another day."""

from __future__ import annotations

import collections.abc
import pkgutil
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

import attrs
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rafka.ops
from rafka.errors import ErrorCode
from rafka.gateway.routes import ROUTES
from rafka.ops import group, log, offsets, packing
from rafka.ops.base import Envelope, KafkaOp
from rafka.ops.packing import (
    UnknownOp,
    UnreadableOp,
    envelope_fields,
    envelope_of,
    pack_op,
    pack_reply,
    packing_of,
    unpack_op,
    unpack_reply,
)

CODES: Final = sorted(packing._ops())
FIELDS: Final = Path(__file__).with_name("packed_fields.txt")
EXAMPLES: Final = 15  # of each class; there are many


def values(wanted: Any) -> st.SearchStrategy[Any]:
    """Whatever a field of this type may hold."""
    while hasattr(wanted, "__supertype__"):
        wanted = wanted.__supertype__
    origin = get_origin(wanted)
    if origin in (Union, UnionType):
        parts = [part for part in get_args(wanted) if part is not NoneType]
        one = st.binary(max_size=20) if memoryview in parts else values(parts[0])
        return one | st.none() if len(parts) < len(get_args(wanted)) else one
    if origin is list:
        return st.lists(values(get_args(wanted)[0]), max_size=2)
    if origin in (tuple, collections.abc.Sequence):
        return st.lists(values(get_args(wanted)[0]), max_size=2).map(tuple)
    if wanted is ErrorCode:
        return st.sampled_from(ErrorCode)
    if attrs.has(wanted):
        return objects(wanted)
    plain: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(-(2**63), 2**63 - 1),
        str: st.text(max_size=10),
        bytes: st.binary(max_size=20),
    }
    return plain[wanted]


def objects(cls: type[Any]) -> st.SearchStrategy[Any]:
    fields = attrs.fields(attrs.resolve_types(cls))
    return st.builds(cls, **{field.name: values(field.type) for field in fields})


@pytest.mark.parametrize("code", CODES, ids=lambda code: KafkaOp(code).name)
def test_every_op_and_every_reply_comes_back_as_it_went(code: KafkaOp) -> None:
    ways = packing_of(code)

    @settings(max_examples=EXAMPLES)
    @given(objects(ways.op), objects(ways.reply))
    def round_trip(op: Any, reply: Any) -> None:
        assert unpack_op(pack_op(op)) == op
        assert unpack_reply(code, pack_reply(code, reply)) == reply

    round_trip()


@given(objects(Envelope))
def test_an_envelope_comes_back_as_it_went(envelope: Envelope) -> None:
    assert envelope_of(msgpack.unpackb(msgpack.packb(envelope_fields(envelope)))) == envelope


def test_every_op_that_has_a_route_can_be_packed() -> None:
    for route in ROUTES.values():
        if route.op is not None:
            assert packing_of(route.op.code).op is route.op
            assert packing_of(route.op.code).reply is route.reply


def test_no_file_of_ops_is_forgotten() -> None:
    files = {module.name for module in pkgutil.iter_modules(rafka.ops.__path__)} - {
        "base",
        "packing",
        "features",
    }

    assert files == {module.__name__.rpartition(".")[2] for module in packing.MODULES}


# --- shapes ---------------------------------------------------------------------------------------


def test_an_op_is_its_code_and_the_array_of_its_fields() -> None:
    op = group.Heartbeat(group_id="g", generation_id=3, member_id="m")

    assert msgpack.unpackb(pack_op(op)) == [0x08, ["g", 3, "m", None]]


def test_batches_are_binary_and_come_back_as_views_that_copy_nothing_when_cut() -> None:
    data = log.PartitionData(index=0, records=memoryview(b"a batch"))
    op = log.Produce(acks=1, timeout_ms=1, topic_data=[log.TopicData(name="t", partition_data=[data])])

    found = unpack_op(pack_op(op))

    assert isinstance(found, log.Produce)
    [records] = [p.records for topic in found.topic_data for p in topic.partition_data]
    assert isinstance(records, memoryview)
    assert bytes(records) == b"a batch"


def test_codes_are_themselves_again() -> None:
    reply = unpack_reply(
        KafkaOp.HEARTBEAT,
        pack_reply(KafkaOp.HEARTBEAT, group.HeartbeatReply(error_code=ErrorCode.REBALANCE_IN_PROGRESS)),
    )

    assert reply.error_code is ErrorCode.REBALANCE_IN_PROGRESS


# --- another day ----------------------------------------------------------------------------------


def test_fields_that_an_older_sender_does_not_know_take_their_defaults() -> None:
    found = unpack_op(msgpack.packb([KafkaOp.JOIN_GROUP, ["g", 1000, 2000, "m", None, "consumer", []]]))

    assert found == group.JoinGroup(
        group_id="g",
        session_timeout_ms=1000,
        rebalance_timeout_ms=2000,
        member_id="m",
        protocol_type="consumer",
        protocols=[],
    )


def test_fields_that_a_newer_sender_has_added_are_passed_over() -> None:
    found = unpack_op(msgpack.packb([KafkaOp.HEARTBEAT, ["g", 3, "m", None, "new", {"a": 1}]]))

    assert found == group.Heartbeat(group_id="g", generation_id=3, member_id="m")


def test_an_error_that_only_a_newer_broker_has_is_one_that_was_not_foreseen() -> None:
    assert unpack_reply(KafkaOp.HEARTBEAT, msgpack.packb([9999])).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_op_that_only_a_newer_gateway_has_is_unknown() -> None:
    with pytest.raises(UnknownOp, match="0xfff"):
        unpack_op(msgpack.packb([0xFFF, []]))


def test_a_field_without_a_default_has_to_be_there() -> None:
    with pytest.raises(UnreadableOp, match="Heartbeat came without member_id"):
        unpack_op(msgpack.packb([KafkaOp.HEARTBEAT, ["g", 3]]))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xc1",
        msgpack.packb(7),
        msgpack.packb([1, 2, 3]),
        msgpack.packb([KafkaOp.PRODUCE, 7]),
        msgpack.packb([KafkaOp.PRODUCE, [None, 1, 1, 7]]),
        msgpack.packb([KafkaOp.PRODUCE, [None, 1, 1, [7]]]),
    ],
    ids=["nothing", "no msgpack", "no array", "too long", "no fields", "no list", "no topic"],
)
def test_nonsense_is_one_kind_of_error(packed: bytes) -> None:
    with pytest.raises(UnreadableOp):
        unpack_op(packed)


@pytest.mark.parametrize(
    ("fields", "which"),
    [
        ([7, 3, "m"], "Heartbeat.group_id"),
        ([None, 3, "m"], "Heartbeat.group_id"),
        (["g", True, "m"], "Heartbeat.generation_id"),
        (["g", 3.0, "m"], "Heartbeat.generation_id"),
        (["g", 3, b"m"], "Heartbeat.member_id"),
        (["g", 3, "m", {}], "Heartbeat.group_instance_id"),
    ],
    ids=repr,
)
def test_a_field_holds_what_its_class_says(fields: list[Any], which: str) -> None:
    """Nobody behind a link looks again: what is no text might be anything, and end an actor."""
    with pytest.raises(UnreadableOp, match=f"what came for {which} is of another type"):
        unpack_op(msgpack.packb([KafkaOp.HEARTBEAT, fields]))


@pytest.mark.parametrize(
    "topics",
    ["t", {"t": 1}, ["t"], [["t", b"", 0]], [["t", b"", ["0"]]], [["t", b"", "0"]], [[["t"], b"", [0]]]],
    ids=repr,
)
def test_so_does_what_it_contains(topics: Any) -> None:
    with pytest.raises(UnreadableOp, match=r"FetchOffsetsTopic|OffsetFetch\.topics"):
        unpack_op(msgpack.packb([KafkaOp.OFFSET_FETCH, ["g", topics, []]]))


def test_known_fields_keep_their_places() -> None:
    """The promise to gateways and brokers of other releases: what was packed once stays where it was.

    New fields go to the end and have a default. After anything else raise `packing.VERSION`; either
    way, `python -m tests.ops.test_packing` writes the file anew before a release.
    """
    version, *lines = FIELDS.read_text().splitlines()
    assert version == f"version {packing.VERSION}"
    classes = packed_classes()

    for line in lines:
        name, *known = line.split()
        assert name in classes, f"{name} is gone, or named otherwise"
        fields = attrs.fields(classes[name])
        assert [field.name for field in fields[: len(known)]] == known, f"fields of {name} were moved"
        for field in fields[len(known) :]:
            assert field.default is not attrs.NOTHING, f"{name}.{field.name} is new and has no default"


def packed_classes() -> dict[str, type[Any]]:
    """Every class that crosses a link, by the file it stands in and its name."""
    found: dict[str, type[Any]] = {}

    def look(wanted: Any) -> None:
        if attrs.has(wanted):
            name = f"{wanted.__module__.rpartition('.')[2]}.{wanted.__name__}"
            if name not in found:
                found[name] = wanted
                for field in attrs.fields(attrs.resolve_types(wanted)):
                    look(field.type)
        for inner in get_args(wanted):
            look(inner)

    for code in CODES:
        look(packing_of(code).op)
        look(packing_of(code).reply)
    look(Envelope)
    return found


@given(objects(group.SyncGroup))
def test_a_sync_without_its_assignments_is_the_same_in_all_else(op: group.SyncGroup) -> None:
    left = op.without_assignments()

    others = [
        field for field in packing._fields(group.SyncGroup) if field.name not in ("assignments", "too_large")
    ]
    assert [getattr(left, field.name) for field in others] == [getattr(op, field.name) for field in others]
    assert (left.assignments, left.too_large) == ([], True)


def test_a_commit_of_many_partitions_is_small() -> None:
    """The cap on group ops is a mebibyte: names are sent once, and numbers are short."""
    partitions = [offsets.CommitPartition(partition_index=n, committed_offset=n * 1000) for n in range(1000)]
    topic = offsets.CommitTopic(name="orders", partitions=partitions)

    packed = pack_op(offsets.OffsetCommit(group_id="g", topics=[topic]))

    assert len(packed) < 15_000


def write_fields() -> None:
    """What this release packs, a class in each line."""
    classes = sorted(packed_classes().items())
    lines = [" ".join([name, *(field.name for field in attrs.fields(cls))]) for name, cls in classes]
    FIELDS.write_text("\n".join([f"version {packing.VERSION}", *lines, ""]))


if __name__ == "__main__":
    write_fields()
