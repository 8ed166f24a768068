"""A world around one broker: clients, a bad network, a machine that dies, and a final reckoning.

The broker is the real one, from bytes on a stream down to files on a disk; clients, network,
disk and time are simulated. While producers send and consumers read, the nemesis kills
the broker, pulls the plug, cuts and resets connections. Once every producer is done,
all is healed, the consumers read to the end, and a fresh one reads everything again.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast
from unittest import mock

import attrs
import trio

from rafka import server
from rafka.config import Config, load
from rafka.env import Env
from rafka.storage.backend import Log, LogBackend, LogName, LogSettings, StorageFailed

from .clients import Client, Consumer, Producer, Topic, create_topic
from .history import History
from .kit.machine import Machine
from .kit.net import SimNet, SimStream
from .kit.runner import Chance, wall_clock

Faults: TypeAlias = list[tuple[float, str]]  # when, and what

CUTS: Final = (1, 1, 1, 1, 2, 3, 5, 30)  # changes to let pass: after 1, a write, comes its sync


@attrs.frozen
class Scenario:
    """How large a world is, and what befalls it."""

    producers: int = 3
    consumers: int = 2
    partitions: int = 2
    batches: int = 20  # requests of each producer
    faults: tuple[str, ...] = ("kill", "power loss", "power cut", "partition", "reset")
    fault_every: float = 0.3  # mean virtual seconds
    preallocate: bool = False
    storage: str = "file:/data"
    settings: Mapping[str, str] = attrs.field(factory=dict)  # of the broker, besides those of every world


async def broker_world(chance: Chance, scenario: Scenario) -> History:
    history = History()
    machine = Machine(chance)
    dice = chance.stream("config")
    config, segment_bytes = config_of(dice, scenario), dice.choice((2000, 20_000, 1 << 20))
    make_backend = server.make_backend

    def made(config: Config, env: Env) -> LogBackend:
        return small_segments(make_backend(config, env), segment_bytes)

    with mock.patch.object(server, "make_backend", made):
        await _play(chance, scenario, machine, config, history)
    return history


async def _play(
    chance: Chance, scenario: Scenario, machine: Machine, config: Config, history: History
) -> None:
    async with trio.open_nursery() as world:
        net = SimNet(world, chance.stream("net"))
        world.start_soon(supervise, machine, net, config, history.faults, name="supervisor")

        async def connect() -> trio.abc.Stream:
            return await net.connect()

        nemesis = trio.CancelScope()
        world.start_soon(unleash, nemesis, chance.stream("nemesis"), scenario, machine, net, history.faults)
        admin = Client("admin", connect, chance.stream("admin"), history)
        topic = await create_topic(admin, "orders", scenario.partitions)
        await _work(chance, scenario, connect, topic, history, nemesis, net)
        reader = Consumer("final", connect, chance.stream("final"), history)
        history.finals.update(await reader.read_through(topic))
        world.cancel_scope.cancel()


async def _work(
    chance: Chance,
    scenario: Scenario,
    connect: Callable[[], Awaitable[trio.abc.Stream]],
    topic: Topic,
    history: History,
    nemesis: trio.CancelScope,
    net: SimNet,
) -> None:
    """Produce and consume; when all is produced, peace, and the consumers come to the end."""
    ending = trio.Event()
    async with trio.open_nursery() as consumers:
        for number in range(scenario.consumers):
            name = f"consumer-{number}"
            consumer = Consumer(name, connect, chance.stream(name), history)
            consumers.start_soon(consumer.run, topic, ending, name=name)
        async with trio.open_nursery() as producers:
            for number in range(scenario.producers):
                name = f"producer-{number}"
                producer = Producer(name, connect, chance.stream(name), history, wall_clock)
                producers.start_soon(producer.run, topic, scenario.batches, name=name)
        nemesis.cancel()
        net.partitioned = False
        ending.set()


async def supervise(machine: Machine, net: SimNet, config: Config, faults: Faults) -> None:
    """Start the broker, and start it again whenever it ended."""

    async def process(env: Env) -> None:
        async with server.open_broker(config, env, listen=False) as broker, trio.open_nursery() as clients:
            async for stream in net.listen():
                clients.start_soon(_serve, broker.serve_stream, stream)

    while True:
        cause = await machine.live(process)
        net.unlisten()
        net.reset_all()
        if isinstance(cause, StorageFailed):
            faults.append((trio.current_time(), "storage failed"))
        elif cause is not None:
            raise cause
        await trio.sleep(machine.dice.uniform(0.05, 0.5))


async def _serve(serve: Callable[[trio.abc.Stream], Awaitable[None]], stream: SimStream) -> None:
    async with stream:
        await serve(stream)


async def unleash(
    scope: trio.CancelScope,
    dice: random.Random,
    scenario: Scenario,
    machine: Machine,
    net: SimNet,
    faults: Faults,
) -> None:
    """Do harm, fault after fault, until the scope is cancelled."""
    with scope:
        while True:
            await trio.sleep(dice.expovariate(1 / scenario.fault_every))
            fault = dice.choice(scenario.faults)
            faults.append((trio.current_time(), fault))
            match fault:
                case "kill":
                    machine.kill()
                case "power loss":
                    machine.power_loss()
                case "power cut":
                    machine.cut_power_at_change(dice.choice(CUTS))
                case "partition":
                    net.partitioned = True
                    await trio.sleep(dice.uniform(0.1, 4))
                    net.partitioned = False
                case "reset" if net.connections:
                    dice.choice(net.connections).reset()


def config_of(dice: random.Random, scenario: Scenario) -> Config:
    """Another broker for every seed: small limits make rare ways common."""
    settings = {
        "storage": scenario.storage,
        "log.index.interval.bytes": dice.choice(("0", "500", "4096")),
        "log.roll.ms": dice.choice(("1000", "604800000")),
        "log.preallocate": str(scenario.preallocate).lower(),
        "checkpoint.interval.ms": dice.choice(("500", "60000")),
        "log.segment.delete.delay.ms": "0",
        "log.retention.ms": "-1",
        "storage.reserve.bytes": "0",
        **scenario.settings,
    }
    return load(flags=[(key, value, "the simulation") for key, value in settings.items()])


def small_segments(backend: LogBackend, segment_bytes: int) -> LogBackend:
    """A backend whose segments are smaller than Kafka lets anybody ask for."""

    class SmallSegments:
        def open(self, name: LogName, settings: LogSettings) -> Log:
            any_settings: Any = settings  # mypy does not see that a message is an attrs class
            return backend.open(name, attrs.evolve(any_settings, segment_bytes=segment_bytes))

        def __getattr__(self, name: str) -> Any:
            return getattr(backend, name)

    return cast(LogBackend, SmallSegments())
