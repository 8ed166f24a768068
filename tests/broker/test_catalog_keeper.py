"""The catalog keeper as an actor: rounds, durability, and callers who come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker.actor import ROUND_SIZE
from rafka.broker.catalog_keeper import INBOX_SIZE
from rafka.errors import ErrorCode
from rafka.ops import cluster, topics
from rafka.types import DEFAULT_ORG

from .kit import SlowBackend, World, make_env, open_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Nothing is durable before the test says so."""
    env = make_env()
    backend = SlowBackend(env, at_once=True)
    async with open_world(backend=backend, env=env) as world:
        backend.at_once = False
        yield world


def journal_of(world: World) -> SlowBackend:
    assert isinstance(world.backend, SlowBackend)
    return world.backend


def creating(*names: str) -> topics.CreateTopics:
    return topics.CreateTopics(
        topics=[topics.NewTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


def seen(world: World) -> set[str]:
    return {live.name for live in world.topics}


async def test_nobody_sees_a_topic_that_a_crash_could_take_back(world: World) -> None:
    answers = []

    async def create() -> None:
        answers.append(await world.ask(creating("t")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(create)
        await wait_all_tasks_blocked()
        assert not answers
        assert seen(world) == set()
        assert [t.error_code for t in (await world.ask(topics.Metadata(topics=None))).topics] == []
        journal_of(world).journal.flush()

    assert answers[0].topics[0].error_code == 0
    assert seen(world) == {"t"}


async def test_a_round_is_one_append_and_what_comes_meanwhile_is_the_next(world: World) -> None:
    before = journal_of(world).journal.appends
    codes = {}

    async def create(key: str, name: str) -> None:
        codes[key] = (await world.ask(creating(name))).topics[0].error_code

    async with trio.open_nursery() as nursery:
        for key in ("first", "second", "third"):
            nursery.start_soon(create, key, key)
        nursery.start_soon(create, "again", "first")
        await wait_all_tasks_blocked()
        in_flight = journal_of(world).journal.appends - before
        assert in_flight == 1
        nursery.start_soon(create, "late", "late")
        await wait_all_tasks_blocked()
        assert journal_of(world).journal.appends - before == 1, "the next round gathers"
        journal_of(world).journal.flush()
        await wait_all_tasks_blocked()
        journal_of(world).journal.flush()

    assert journal_of(world).journal.appends - before == 2
    assert sorted((codes.pop("again"), codes.pop("first"))) == [0, 36], "the second sees the first"
    assert set(codes.values()) == {0}


async def test_a_round_without_facts_appends_nothing(world: World) -> None:
    before = journal_of(world).journal.appends

    reply = await world.ask(creating("bad name!"))

    assert reply.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert journal_of(world).journal.appends == before


async def test_a_caller_who_hangs_up_harms_nobody_and_the_work_is_done(world: World) -> None:
    answers = []

    async def create(name: str) -> None:
        answers.append((await world.ask(creating(name))).topics[0].error_code)

    async with trio.open_nursery() as nursery:
        impatient = trio.CancelScope()

        async def hang_up() -> None:
            with impatient:
                await create("theirs")

        nursery.start_soon(hang_up)
        nursery.start_soon(create, "ours")
        await wait_all_tasks_blocked()
        impatient.cancel()
        await wait_all_tasks_blocked()
        journal_of(world).journal.flush()

    assert answers == [0]
    assert seen(world) == {"ours", "theirs"}


async def test_callers_cancelled_at_every_step_leave_the_catalogue_whole(world: World) -> None:
    """Reliability 6.1, rule 7."""
    journal_of(world).at_once = True
    for steps in range(8):
        scope = trio.CancelScope()

        async def create(name: str, scope: trio.CancelScope = scope) -> None:
            with scope:
                await world.ask(creating(name))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, f"t{steps}")
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        await wait_all_tasks_blocked()
        # Decided or not decided: what is published is what was decided.
        assert seen(world) == {t.name for t in world.keeper._catalog.of(DEFAULT_ORG)}
        reply = await world.ask(creating(f"u{steps}"))
        assert reply.topics[0].error_code == 0


async def test_a_full_inbox_makes_callers_wait_and_loses_nobody(
    world: World, autojump_clock: MockClock
) -> None:
    answers = 0
    callers = INBOX_SIZE + ROUND_SIZE + 50

    async def create(n: int) -> None:
        nonlocal answers
        await world.ask(creating(f"t{n}"))
        answers += 1

    async with trio.open_nursery() as nursery:
        for n in range(callers):
            nursery.start_soon(create, n)
        await wait_all_tasks_blocked()
        assert world.keeper._inbox.crowd > 0
        assert answers == 0
        journal_of(world).at_once = True
        journal_of(world).journal.flush()

    assert answers == len(seen(world)) == callers


async def test_with_a_full_inbox_nothing_is_made_by_asking_and_the_next_may_ask_again(world: World) -> None:
    """M3: nobody waits for it, so nobody is held up."""
    async with trio.open_nursery() as nursery:
        for n in range(INBOX_SIZE + ROUND_SIZE + 1):
            nursery.start_soon(world.ask, creating(f"t{n}"))
        await wait_all_tasks_blocked()
        asked = topics.Metadata(topics=[topics.MetadataTopic(name="wanted")])

        reply = await world.ask(asked)

        assert reply.topics[0].error_code == 3
        journal_of(world).at_once = True
        journal_of(world).journal.flush()
    assert "wanted" not in seen(world)
    await world.ask(asked)
    await wait_all_tasks_blocked()
    assert "wanted" in seen(world)


async def test_a_topic_that_many_ask_for_is_made_once(world: World) -> None:
    """M3: while it is in the making, nobody asks for it again."""
    asked = topics.Metadata(topics=[topics.MetadataTopic(name="wanted")])

    for _ in range(10):
        await world.ask(asked)

    assert len(world.keeper._inbox) == 1, "the first; no others came"
    await wait_all_tasks_blocked()
    for _ in range(10):
        await world.ask(asked)
    assert len(world.keeper._inbox) == 0, "also while it is being journaled"
    journal_of(world).journal.flush()
    await wait_all_tasks_blocked()
    assert seen(world) == {"wanted"}


@pytest.mark.parametrize("op", ["asked for", "created"])
async def test_a_mistake_of_ours_ends_neither_the_keeper_nor_the_broker(
    world: World, op: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal_of(world).at_once = True

    def stumble(*_: object) -> object:
        raise RuntimeError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(type(world.keeper._catalog), "check_new_name", stumble)
        if op == "created":
            assert (await world.ask(creating("t"))).topics[0].error_code == -1
        else:
            await world.ask(topics.Metadata(topics=[topics.MetadataTopic(name="t")]))
            await wait_all_tasks_blocked()

    assert "a mistake of ours" in caplog.text
    assert seen(world) == set()
    assert (await world.ask(creating("t"))).topics[0].error_code == 0


async def test_what_a_round_decided_is_replayed_by_the_next_start(autojump_clock: MockClock) -> None:
    env = make_env()
    backend = SlowBackend(env, at_once=True)
    async with open_world(backend=backend, env=env) as world:
        await world.create("a", partitions=2, retention_ms="1000")
        await world.create("b")
        await world.write(b"kept", topic="a", index=1)
        await world.delete("b")
        grown = topics.GrownTopic(name="a", count=3)
        await world.ask(topics.CreatePartitions(topics=[grown], timeout_ms=1000, validate_only=False))
        first = world.topics.catalog

    async with open_world(backend=backend, env=env) as world:
        assert world.topics.catalog == first
        assert world.keeper._catalog == first
        assert seen(world) == {"a"}
        assert world.partition("a", 1).log.end_offset == 1


async def test_a_topic_made_anew_has_another_id_and_begins_at_0(world: World) -> None:
    """D4, LF-062."""
    journal_of(world).at_once = True
    first = await world.create("t")
    await world.write(b"a")
    await world.delete("t")
    await wait_all_tasks_blocked()

    second = await world.create("t")

    assert first != second
    assert await world.write(b"b") == 0


async def test_validating_only_is_answered_like_doing_and_does_nothing(world: World) -> None:
    """T12, LF-060."""
    op = creating("t")
    op.validate_only = True  # type: ignore[misc]

    [topic] = (await world.ask(op)).topics

    assert topic.error_code == 0
    assert topic.topic_id != bytes(16)
    assert seen(world) == set()


async def test_configs_are_the_keepers_to_decide_too(world: World) -> None:
    journal_of(world).at_once = True
    await world.create("t")
    journal_of(world).at_once = False
    change = cluster.ConfigChange(name="retention.ms", config_operation=0, value="1")
    resource = cluster.ChangedResource(resource_type=2, resource_name="t", configs=[change])
    op = cluster.IncrementalAlterConfigs(resources=[resource], validate_only=False)
    answers = []

    async def alter() -> None:
        answers.append(await world.ask(op))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(alter)
        await wait_all_tasks_blocked()
        assert world.topics.by_name(DEFAULT_ORG, "t").config.retention_ms != 1, "not durable: not in force"
        journal_of(world).journal.flush()

    assert answers[0].responses[0].error_code == 0
    assert world.topics.by_name(DEFAULT_ORG, "t").config.retention_ms == 1
