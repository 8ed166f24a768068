"""A pipeline around one broker: what is produced to one topic has to be in another exactly once.

For every partition of the input there is a transactional id, and whoever has it last may work.
Workers die, freeze and come back as zombies, are replaced while they live, end what is
over; the broker is killed, loses power, its network breaks. At the end all is healed,
the last workers finish, and everything is read once more.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from unittest import mock

import attrs
import trio

from rafka import server
from rafka.config import Config
from rafka.env import Env
from rafka.storage.backend import LogBackend

from .broker_world import Scenario, config_of, small_segments, supervise, unleash
from .clients import Client, Producer, Topic, create_topic
from .history import History
from .kit.machine import Machine
from .kit.net import SimNet
from .kit.runner import Chance, wall_clock
from .txn_history import PipelineHistory
from .txn_reader import CommittedReader
from .txn_worker import Worker

LONGEST_S = 5.0  # a transaction, as workers ask for it
GRACE_S = 10.0


@attrs.frozen
class Pipeline:
    """How large a world is, and what befalls it."""

    partitions: int = 2
    batches: int = 10  # of each producer of input
    faults: tuple[str, ...] = ("kill", "power loss", "power cut", "partition", "reset")
    fault_every: float = 0.5  # mean virtual seconds
    trouble: float = 6.0  # virtual seconds, after all input is there
    replaced_every: float = 1.5
    pause: float = 3.0  # how long a worker may freeze
    storage: str = "file:/data"
    durability: str = "fsync"


async def txn_world(chance: Chance, pipeline: Pipeline) -> PipelineHistory:
    scenario = Scenario(
        faults=pipeline.faults,
        fault_every=pipeline.fault_every,
        storage=pipeline.storage,
        settings={"durability": pipeline.durability},
    )
    machine = Machine(chance)
    dice = chance.stream("config")
    config, segment_bytes = config_of(dice, scenario), dice.choice((2000, 20_000, 1 << 20))
    make_backend = server.make_backend

    def made(config: Config, env: Env) -> LogBackend:
        return small_segments(make_backend(config, env), segment_bytes)

    with mock.patch.object(server, "make_backend", made):
        return await _play(chance, pipeline, scenario, machine, config)


async def _play(
    chance: Chance, pipeline: Pipeline, scenario: Scenario, machine: Machine, config: Config
) -> PipelineHistory:
    inputs, history = History(), PipelineHistory()
    async with trio.open_nursery() as world:
        net = SimNet(world, chance.stream("net"))
        world.start_soon(supervise, machine, net, config, history.faults, name="supervisor")

        async def connect() -> trio.abc.Stream:
            return await net.connect()

        nemesis = trio.CancelScope()
        world.start_soon(unleash, nemesis, chance.stream("nemesis"), scenario, machine, net, history.faults)
        admin = Client("admin", connect, chance.stream("admin"), inputs)
        source = await create_topic(admin, "in", pipeline.partitions)
        target = await create_topic(admin, "out", pipeline.partitions)
        read = trio.Event()
        for name in ("reader-0", "reader-1"):
            reader = CommittedReader(name, connect, chance.stream(name), history)
            world.start_soon(reader.follow, target, read, name=name)
        await _work(chance, pipeline, connect, (source, target), (inputs, history), nemesis, net)
        orphan = Worker("orphan", 0, connect, chance.stream("orphan"), history, wall_clock)
        await orphan.leave_open(target)
        read.set()
        await trio.sleep(LONGEST_S + GRACE_S)
        final = CommittedReader("final", connect, chance.stream("final"), history)
        await final.read_through(target)
        history.surprises = inputs.surprises + history.surprises
        world.cancel_scope.cancel()
    return history


async def _work(
    chance: Chance,
    pipeline: Pipeline,
    connect: Callable[[], Awaitable[trio.abc.Stream]],
    topics: tuple[Topic, Topic],
    histories: tuple[History, PipelineHistory],
    nemesis: trio.CancelScope,
    net: SimNet,
) -> None:
    """Produce and transform; when all is produced, peace, and what is left is finished."""
    (source, target), (inputs, history) = topics, histories
    ending = trio.Event()
    async with trio.open_nursery() as workers:
        for partition in range(source.partitions):
            dice = chance.stream(f"shift {partition}")
            shift = Shift(partition, connect, dice, history, pipeline, ending)
            workers.start_soon(shift.run, source, target, name=f"shift {partition}")
        async with trio.open_nursery() as producers:
            for number in range(2):
                name = f"producer-{number}"
                producer = Producer(name, connect, chance.stream(name), inputs, wall_clock)
                producers.start_soon(producer.run, source, pipeline.batches, name=name)
        for partition in range(source.partitions):
            sent = [send for send in inputs.sends if send.tp == (source.name, partition)]
            sent.sort(key=lambda send: send.offset)
            history.inputs[partition] = [send.value for send in sent]
        await trio.sleep(pipeline.trouble)
        nemesis.cancel()
        net.partitioned = False
        ending.set()


class Shift:
    """Sees to it that somebody works at a partition. It may be hasty, and then there are two."""

    def __init__(
        self,
        partition: int,
        connect: Callable[[], Awaitable[trio.abc.Stream]],
        dice: random.Random,
        history: PipelineHistory,
        pipeline: Pipeline,
        ending: trio.Event,
    ) -> None:
        self._partition = partition
        self._connect = connect
        self._dice = dice
        self._history = history
        self._pipeline = pipeline
        self._ending = ending

    async def run(self, source: Topic, target: Topic) -> None:
        async with trio.open_nursery() as all_of_them:
            while True:
                worker = self._worker()
                pause = 0.0 if self._ending.is_set() else self._pipeline.pause
                scope, over = trio.CancelScope(), trio.Event()
                all_of_them.start_soon(self._live, worker, scope, over, source, target, pause)
                with trio.move_on_after(
                    self._dice.expovariate(1 / self._pipeline.replaced_every)
                ) as patience:
                    await over.wait()
                if worker.done:
                    break
                if self._ending.is_set():
                    await over.wait()
                    if worker.done:
                        break
                elif patience.cancelled_caught and self._dice.random() < 0.5:
                    scope.cancel()  # kill -9; otherwise the old one lives on, as a zombie
                elif patience.cancelled_caught:
                    self._history.zombies += 1
                await trio.sleep(self._dice.uniform(0, 0.3))
            await trio.sleep(self._pipeline.pause)
            all_of_them.cancel_scope.cancel()

    async def _live(
        self,
        worker: Worker,
        scope: trio.CancelScope,
        over: trio.Event,
        source: Topic,
        target: Topic,
        pause: float,
    ) -> None:
        with scope:
            await worker.run(source, target, self._ending, pause)
        over.set()

    def _worker(self) -> Worker:
        return Worker(
            f"w{self._partition}", self._partition, self._connect, self._dice, self._history, wall_clock
        )
