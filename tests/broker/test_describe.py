"""Metadata and its kin: what is told of topics, of the one node, and of where partitions live."""

from __future__ import annotations

import attrs
import pytest
from trio.testing import wait_all_tasks_blocked

from rafka.config import Config
from rafka.errors import ErrorCode
from rafka.ops import cluster, topics
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

from .kit import World, batch, open_world, produce

NOBODYS = TopicId(b"nobody's id.....")


async def metadata(world: World, *names: str, **options: bool) -> topics.MetadataReply:
    asked = [topics.MetadataTopic(name=name) for name in names]
    return await world.ask(topics.Metadata(topics=asked, **options))  # type: ignore[no-any-return]


async def codes(world: World, *names: str, **options: bool) -> dict[str | None, int]:
    reply = await metadata(world, *names, **options)
    return {topic.name: int(topic.error_code) for topic in reply.topics}


# --- metadata ----------------------------------------------------------------------------


async def test_all_topics_or_none(world: World) -> None:
    """M1, LF-057."""
    await world.create("u", partitions=3)
    await world.create("theirs", org=OrgId("them"))

    everything = await world.ask(topics.Metadata(topics=None))
    nothing = await metadata(world)

    assert sorted((t.name, len(t.partitions)) for t in everything.topics) == [("t", 1), ("u", 3)]
    assert nothing.topics == []
    [node] = nothing.brokers
    assert (node.node_id, node.host, node.port) == (0, "here", 9092), "the address on which the client came"
    assert nothing.controller_id == 0
    assert nothing.cluster_id


async def test_a_topic_has_one_leader_for_all_of_its_partitions(world: World) -> None:
    """M8."""
    topic_id = await world.create("u", partitions=2)

    [topic] = (await metadata(world, "u")).topics

    assert topic.topic_id == topic_id
    assert not topic.is_internal
    for index, partition in enumerate(topic.partitions):
        assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (index, 0, 0)
        assert tuple(partition.replica_nodes) == tuple(partition.isr_nodes) == (0,)
        assert partition.offline_replicas == ()
    assert topic.topic_authorized_operations == -(2**31)


async def test_what_one_may_do_is_told_to_whom_asks(world: World) -> None:
    """M8."""
    reply = await metadata(
        world, "t", include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )

    assert reply.cluster_authorized_operations == 8096
    assert reply.topics[0].topic_authorized_operations == 3576


async def test_what_one_may_do_is_told_of_names_too_under_which_there_is_no_topic(world: World) -> None:
    """As Kafka does: kafka-python's admin reads it before it looks at the error."""
    unknown, impossible = (
        await metadata(
            world, "u", "bad name!", include_topic_authorized_operations=True, allow_auto_topic_creation=False
        )
    ).topics

    assert unknown.topic_authorized_operations == impossible.topic_authorized_operations == 3576


async def test_unknown_names_are_told_apart_from_impossible_ones(world: World) -> None:
    """M2, LF-056."""
    names = ("u", "bad name!", "", "x" * 250, ".", "..", "x" * 249)

    found = await codes(world, *names, allow_auto_topic_creation=False)

    assert found == {
        "u": 3, "bad name!": 17, "": 17, "x" * 250: 17, ".": 17, "..": 17, "x" * 249: 3,
    }  # fmt: skip
    [topic] = (await metadata(world, "u", allow_auto_topic_creation=False)).topics
    assert (topic.topic_id, topic.partitions) == (NO_TOPIC_ID, ())


