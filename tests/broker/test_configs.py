"""Configuration at work: what is set counts at once, here and for everybody, and survives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from rafka.errors import ErrorCode
from rafka.ops import cluster, topics
from rafka.storage.memory import MemoryBackend
from rafka.types import DEFAULT_ORG, OrgId

from .kit import World, batch, make_env, open_world, produce, told

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND = 0, 1, 2


async def change(
    world: World, kind: int, name: str, *wanted: tuple[str, int, str | None], validate_only: bool = False
) -> int:
    configs = [cluster.ConfigChange(name=key, config_operation=how, value=v) for key, how, v in wanted]
    resource = cluster.ChangedResource(resource_type=kind, resource_name=name, configs=configs)
    op = cluster.IncrementalAlterConfigs(resources=[resource], validate_only=validate_only)
    [altered] = (await world.ask(op)).responses
    return int(altered.error_code)


async def described(
    world: World, kind: int, name: str, key: str, org: OrgId = DEFAULT_ORG
) -> cluster.ConfigEntry:
    resource = cluster.ConfigResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    op = cluster.DescribeConfigs(resources=[resource], include_synonyms=True)
    [found] = (await world.ask(op, org)).results
    assert found.error_code == 0
    [entry] = found.configs
    return entry  # type: ignore[no-any-return]


def rules_of(world: World, name: str = "t") -> Any:
    return world.topics.by_name(DEFAULT_ORG, name).rules(True, False)


async def test_what_is_set_on_a_topic_counts_at_once(world: World) -> None:
    """LF-064, LF-066."""
    assert (await described(world, TOPIC, "t", "max.message.bytes")).config_source == 5

    assert await change(world, TOPIC, "t", ("max.message.bytes", SET, "100")) == 0

    entry = await described(world, TOPIC, "t", "max.message.bytes")
    assert (entry.value, entry.config_source) == ("100", 1)
    assert rules_of(world).max_bytes == 100
    [refused] = told(await world.ask(produce(batch(b"x" * 100))))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


async def test_what_is_set_on_a_topic_counts_for_its_open_logs(world: World) -> None:
    await world.write(b"a")

    await change(world, TOPIC, "t", ("segment.bytes", SET, "2000000"))

    assert world.partition().log.settings.segment_bytes == 2_000_000


async def test_what_is_set_on_the_broker_counts_for_topics_that_set_nothing(world: World) -> None:
    """Node over cluster, topic over both; and all fall back again."""
    await world.create("own", max_message_bytes="500")

    assert await change(world, BROKER, "", ("message.max.bytes", SET, "300")) == 0
    assert (rules_of(world).max_bytes, rules_of(world, "own").max_bytes) == (300, 500)
    assert await change(world, BROKER, "0", ("message.max.bytes", SET, "200")) == 0
    assert rules_of(world).max_bytes == 200
    entry = await described(world, TOPIC, "t", "max.message.bytes")
    assert [(s.value, s.source) for s in entry.synonyms][:2] == [("200", 2), ("300", 3)]
    await change(world, BROKER, "0", ("message.max.bytes", DELETE, None))
    await change(world, BROKER, "", ("message.max.bytes", DELETE, None))
    assert rules_of(world).max_bytes == 1_048_588


async def test_a_new_topic_takes_what_the_broker_has_set(world: World) -> None:
    await change(world, BROKER, "", ("message.max.bytes", SET, "300"))

    await world.create("u")

    assert rules_of(world, "u").max_bytes == 300


async def test_what_is_refused_or_only_tried_changes_nothing(world: World) -> None:
    """A4 to A7."""
    before = rules_of(world)

    assert await change(world, TOPIC, "t", ("max.message.bytes", SET, "x")) == 40
    assert await change(world, TOPIC, "t", ("bogus", SET, "1")) == 40
    assert await change(world, TOPIC, "nobody", ("max.message.bytes", SET, "1")) == 3
    assert await change(world, TOPIC, "t", ("max.message.bytes", SET, "1"), ("bogus", SET, "1")) == 40
    assert await change(world, TOPIC, "t", ("max.message.bytes", SET, "1"), validate_only=True) == 0
    assert await change(world, BROKER, "", ("node.id", SET, "9")) == 42

    assert rules_of(world) == before


async def test_resources_of_a_request_stand_each_for_itself(world: World) -> None:
    """A7: and one that comes twice is refused twice."""
    configs = [cluster.ConfigChange(name="retention.ms", config_operation=SET, value="5")]
    op = cluster.IncrementalAlterConfigs(
        resources=[
            cluster.ChangedResource(resource_type=TOPIC, resource_name=name, configs=configs)
            for name in ("nobody", "t")
        ],
        validate_only=False,
    )

    reply = await world.ask(op)

    assert [r.error_code for r in reply.responses] == [3, 0]
    assert world.topics.by_name(DEFAULT_ORG, "t").config.retention_ms == 5


async def test_replacing_resets_what_is_not_named(world: World) -> None:
    """A10, LF-095."""
    await change(world, TOPIC, "t", ("retention.ms", SET, "5"), ("max.message.bytes", SET, "100"))
    value = cluster.ConfigValue(name="retention.ms", value="6")
    resource = cluster.ReplacedResource(resource_type=TOPIC, resource_name="t", configs=[value])

    reply = await world.ask(cluster.AlterConfigs(resources=[resource], validate_only=False))

    assert [r.error_code for r in reply.responses] == [0]
    config = world.topics.by_name(DEFAULT_ORG, "t").config
    assert (config.retention_ms, config.max_message_bytes) == (6, 1_048_588)


async def test_configs_of_an_organisation_are_its_own(world: World) -> None:
    them = OrgId("them")
    await world.create("t", org=them)

    await change(world, TOPIC, "t", ("retention.ms", SET, "5"))
    await change(world, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))

    assert world.topics.by_name(them, "t").config.retention_ms != 5
    assert (await described(world, GROUP, "g", "consumer.session.timeout.ms")).config_source == 8
    assert (await described(world, GROUP, "g", "consumer.session.timeout.ms", them)).config_source == 5
    listed = await world.ask(cluster.ListConfigResources(resource_types=[GROUP]), them)
    assert list(listed.config_resources) == []


async def test_what_has_configs_is_listed(world: World) -> None:
    """G11."""
    await change(world, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))

    everything = await world.ask(cluster.ListConfigResources(resource_types=[]))

    assert {(r.resource_type, r.resource_name) for r in everything.config_resources} >= {
        (TOPIC, "t"),
        (BROKER, "0"),
        (GROUP, "g"),
    }
    unknown = await world.ask(cluster.ListConfigResources(resource_types=[77]))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_configs_survive_a_restart() -> None:
    env = make_env()
    backend = MemoryBackend(env)
    async with open_world(backend=backend, env=env) as world:
        await world.create("t")
        await change(world, TOPIC, "t", ("retention.ms", SET, "5"))
        await change(world, BROKER, "", ("message.max.bytes", SET, "300"))

    async with open_world(backend=backend, env=env) as world:
        assert world.topics.by_name(DEFAULT_ORG, "t").config.retention_ms == 5
        assert rules_of(world).max_bytes == 300


async def test_a_topic_made_and_configured_in_one_breath_is_both(world: World) -> None:
    """The keeper decides by its own copy, which is ahead of what everybody sees."""
    import trio

    codes = []

    async def configure() -> None:
        codes.append(await change(world, TOPIC, "u", ("retention.ms", SET, "5")))

    create = topics.CreateTopics(topics=[topics.NewTopic(name="u", num_partitions=1, replication_factor=1)])
    async with trio.open_nursery() as nursery:
        first = world.answer(create)
        nursery.start_soon(first.wait)
        nursery.start_soon(configure)

    assert codes in ([0], [3]), "in whichever order they came, and never anything else"
    if codes == [0]:
        assert world.topics.by_name(DEFAULT_ORG, "u").config.retention_ms == 5


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("rafka.test.configs")
    yield logger
    logger.setLevel(logging.NOTSET)


async def test_loggers_are_set_in_kafkas_words(world: World, logger: logging.Logger) -> None:
    assert await change(world, LOGGER, "0", (logger.name, SET, "DEBUG")) == 0
    assert logger.level == logging.DEBUG
    assert (await described(world, LOGGER, "0", logger.name)).value == "DEBUG"

    assert await change(world, LOGGER, "0", (logger.name, SET, "LOUD")) != 0
    assert logger.level == logging.DEBUG
    assert await change(world, LOGGER, "0", (logger.name, DELETE, None)) == 0
    assert logger.level == logging.NOTSET


async def test_lists_may_be_added_to(world: World) -> None:
    """LF-065."""
    assert await change(world, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == 0

    config = world.topics.by_name(DEFAULT_ORG, "t").config
    assert (config.delete, config.compact) == (True, True)
