"""Facts become bytes and are facts again; what an older or newer rafka wrote is told apart."""

from __future__ import annotations

import attrs
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.machines.facts import FactRegistry, UnreadableFact, fact
from rafka.types import OrgId, TopicId, message


@message
class Placement:
    partition: int
    note: str | None


@fact("topic-created")
class TopicCreated:
    org: OrgId
    name: str
    topic_id: TopicId
    placements: tuple[Placement, ...]
    configs: dict[str, str]


@fact("offsets-committed")
class OffsetsCommitted:
    offsets: dict[tuple[str, int], int]


@fact("closed")
class Closed:
    pass


REGISTRY = FactRegistry([TopicCreated, OffsetsCommitted, Closed])


def there_and_back(kept: object) -> object:
    return REGISTRY.unpack(*REGISTRY.pack(kept))


@given(
    st.text(),
    st.binary(min_size=16, max_size=16),
    st.lists(st.none() | st.text()),
    st.dictionaries(st.text(), st.text()),
)
def test_a_fact_comes_back_as_it_was(
    name: str, topic_id: bytes, notes: list[str | None], configs: dict[str, str]
) -> None:
    created = TopicCreated(
        org=OrgId("default"),
        name=name,
        topic_id=TopicId(topic_id),
        placements=tuple(Placement(partition=at, note=note) for at, note in enumerate(notes)),
        configs=configs,
    )

    assert there_and_back(created) == created


def test_a_pair_may_be_the_key_of_a_dict() -> None:
    committed = OffsetsCommitted(offsets={("orders", 3): 17, ("orders", 4): 2**63 - 1})

    assert there_and_back(committed) == committed


@fact("shelved")
class Shelved:
    """Plain values, nested, which go to bytes as they are; and one class, which does not."""

    rows: tuple[tuple[OrgId, list[int | None]], ...]
    by_name: dict[str, bytes] | None
    place: Placement


def test_nested_plain_values_come_back_beside_classes() -> None:
    registry = FactRegistry([Shelved])
    shelved = Shelved(
        ((OrgId("a"), [1, None]), (OrgId("b"), [])), {"x": b"\xff"}, Placement(partition=1, note="n")
    )

    tag, packed = registry.pack(shelved)

    assert registry.unpack(tag, packed) == shelved
    assert msgpack.unpackb(packed)["place"] == {"partition": 1, "note": "n"}


def test_a_fact_that_does_not_fit_into_bytes_leaves_nothing_behind() -> None:
    committed = OffsetsCommitted(offsets={("orders", 3): 2**70})
    with pytest.raises(OverflowError):
        REGISTRY.pack(committed)

    assert there_and_back(Closed()) == Closed()


def test_a_fact_without_fields_comes_back_too() -> None:
    assert there_and_back(Closed()) == Closed()


def test_the_tag_and_the_names_of_the_fields_are_what_is_kept() -> None:
    tag, packed = REGISTRY.pack(OffsetsCommitted(offsets={}))

    assert tag == b"offsets-committed"
    assert msgpack.unpackb(packed) == {"offsets": {}}


def test_a_field_that_is_no_longer_declared_is_passed_over() -> None:
    newer = msgpack.packb({"offsets": {}, "retention": 7})

    assert REGISTRY.unpack(b"offsets-committed", newer) == OffsetsCommitted(offsets={})


def test_a_field_that_was_added_with_a_default_may_be_absent() -> None:
    @fact("joined")
    class Joined:
        member: str
        rack: str | None = None

    registry = FactRegistry([Joined])

    assert registry.unpack(b"joined", msgpack.packb({"member": "ann"})) == Joined(member="ann")


def test_an_unknown_tag_is_refused_in_words() -> None:
    with pytest.raises(UnreadableFact, match="'share-group-made' are unknown to this version"):
        REGISTRY.unpack(b"share-group-made", msgpack.packb({}))


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x81", msgpack.packb(7), msgpack.packb({}), msgpack.packb({"offsets": 3}), b"\xc1"],
    ids=["empty", "cut", "a number", "no fields", "wrong type", "no msgpack"],
)
def test_fields_that_do_not_fit_are_refused_in_words(packed: bytes) -> None:
    with pytest.raises(UnreadableFact, match="'offsets-committed' does not have the fields"):
        REGISTRY.unpack(b"offsets-committed", packed)


def test_two_facts_cannot_share_a_tag() -> None:
    @fact("closed")
    class Shut:
        pass

    with pytest.raises(ValueError, match=r"'closed' is taken twice: by Closed and .*Shut"):
        FactRegistry([Closed, Shut])


def test_a_class_that_is_not_marked_is_no_fact_even_if_its_base_is() -> None:
    @attrs.define
    class Reopened(Closed):
        pass

    with pytest.raises(TypeError, match="Reopened is not marked with @fact"):
        FactRegistry([Reopened])


def test_a_fact_that_was_not_registered_cannot_be_packed() -> None:
    with pytest.raises(TypeError, match="Placement is not in the registry"):
        REGISTRY.pack(Placement(partition=0, note=None))
