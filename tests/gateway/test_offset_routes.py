"""Offsets of groups over the wire: what each version tells an op, and what it makes of the reply."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.ops import offsets
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH

from .group_kit import DENIED, TOPIC_ID, answer, ask, fetching
from .kit import Client, ScriptedLink, World, raw

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


@pytest.mark.parametrize("version", OFFSET_COMMIT.versions)
async def test_a_commit_says_how_topics_are_named_and_which_errors_are_known(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """A.11."""
    answer(
        link,
        offsets.OffsetCommit,
        offsets.OffsetCommitReply(
            topics=[
                offsets.CommittedTopic(
                    name="t",
                    topic_id=TOPIC_ID,
                    partitions=[offsets.CommittedPartition(partition_index=3, error_code=REBALANCE)],
                )
            ]
        ),
    )
    topic = OFFSET_COMMIT.Request.Topics(name="t", topic_id=TOPIC_ID)
    topic.partitions = [OFFSET_COMMIT.Request.Topics.Partitions(partition_index=3, committed_offset=8)]
    topic.partitions[0].committed_leader_epoch = 5 if version >= 6 else -1
    topic.partitions[0].committed_metadata = None
    asked = OFFSET_COMMIT.Request(group_id="g", generation_id_or_member_epoch=2, member_id="ann")
    asked.topics = [topic]
    asked.retention_time_ms = 1000 if version < 5 else -1

    [told] = (await ask(client, OFFSET_COMMIT, version, asked)).topics

    by_id = version >= 10
    assert (told.name, told.topic_id) == (("", TOPIC_ID) if by_id else ("t", bytes(16)))
    assert [(p.partition_index, p.error_code) for p in told.partitions] == [(3, REBALANCE)]
    [op] = link.asked
    assert isinstance(op, offsets.OffsetCommit)
    assert (op.by_id, op.epochs_known, op.retention_time_ms) == (by_id, version >= 9, asked.retention_time_ms)
    assert (op.topics[0].name, op.topics[0].topic_id) == (("", TOPIC_ID) if by_id else ("t", bytes(16)))
    [partition] = op.topics[0].partitions
    assert (partition.committed_offset, partition.committed_metadata) == (8, None)
    assert partition.committed_leader_epoch == (5 if version >= 6 else -1)


def fetched(code: ErrorCode = ErrorCode.NONE) -> offsets.OffsetFetchReply:
    partition = offsets.FetchedPartition(partition_index=1, committed_offset=9, metadata="m")
    topic = offsets.FetchedTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])
    one = offsets.FetchedGroup(group_id="g", topics=() if code else [topic], error_code=code)
    return offsets.OffsetFetchReply(groups=[one])


@pytest.mark.parametrize("version", OFFSET_FETCH.versions)
async def test_one_group_s_offsets_in_every_version(client: Client, link: ScriptedLink, version: int) -> None:
    """A.12: a list of one group to the broker, and back in the place where this version looks for it."""
    answer(link, offsets.OffsetFetch, fetched())

    reply = await ask(client, OFFSET_FETCH, version, fetching(version))

    told = reply if version < 8 else reply.groups[0]
    assert told.error_code == 0
    assert [p.committed_offset for p in told.topics[0].partitions] == [9]
    [op] = link.asked
    assert isinstance(op, offsets.OffsetFetch)
    [asked] = op.groups
    assert (asked.group_id, op.by_id, op.require_stable) == ("g", version >= 10, version == 7)
    assert asked.topics is not None
    assert asked.topics[0].partition_indexes == [1, 2]
    assert (asked.member_id, asked.member_epoch) == (None, -1)


@pytest.mark.parametrize("version", OFFSET_FETCH.versions)
@pytest.mark.parametrize("in_reply", [True, False], ids=["answered", "refused"])
async def test_an_error_of_the_group_is_put_where_the_version_has_a_place_for_it(
    client: Client, link: ScriptedLink, version: int, in_reply: bool
) -> None:
    """F13: version 1 has none but the partitions: all that were asked for, so that nobody reads a success."""
    answer(link, offsets.OffsetFetch, fetched(DENIED) if in_reply else DENIED)

    reply = await ask(client, OFFSET_FETCH, version, fetching(version))

    if version == 1:
        partitions = reply.topics[0].partitions
        assert [(p.partition_index, p.error_code) for p in partitions] == [(1, 30), (2, 30)]
        assert [(p.committed_offset, p.metadata) for p in partitions] == [(-1, "")] * 2
    else:
        told = reply if version < 8 else reply.groups[0]
        assert (told.error_code, told.topics) == (30, [])


@pytest.mark.parametrize("version", OFFSET_FETCH.versions)
async def test_offsets_that_cannot_be_written_are_never_taken_for_none(
    client: Client, link: ScriptedLink, version: int
) -> None:
    reply = fetched()
    reply.groups[0].topics[0].partitions[0].metadata = "x" * 40_000  # type: ignore[misc]
    answer(link, offsets.OffsetFetch, reply)

    told = await ask(client, OFFSET_FETCH, version, fetching(version))

    if version == 1:
        assert [p.error_code for p in told.topics[0].partitions] == [-1, -1]
    else:
        assert (told if version < 8 else told.groups[0]).error_code == -1


@pytest.mark.parametrize("version", range(2, 11))
async def test_all_topics_are_asked_for_by_null(client: Client, link: ScriptedLink, version: int) -> None:
    answer(link, offsets.OffsetFetch, fetched())
    asked = fetching(version)
    (asked if version < 8 else asked.groups[0]).topics = None

    await ask(client, OFFSET_FETCH, version, asked)

    [op] = link.asked
    assert isinstance(op, offsets.OffsetFetch)
    assert op.groups[0].topics is None


async def test_version_1_cannot_ask_for_all(client: Client) -> None:
    await client.send(raw(9, 1, b"\0\x01g" + b"\xff\xff\xff\xff"))

    assert await client.closed()


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_many_groups_are_answered_in_their_order(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """F14."""
    link.answers[offsets.OffsetFetch] = lambda _, op: offsets.OffsetFetchReply(
        groups=[offsets.FetchedGroup(group_id=each.group_id) for each in op.groups]
    )
    names = ["b", "a", "b"]
    groups = [OFFSET_FETCH.Request.Groups(group_id=name, topics=None) for name in names]

    reply = await ask(client, OFFSET_FETCH, version, OFFSET_FETCH.Request(groups=groups))
    none = await ask(client, OFFSET_FETCH, version, OFFSET_FETCH.Request(groups=[]))

    assert [each.group_id for each in reply.groups] == names
    assert none.groups == []