async def test_topics_may_be_asked_for_by_id(world: World) -> None:
    """M4, LF-058."""
    known = await world.create("u")
    asked = [
        topics.MetadataTopic(topic_id=known),
        topics.MetadataTopic(topic_id=NOBODYS),
        topics.MetadataTopic(topic_id=known, name="t"),
    ]

    found = (await world.ask(topics.Metadata(topics=asked))).topics

    assert [(t.name, t.error_code) for t in found] == [("u", 0), (None, 100)]
    strangers = (await world.ask(topics.Metadata(topics=asked[:1]), OrgId("them"))).topics
    assert [t.error_code for t in strangers] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_where_one_topic_is_asked_for_by_id_names_do_not_count(world: World) -> None:
    """As with Apache Kafka: not even for making them."""
    known = await world.create("u")
    asked = [
        topics.MetadataTopic(name="t"),
        topics.MetadataTopic(topic_id=known),
        topics.MetadataTopic(name="new"),
    ]

    found = (await world.ask(topics.Metadata(topics=asked))).topics
    await wait_all_tasks_blocked()

    assert [t.name for t in found] == ["u"]
    assert await codes(world, "new", allow_auto_topic_creation=False) == {"new": 3}


async def test_a_name_twice_is_answered_once(world: World) -> None:
    """M9, LF-091."""
    assert len((await metadata(world, "t", "t", "u", "u")).topics) == 2


# --- making topics by asking for them ------------------------------------------------------


async def test_an_unknown_topic_is_made_for_whom_asks(world: World) -> None:
    """M3, LF-056: this reply says 3, the next one has it."""
    assert await codes(world, "u") == {"u": 3}
    await wait_all_tasks_blocked()

    [topic] = (await metadata(world, "u")).topics

    assert (topic.error_code, len(topic.partitions)) == (0, 1)


async def test_a_topic_is_made_with_the_brokers_number_of_partitions() -> None:
    plain = Config()
    config = attrs.evolve(plain, topics=attrs.evolve(plain.topics, partitions=5))
    async with open_world(config) as world:
        await codes(world, "u")
        await wait_all_tasks_blocked()
        assert len((await metadata(world, "u")).topics[0].partitions) == 5


async def test_nothing_is_made_that_must_not_be(world: World) -> None:
    """M3: against the request's or the broker's will, or with a name that collides or is internal."""
    await world.create("a.b")
    names = ("u", "a_b", "no!", "__consumer_offsets", "__cluster_metadata")

    await codes(world, "u", allow_auto_topic_creation=False)
    await codes(world, *names[1:])
    await wait_all_tasks_blocked()

    assert await codes(world, *names, allow_auto_topic_creation=False) == {
        "u": 3, "a_b": 3, "no!": 17, "__consumer_offsets": 3, "__cluster_metadata": 3,
    }  # fmt: skip


async def test_a_broker_may_make_none() -> None:
    plain = Config()
    config = attrs.evolve(plain, topics=attrs.evolve(plain.topics, auto_create=False))
    async with open_world(config) as world:
        for _ in range(2):
            assert await codes(world, "u") == {"u": 3}
            await wait_all_tasks_blocked()


async def test_only_metadata_makes_topics(world: World) -> None:
    """Never a write or a read."""
    from .kit import fetch

    await world.ask(produce(batch(b"a"), topic="u"))
    await world.ask(fetch(("u", 0, 0)))
    await wait_all_tasks_blocked()

    assert world.topics.find(OrgId("default"), "u") is None


# --- DescribeTopicPartitions -------------------------------------------------------------


Described = tuple[list[tuple[str | None, int, list[int]]], tuple[str, int] | None]


async def describe(
    world: World, *names: str, cursor: tuple[str, int] | None = None, limit: int = 2000
) -> Described:
    op = topics.DescribeTopicPartitions(
        topics=[topics.TopicName(name=name) for name in names],
        response_partition_limit=limit,
        cursor=topics.Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )
    reply = await world.ask(op)
    told = [(t.name, int(t.error_code), [p.partition_index for p in t.partitions]) for t in reply.topics]
    following = reply.next_cursor
    return told, (following.topic_name, following.partition_index) if following else None


@pytest.fixture
async def two(world: World) -> World:
    """Topics a of three and c of two partitions; t is there as well, of one."""
    await world.create("c", partitions=2)
    await world.create("a", partitions=3)
    return world


ALL_OF_THEM = [("a", 0, [0, 1, 2]), ("c", 0, [0, 1]), ("t", 0, [0])]


