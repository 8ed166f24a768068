"""A machine ends its process when it dies, and nothing that the dead do reaches the disk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from rafka.env import Env
from rafka.env.sim_disk import PowerCut

from .machine import Machine
from .runner import Chance, run


def on_a_machine(scene: Callable[[Machine], Awaitable[None]]) -> None:
    async def world(chance: Chance) -> None:
        await scene(Machine(chance))

    run(1, world, horizon=60)


async def write(env: Env, path: str, data: bytes, *, sync: bool = False) -> None:
    """Through the life's own view of the disk, as any process does it."""
    file = env.disk.open(path, create=True)
    file.write([data], 0)
    if sync:
        file.sync()
        env.disk.sync_dir("/")
    file.close()


def test_a_killed_process_ends_and_leaves_what_it_wrote() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            await write(env, "/a", b"written, not synced")
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.live, process)
            await trio.sleep(1)
            machine.kill()

        assert machine.disk.contents("/a") == b"written, not synced"
        assert not machine.alive

    on_a_machine(scene)


def test_a_loss_of_power_leaves_what_was_synced() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            await write(env, "/a", b"synced", sync=True)
            await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(machine.live, process)
            await trio.sleep(1)
            machine.power_loss()

        assert machine.disk.contents("/a") == b"synced"

    on_a_machine(scene)


def test_the_dead_write_nothing() -> None:
    """Neither in a `finally`, nor in a thread that was under way."""

    async def scene(machine: Machine) -> None:
        met: list[str] = []

        async def process(env: Env) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(env.spawn_thread, env.disk.make_dir, "/late")
                try:
                    machine.kill()
                    await trio.sleep_forever()
                finally:
                    met.append("finally")
                    env.disk.make_dir("/finally")

        assert await machine.live(process) is None
        assert met == ["finally"]
        assert machine.disk.list("/") == []

    on_a_machine(scene)


def test_the_power_goes_at_the_change_that_was_chosen() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            await write(env, "/a", b"a", sync=True)
            machine.cut_power_at_change(1)
            env.disk.make_dir("/one more")
            env.disk.make_dir("/too many")

        assert await machine.live(process) is None
        assert machine.disk.contents("/a") == b"a"
        assert "too many" not in machine.disk.list("/")

    on_a_machine(scene)


def test_another_life_finds_the_disk_alive() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            assert env.disk.lock("/lock") is not None
            await write(env, "/a", b"a")
            machine.kill()
            with pytest.raises(PowerCut):
                env.disk.exists("/a")

        await machine.live(process)
        await machine.live(process)

    on_a_machine(scene)


def test_what_a_process_dies_of_is_told() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            assert env.disk.lock("/lock") is not None
            raise ValueError("planted")

        for _ in range(2):  # its locks end with it
            assert repr(await machine.live(process)) == "ValueError('planted')"

    on_a_machine(scene)


def test_a_process_is_cancelled_with_the_world() -> None:
    async def scene(machine: Machine) -> None:
        async def process(env: Env) -> None:
            await trio.sleep_forever()

        with trio.move_on_after(1) as world:
            await machine.live(process)

        assert world.cancelled_caught

    on_a_machine(scene)
