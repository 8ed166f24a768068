"""The catalogue: what may be made, and that its facts lead back to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.catalog import (
    CATALOG_FACTS,
    Catalog,
    CatalogFact,
    ClusterCreated,
    ConfigsSet,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    valid_name,
)
from rafka.machines.facts import FactRegistry
from rafka.types import OrgId, TopicId

US, THEM = OrgId("us"), OrgId("them")
TOPIC, BROKER = 2, 4


def created(name: str, org: OrgId = US, number: int = 1, partitions: int = 1) -> TopicCreated:
    return TopicCreated(
        org=org, name=name, topic_id=number.to_bytes(16, "big"), partitions=partitions, configs={}
    )


def catalog_of(*facts: CatalogFact) -> Catalog:
    catalog = Catalog()
    for fact in facts:
        catalog.apply(fact)
    return catalog


def refused(catalog: Catalog, name: str, org: OrgId = US) -> ErrorCode:
    try:
        catalog.check_new_name(org, name)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


# --- names -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "con", "x" * 249, "...", "-", "_"])
def test_names_that_a_topic_may_have(name: str) -> None:
    """LF-069."""
    assert valid_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "a b", "a/b", "../../etc/passwd", "a\0b", "a\n", "ä", "٣", "\ufffd"],
)
def test_names_that_no_topic_may_have(name: str) -> None:
    """T4, LF-069; bad input 86."""
    assert not valid_name(name)
    assert refused(Catalog(), name) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_topic_of_metadata_is_not_for_clients() -> None:
    """T2."""
    assert refused(Catalog(), "__cluster_metadata") == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["t", "__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_a_topic_that_exists_is_not_made_again(name: str) -> None:
    """T5: the internal ones exist always."""
    assert refused(catalog_of(created("t")), name) == ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_differ_in_dots_and_underscores_only_collide() -> None:
    """T4; section 8."""
    catalog = catalog_of(created("a_b.c"))

    assert refused(catalog, "a.b.c") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused(catalog, "a_b_c") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused(catalog, "a-b.c") == ErrorCode.NONE
    assert refused(catalog, "a_b.c") == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_name_is_free_again_once_its_topic_is_gone() -> None:
    catalog = catalog_of(created("a_b"), created("a.b", number=2), TopicDeleted(org=US, name="a_b"))

    assert refused(catalog, "a_b") == ErrorCode.INVALID_TOPIC_EXCEPTION, "the other one still collides"
    catalog.apply(TopicDeleted(org=US, name="a.b"))
    assert refused(catalog, "a_b") == ErrorCode.NONE
    assert catalog == Catalog(), "nothing is left behind"


# --- organisations ----------------------------------------------------------------------------


def test_organisations_do_not_see_each_other() -> None:
    catalog = catalog_of(
        created("t", US, 1),
        created("t", THEM, 2),
        ConfigsSet(org=US, resource_type=32, resource_name="g", configs={"a": "1"}),
    )

    assert [topic.topic_id[-1] for topic in catalog.of(US)] == [1]
    assert refused(catalog, "a.b", THEM) == ErrorCode.NONE
    assert catalog.need_id(US, TopicId(bytes(15) + b"\1")).name == "t"
    with pytest.raises(KafkaError) as error:
        catalog.need_id(US, TopicId(bytes(15) + b"\2"))
    assert error.value.code == ErrorCode.UNKNOWN_TOPIC_ID
    assert catalog.overrides(THEM, 32, "g") == {}
    assert catalog.overrides(US, 32, "g") == {"a": "1"}


# --- what is deleted -------------------------------------------------------------------------


def test_a_topic_to_be_deleted_is_found_by_name_or_by_id() -> None:
    """D1."""
    catalog = catalog_of(created("t"))

    assert catalog.delete(US, "t", TopicId(bytes(16))).name == "t"
    assert catalog.delete(US, None, TopicId(bytes(15) + b"\1")).name == "t"
    for name, topic_id, code in (("u", bytes(16), 3), (None, bytes(15) + b"\2", 100)):
        with pytest.raises(KafkaError) as error:
            catalog.delete(US, name, TopicId(topic_id))
        assert error.value.code == code
    assert len(catalog.topics) == 1, "deciding changes nothing"


# --- facts ------------------------------------------------------------------------------------


ORGS = st.sampled_from([US, THEM])
NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c"])
CONFIGS = st.dictionaries(
    st.sampled_from(["retention.ms", "cleanup.policy"]), st.text(max_size=3), max_size=2
)


@st.composite
def histories(draw: st.DrawFn) -> list[CatalogFact]:
    """Facts as a keeper would let them come about: about topics that are there, ids never used again."""
    facts: list[CatalogFact] = [ClusterCreated(cluster_id="c")] if draw(st.booleans()) else []
    alive: dict[tuple[OrgId, str], int] = {}
    for number in range(1, draw(st.integers(0, 25)) + 1):
        key = org, name = draw(ORGS), draw(NAMES)
        if key not in alive:
            alive[key] = draw(st.integers(1, 3))
            configs = draw(CONFIGS)
            topic_id = number.to_bytes(16, "big")
            facts.append(
                TopicCreated(org=org, name=name, topic_id=topic_id, partitions=alive[key], configs=configs)
            )
            continue
        match draw(st.integers(0, 3)):
            case 0:
                del alive[key]
                facts.append(TopicDeleted(org=org, name=name))
            case 1:
                alive[key] += 1
                facts.append(PartitionsAdded(org=org, name=name, partitions=alive[key]))
            case 2:
                facts.append(
                    ConfigsSet(org=org, resource_type=TOPIC, resource_name=name, configs=draw(CONFIGS))
                )
            case 3:
                facts.append(
                    ConfigsSet(org=org, resource_type=BROKER, resource_name="", configs=draw(CONFIGS))
                )
    return facts


@given(histories())
def test_the_facts_of_a_catalogue_lead_to_an_equal_one(history: list[CatalogFact]) -> None:
    """A snapshot: the shortest history to the same state."""
    live = catalog_of(*history)

    again = catalog_of(*live.facts())

    assert again == live
    assert len(list(live.facts())) <= len(history)


@given(histories())
def test_a_replay_from_bytes_leads_to_what_was_there(history: list[CatalogFact]) -> None:
    registry = FactRegistry(CATALOG_FACTS)

    kept = [registry.pack(fact) for fact in history]

    assert catalog_of(*(registry.unpack(*packed) for packed in kept)) == catalog_of(*history)  # type: ignore[arg-type]


@given(histories(), st.integers(0, 25))
def test_a_snapshot_and_what_came_after_it_lead_to_the_same(history: list[CatalogFact], at: int) -> None:
    before, after = history[:at], history[at:]

    restored = catalog_of(*catalog_of(*before).facts(), *after)

    assert restored == catalog_of(*history)


@given(histories())
def test_a_catalogue_agrees_with_itself(history: list[CatalogFact]) -> None:
    catalog = catalog_of(*history)

    assert {topic.topic_id: topic for topic in catalog.topics.values()} == catalog.by_id
    for (org, name), topic in catalog.topics.items():
        assert (topic.org, topic.name) == (org, name)
        twin = name.translate(str.maketrans("._", "_."))
        assert (catalog.colliding(org, twin) is None) == (twin == name)