async def test_topics_come_by_name_and_each_once(two: World) -> None:
    """Y1."""
    assert await describe(two) == (ALL_OF_THEM, None)
    assert await describe(two, "c", "b", "a", "c") == (
        [("a", 0, [0, 1, 2]), ("b", 3, []), ("c", 0, [0, 1])],
        None,
    )


async def test_no_more_partitions_come_than_are_wanted_and_the_cursor_says_where_to_go_on(two: World) -> None:
    """Y2, Y3, LF-093."""
    assert await describe(two, "a", "c", limit=2) == ([("a", 0, [0, 1])], ("a", 2))
    assert await describe(two, "a", "c", limit=2, cursor=("a", 2)) == (
        [("a", 0, [2]), ("c", 0, [0])],
        ("c", 1),
    )
    assert await describe(two, "a", "c", limit=2, cursor=("c", 1)) == ([("c", 0, [1])], None)


@pytest.mark.parametrize("limit", [0, -1, 1])
async def test_at_least_one_partition_comes(two: World, limit: int) -> None:
    assert await describe(two, limit=limit) == ([("a", 0, [0])], ("a", 1))


async def test_there_is_a_most_whatever_is_wanted() -> None:
    plain = Config()
    config = attrs.evolve(plain, topics=attrs.evolve(plain.topics, described_at_once=4))
    async with open_world(config) as world:
        await world.create("a", partitions=6)
        assert await describe(world, limit=2**31 - 1) == ([("a", 0, [0, 1, 2, 3])], ("a", 4))


async def test_an_unknown_topic_waits_for_its_turn_as_well(two: World) -> None:
    """As Apache Kafka answers it."""
    assert await describe(two, "a", "b", limit=3) == ([("a", 0, [0, 1, 2])], ("b", 0))


async def test_every_page_together_is_the_whole(two: World) -> None:
    for limit in range(1, 8):
        seen: list[tuple[str | None, int]] = []
        cursor = None
        while True:
            page, cursor = await describe(two, limit=limit, cursor=cursor)
            seen += [(name, index) for name, _, indexes in page for index in indexes]
            if cursor is None:
                break
        assert seen == [(name, index) for name, _, indexes in ALL_OF_THEM for index in indexes]


async def test_a_cursor_need_not_be_where_a_topic_is(two: World) -> None:
    """Y3."""
    assert await describe(two, cursor=("b", 1)) == (ALL_OF_THEM[1:], None)
    assert await describe(two, "a", "b", "c", cursor=("b", 0)) == ([("b", 3, []), ("c", 0, [0, 1])], None)
    assert await describe(two, "a", "c", cursor=("a", 9)) == ([("a", 0, []), ("c", 0, [0, 1])], None)
    assert await describe(two, cursor=("zzz", 0)) == ([], None)


@pytest.mark.parametrize("cursor", [("a", -1), ("c", -1), ("b", 0), ("b", -1)])
async def test_a_cursor_that_cannot_be_refuses_every_topic(two: World, cursor: tuple[str, int]) -> None:
    """Y3, LF-093: a negative partition, or a topic that is not among those asked for."""
    assert await describe(two, "a", "c", cursor=cursor) == ([("a", 42, []), ("c", 42, [])], None)


async def test_a_negative_cursor_without_names_has_nothing_to_refuse(two: World) -> None:
    assert await describe(two, cursor=("a", -1)) == ([], None)


async def test_impossible_names_are_told_each_for_itself_and_no_name_fails_all(two: World) -> None:
    """Y1, as Apache Kafka answers it."""
    assert await describe(two, "c", "x!", ".") == ([(".", 17, []), ("c", 0, [0, 1]), ("x!", 17, [])], None)
    found, cursor = await describe(two, "c", "")
    assert sorted(found) == [("", -1, []), ("c", -1, [])]
    assert cursor is None


# --- the cluster --------------------------------------------------------------------------


