"""A pipeline of processes that are killed at random, and started again under their old names."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import attrs

from tests.brokers import ROOT

from .vocabulary import Library

DEADLINE_S = 240.0
IN_ONE_TRANSACTION = 100


@attrs.frozen
class Stage:
    library: str
    source: str
    target: str
    group: str
    workers: int


def fill(library: Library, bootstrap: str, topic: str, partitions: int, records: int) -> None:
    """The numbers from 0 on; every tenth transaction is aborted first, and written once more."""
    with library.producer(bootstrap, f"fill-{topic}") as producer:
        for turn, start in enumerate(range(0, records, IN_ONE_TRANSACTION)):
            numbers = range(start, min(start + IN_ONE_TRANSACTION, records))
            for commit in (False, True) if turn % 10 == 0 else (True,):
                producer.begin()
                for number in numbers:
                    producer.send(topic, b"%d" % number, number % partitions)
                if commit:
                    producer.commit()
                else:
                    producer.abort()


def run_pipeline(
    bootstrap: str, stages: Sequence[Stage], arrived: Callable[[], list[bytes]], records: int, kills: int
) -> list[bytes]:
    """What is at its end once as much is there as there should be, or more."""
    dice = random.Random(records)
    names = [(stage, f"{stage.group}-{n}") for stage in stages for n in range(stage.workers)]
    running = {name: _start(bootstrap, stage, name) for stage, name in names}
    deadline, look_at = time.monotonic() + DEADLINE_S, 0.0
    kill_at = time.monotonic() + 3
    out: list[bytes] = []
    try:
        while len(out) < records or kills > 0:
            assert time.monotonic() < deadline, (
                f"{len(out)} of {records} came through; {kills} kills are left"
            )
            now = time.monotonic()
            if kills > 0 and now > kill_at:
                stage, name = dice.choice(names)
                running[name].kill()
                kills, kill_at = kills - 1, now + dice.uniform(0.5, 3)
            for stage, name in names:  # a worker that was fenced, or did not know how to go on, ends
                if running[name].poll() is not None:
                    running[name] = _start(bootstrap, stage, name)
            if now > look_at:
                out = arrived()
                look_at = time.monotonic() + 1
            time.sleep(0.05)
        time.sleep(2)  # what is written twice is written by now
        return arrived()
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _start(bootstrap: str, stage: Stage, name: str) -> subprocess.Popen[bytes]:
    module = f"{__package__}.worker"
    command = [sys.executable, "-W", "ignore", "-m", module, stage.library, bootstrap]
    return subprocess.Popen(
        [*command, stage.source, stage.target, stage.group, name],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
