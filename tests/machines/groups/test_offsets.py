"""How far a group has read: commit, fetch, delete. Every fact goes through its bytes on its way."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.offset_facts import OffsetsCommitted
from rafka.machines.groups.offsets import utf16_units
from rafka.ops.offsets import CommitPartition, CommitTopic, FetchedPartition, FetchOffsetsTopic
from rafka.types import NO_TOPIC_ID

from .offset_kit import (
    METADATA_MAX,
    NONE,
    NOW,
    REGISTRY,
    codes,
    commit,
    commit_topics,
    delete,
    everything,
    fetch,
    fetch_topics,
    new,
    replayed,
    topic_id,
)

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
TOO_LARGE = ErrorCode.OFFSET_METADATA_TOO_LARGE


# --- commit -------------------------------------------------------------------------------


def test_what_is_committed_is_fetched() -> None:
    """CG-120, CG-124"""
    offsets = new()

    assert commit(offsets, {T0: 5, U0: 7}) == [NONE, NONE]

    assert fetch(offsets, T0, U0) == [5, 7]
    assert len(offsets) == 2


def test_a_commit_changes_nothing_until_its_fact_is_applied() -> None:
    offsets = new()

    fact, _ = offsets.commit(commit_topics({T0: 5}), NOW, METADATA_MAX)
    before = fetch(offsets, T0)
    assert fact is not None
    offsets.apply(fact)

    assert (before, fetch(offsets, T0)) == ([-1], [5])


def test_a_request_is_one_fact_however_many_partitions_it_names() -> None:
    offsets = new()
    partitions = [CommitPartition(partition_index=i, committed_offset=i) for i in range(100)]

    fact, answer = offsets.commit(
        [CommitTopic(name="t", topic_id=topic_id("t"), partitions=partitions)], NOW, METADATA_MAX
    )

    assert isinstance(fact, OffsetsCommitted)
    assert len(codes(answer)) == 100
    assert len(REGISTRY.pack(fact)[1]) < 100 * 8


def test_a_lower_offset_overwrites_a_higher_one() -> None:
    """CG-130"""
    offsets = new()

    commit(offsets, {T0: 5})
    commit(offsets, {T0: 3})

    assert fetch(offsets, T0) == [3]


@pytest.mark.parametrize("offset", [-1, -2, 0, 2**63 - 1, -(2**63)])
def test_no_offset_is_too_odd(offset: int) -> None:
    """CG-202"""
    offsets = new()

    commit(offsets, {T0: offset})

    assert fetch(replayed(offsets), T0) == [offset]


@pytest.mark.parametrize("epoch", [7, -1, -2])
def test_the_leader_epoch_comes_back_as_it_was(epoch: int) -> None:
    """CG-129, CG-202"""
    offsets = new()

    commit(offsets, {T0: (5, "", epoch)})

    [topic] = offsets.fetch(fetch_topics(T0))
    assert topic.partitions[0].committed_leader_epoch == epoch


def test_no_metadata_is_empty_metadata() -> None:
    """CG-128"""
    offsets = new()

    commit(offsets, {T0: (5, None)})

    [topic] = offsets.fetch(fetch_topics(T0))
    assert topic.partitions == [FetchedPartition(partition_index=0, committed_offset=5, metadata="")]


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    """CG-126"""
    offsets = new()

    told = commit(offsets, {T0: (1, "x" * 4096), T1: (2, "x" * 4097), U0: (3, "fine")})

    assert told == [NONE, TOO_LARGE, NONE]
    assert fetch(offsets, T0, T1, U0) == [1, -1, 3]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("é" * 4096, NONE),
        ("é" * 4097, TOO_LARGE),
        ("\U0001f600" * 2048, NONE),
        ("\U0001f600" * 2049, TOO_LARGE),
    ],
    ids=["two bytes each, 4096", "two bytes each, 4097", "beyond the plane, 2048", "beyond the plane, 2049"],
)
def test_metadata_is_measured_in_utf16_units(metadata: str, code: ErrorCode) -> None:
    """CG-203"""
    assert commit(new(), {T0: (1, metadata)}) == [code]


def test_units_are_counted_where_python_cannot_encode() -> None:
    assert utf16_units("a\ud800") == 2


def test_a_commit_of_which_nothing_is_taken_has_no_fact() -> None:
    fact, answer = new().commit(commit_topics({T0: (1, "x" * 5000)}), NOW, METADATA_MAX)

    assert fact is None
    assert codes(answer) == [TOO_LARGE]


def test_a_topic_without_partitions_is_left_out_of_the_answer() -> None:
    """CG-201"""
    topic = CommitTopic(name="t", topic_id=topic_id("t"), partitions=[])

    assert new().commit([topic], NOW, METADATA_MAX) == (None, [])


def test_a_partition_named_twice_is_answered_twice_and_the_last_counts() -> None:
    """CG-202"""
    offsets = new()
    twice = [CommitPartition(partition_index=0, committed_offset=offset) for offset in (9, 4)]

    fact, answer = offsets.commit(
        [CommitTopic(name="t", topic_id=topic_id("t"), partitions=twice)], NOW, METADATA_MAX
    )
    assert fact is not None
    offsets.apply(fact)

    assert codes(answer) == [NONE, NONE]
    assert fetch(offsets, T0) == [4]


# --- fetch --------------------------------------------------------------------------------


def test_a_partition_without_a_commit_has_offset_minus_one_and_no_error() -> None:
    """CG-134, CG-138"""
    [topic] = new().fetch(fetch_topics(T0))

    assert topic.partitions == [
        FetchedPartition(partition_index=0, committed_offset=-1, committed_leader_epoch=-1, metadata="")
    ]
    assert new().fetch(None) == []


def test_all_topics_are_those_with_a_commit() -> None:
    """CG-137"""
    offsets = new()
    commit(offsets, {T0: 5, ("t", 2): 6, ("u", 1): 7})

    assert everything(offsets) == {T0: 5, ("t", 2): 6, ("u", 1): 7}


def test_a_fetch_is_answered_as_it_was_asked() -> None:
    """CG-205"""
    offsets = new()
    commit(offsets, {T0: 5})
    bare = FetchOffsetsTopic(name="u", topic_id=topic_id("u"), partition_indexes=[])
    twice = FetchOffsetsTopic(name="t", topic_id=topic_id("t"), partition_indexes=[1, 0, 0])

    answer = offsets.fetch([bare, twice])

    assert [(t.name, [(p.partition_index, p.committed_offset) for p in t.partitions]) for t in answer] == [
        ("u", []),
        ("t", [(1, -1), (0, 5), (0, 5)]),
    ]
    assert offsets.fetch([]) == []


def test_a_topic_that_is_not_there_any_more_has_no_offsets() -> None:
    offsets = new()
    commit(offsets, {T0: 5})

    [topic] = offsets.fetch([FetchOffsetsTopic(name="t", topic_id=NO_TOPIC_ID, partition_indexes=[0])])

    assert topic.partitions[0].committed_offset == -1


# --- delete -------------------------------------------------------------------------------------


def test_a_deleted_offset_is_gone_and_the_others_stay() -> None:
    """CG-139"""
    offsets = new()
    commit(offsets, {T0: 5, T1: 6, U0: 7})

    assert delete(offsets, T0, U0) == [NONE, NONE]

    assert everything(offsets) == {T1: 6}
    assert fetch(offsets, T0) == [-1]


def test_offsets_of_a_topic_that_members_read_are_not_deleted() -> None:
    """CG-139, CG-212"""
    offsets = new()
    commit(offsets, {T0: 5, U0: 7})
    reads = {"t": True, "u": False}.__getitem__

    assert delete(offsets, T0, U0, subscribed_to=reads) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, NONE]
    assert everything(offsets) == {T0: 5}


def test_where_it_cannot_be_told_what_members_read_nothing_is_deleted() -> None:
    """CG-212: unreadable metadata"""
    offsets = new()
    commit(offsets, {T0: 5})

    assert delete(offsets, T0, subscribed_to=lambda name: None) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert fetch(offsets, T0) == [5]


def test_deleting_what_is_not_there_is_no_mistake_and_no_fact() -> None:
    offsets = new()

    assert delete(offsets, T0, T0) == [NONE, NONE]
    assert list(offsets.facts()) == []


# --- topics that end ------------------------------------------------------------------------------


def test_with_a_topic_its_offsets_go() -> None:
    """CG-144"""
    offsets = new()
    commit(offsets, {T0: 5, T1: 6, U0: 7})

    offsets.forget_topic(topic_id("t"))

    assert everything(offsets) == {U0: 7}
    assert offsets.topic_ids() == {topic_id("u")}


def test_a_topic_made_again_inherits_nothing_even_from_a_commit_that_comes_late() -> None:
    offsets = new()
    commit(offsets, {T0: 5})
    again = FetchOffsetsTopic(name="t", topic_id=topic_id("t again"), partition_indexes=[0])

    [topic] = offsets.fetch([again])

    assert topic.partitions[0].committed_offset == -1


# --- what is kept ------------------------------------------------------------------------------------


def test_a_snapshot_leads_to_the_same_offsets() -> None:
    """CG-145"""
    offsets = new()
    commit(offsets, {T0: (5, "five", 2), T1: 6}, at=NOW)
    commit(offsets, {U0: 7}, at=NOW + 1000, retention_ms=500)
    delete(offsets, T1)

    again = replayed(offsets)

    assert again.fetch(None) == offsets.fetch(None)
    assert list(again.facts()) == list(offsets.facts())


def test_the_longest_retention_an_old_client_can_ask_for_is_kept() -> None:
    offsets = new()

    commit(offsets, {T0: 5}, retention_ms=2**63 - 1)

    assert fetch(replayed(offsets), T0) == [5]
