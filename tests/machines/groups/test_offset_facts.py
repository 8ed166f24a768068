"""Facts of offsets as they lie in journals: these bytes have been written, and must be read for ever."""

from __future__ import annotations

import msgpack
import pytest

from rafka.machines.groups.offset_facts import (
    OFFSET_FACTS,
    OffsetFact,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsKept,
    PendingOffsets,
    PendingSettled,
)

from .offset_kit import NOW, REGISTRY

ID = bytes(range(16))
TOPICS = ((ID, "t", ((0, 5, -1, ""), (1, 2**63 - 1, 3, "é"))),)

IN_THE_JOURNAL = [
    (
        OffsetsCommitted("default", "g", NOW, TOPICS, NOW + 1),
        b"offsets-committed",
        {"org": "default", "group_id": "g", "at_ms": NOW, "topics": TOPICS, "expire_ms": NOW + 1},
    ),
    (
        OffsetsDeleted("default", "g", ((ID, (0, 1)),)),
        b"offsets-deleted",
        {"org": "default", "group_id": "g", "topics": ((ID, (0, 1)),)},
    ),
    (
        PendingOffsets("default", "g", 7, 3, NOW, TOPICS),
        b"offsets-pending",
        {
            "org": "default",
            "group_id": "g",
            "producer_id": 7,
            "producer_epoch": 3,
            "at_ms": NOW,
            "topics": TOPICS,
        },
    ),
    (
        PendingSettled("default", "g", 7, True),
        b"offsets-settled",
        {"org": "default", "group_id": "g", "producer_id": 7, "committed": True},
    ),
    (
        OffsetsKept("default", "g", ID, "t", ((0, 5, -1, "", NOW, None), (1, 6, 2, "m", NOW, NOW + 1))),
        b"offsets-kept",
        {
            "org": "default",
            "group_id": "g",
            "topic_id": ID,
            "name": "t",
            "partitions": ((0, 5, -1, "", NOW, None), (1, 6, 2, "m", NOW, NOW + 1)),
        },
    ),
]


@pytest.mark.parametrize(
    ("fact", "tag", "fields"),
    IN_THE_JOURNAL,
    ids=[tag.decode() for _, tag, _ in IN_THE_JOURNAL],
)
def test_a_fact_is_written_and_read_as_it_always_was(
    fact: OffsetFact, tag: bytes, fields: dict[str, object]
) -> None:
    written_tag, written = REGISTRY.pack(fact)

    assert written_tag == tag
    assert msgpack.unpackb(written, use_list=False) == fields
    assert REGISTRY.unpack(tag, msgpack.packb(fields)) == fact


def test_no_fact_is_left_out() -> None:
    assert {type(fact) for fact, _, _ in IN_THE_JOURNAL} == set(OFFSET_FACTS)