@pytest.mark.parametrize(("endpoint_type", "code"), [(1, 0), (2, 114), (0, 115), (9, 115)])
async def test_brokers_are_described_and_controllers_are_elsewhere(
    world: World, endpoint_type: int, code: int
) -> None:
    """Y4, LF-097."""
    reply = await world.ask(cluster.DescribeCluster(endpoint_type=endpoint_type))

    assert reply.error_code == code
    assert len(reply.brokers) == (1 if code == 0 else 0)


async def test_log_dirs_tell_what_partitions_take(world: World) -> None:
    """Y5."""
    await world.create("u", partitions=2)
    await world.write(b"a")
    size = len(batch(b"a"))

    [everything] = (await world.ask(cluster.DescribeLogDirs(topics=None))).results
    asked = [
        cluster.LogDirTopic(topic="t", partitions=[0, 5, 0]),
        cluster.LogDirTopic(topic="nobody", partitions=[0]),
    ]
    [some] = (await world.ask(cluster.DescribeLogDirs(topics=asked))).results

    def sizes(found: cluster.LogDir) -> dict[str, list[tuple[int, int]]]:
        return {t.name: [(p.partition_index, p.partition_size) for p in t.partitions] for t in found.topics}

    assert sizes(everything) == {"t": [(0, size)], "u": [(0, 0), (1, 0)]}
    assert sizes(some) == {"t": [(0, size)]}


async def test_log_dirs_tell_each_partition_once_however_often_it_is_asked_for(world: World) -> None:
    await world.create("u", partitions=2)
    asked = [cluster.LogDirTopic(topic="u", partitions=[index]) for index in (0, 1, 0)]

    [some] = (await world.ask(cluster.DescribeLogDirs(topics=asked))).results

    [topic] = some.topics
    assert [p.partition_index for p in topic.partitions] == [0, 1]


async def test_every_leader_is_the_only_one_there_can_be(world: World) -> None:
    """Y6, Y7, LF-097."""
    wanted = [topics.TopicPartitions(topic="t", partitions=[0, 1])]
    elected = await world.ask(topics.ElectLeaders(topic_partitions=wanted))
    assert elected.error_code == 0
    assert [p.error_code for p in elected.replica_election_results[0].partition_result] == [84, 3]
    assert (await world.ask(topics.ElectLeaders(topic_partitions=None))).replica_election_results == []

    impossible = await world.ask(topics.ElectLeaders(topic_partitions=wanted, election_type=2))
    assert impossible.error_code == ErrorCode.INVALID_REQUEST
    assert [p.error_code for p in impossible.replica_election_results[0].partition_result] == [42, 42]

    moves = [(0, None), (0, [0]), (0, [0, 1]), (1, None)]
    op = topics.AlterPartitionReassignments(
        topics=[
            topics.ReassignableTopic(
                name="t",
                partitions=[
                    topics.ReassignablePartition(partition_index=i, replicas=replicas)
                    for i, replicas in moves
                ],
            )
        ]
    )
    moved = await world.ask(op)
    assert [p.error_code for p in moved.responses[0].partitions] == [85, 0, 39, 3]
    assert list((await world.ask(topics.ListPartitionReassignments())).topics) == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_who_gives_no_time_for_an_election_or_a_move_gets_none(world: World, timeout_ms: int) -> None:
    wanted = [topics.TopicPartitions(topic="t", partitions=[0])]
    elected = await world.ask(topics.ElectLeaders(topic_partitions=wanted, timeout_ms=timeout_ms))
    move = topics.ReassignableTopic(name="t", partitions=[topics.ReassignablePartition(partition_index=0)])
    moved = await world.ask(topics.AlterPartitionReassignments(topics=[move], timeout_ms=timeout_ms))
    nothing = await world.ask(topics.ElectLeaders(topic_partitions=[], timeout_ms=timeout_ms))

    assert (elected.error_code, moved.error_code, nothing.error_code) == (7, 7, 0)
    assert elected.replica_election_results[0].partition_result[0].error_code == 7
    assert moved.responses[0].partitions[0].error_code == 7
