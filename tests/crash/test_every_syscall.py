"""Killed at every system call that changes the disk: no order of writes, renames and syncs is unlucky.

A scripted scenario runs under strace, which kills the broker at the n-th call of a kind, for every n
until the scenario gets through. After each kill a start without strace must find what was
acknowledged. RAFKA_CRASH_POINTS bounds the number of kills of a kind (30).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .history import value_of
from .load import confluent_kafka, create_topic, delete_topic, log_of, send, topics_of

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

POINTS = int(os.environ.get("RAFKA_CRASH_POINTS", "30"))
KINDS = {
    "sync": "fsync,fdatasync",
    "write": "pwrite64,pwritev,pwritev2",
    "rename": "rename,renameat,renameat2",
    "shape": "ftruncate,fallocate,unlink,unlinkat,mkdir,mkdirat",
}


def strace_killing_at(calls: str, number: int) -> tuple[str, ...]:
    """With -D the tracer is the grandchild: the process that we started is the broker itself."""
    chosen = f"inject={calls}:signal=KILL:when={number}"
    return ("strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e", chosen)


def can_trace() -> bool:
    command = [*strace_killing_at("fsync", 1), "true"]
    return shutil.which("strace") is not None and subprocess.run(command, check=False).returncode == 0


class Scenario:
    """What a client does, and what it was told, up to the moment when nobody answers any more."""

    def __init__(self, broker: RafkaProcess) -> None:
        self.broker = broker
        self.created: set[str] = set()
        self.deleted: set[str] = set()
        self.acked: list[bytes] = []

    def play(self) -> bool:
        """Whether it came to its end."""
        try:
            create_topic(self.broker.bootstrap, "kept", 1, {"segment.bytes": "16384"}, timeout=3)
            self.created.add("kept")
            create_topic(self.broker.bootstrap, "gone", timeout=3)
            for start in range(0, 60, 20):
                values = [value_of("s", i, size=900) for i in range(start, start + 20)]
                if send(self.broker.bootstrap, "kept", values, timeout=3):
                    return False
                self.acked += values
            delete_topic(self.broker.bootstrap, "gone", timeout=3)
            self.deleted.add("gone")
        except confluent_kafka.KafkaException:
            return False
        return True

    def check(self) -> None:
        """Against a broker that was started again."""
        there = topics_of(self.broker.bootstrap)
        assert self.created <= there
        assert not self.deleted & there
        if self.acked:
            log = log_of(self.broker.bootstrap, "kept", 0, 0, len(self.acked))
            assert log == list(enumerate(self.acked))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_at_any_call_loses_nothing(kind: str, tmp_path: Path) -> None:
    if not can_trace():
        pytest.skip("strace is not installed, or may not trace here")
    killed = 0
    for number in range(1, POINTS + 1):
        broker = RafkaProcess(tmp_path / str(number), wrapper=strace_killing_at(KINDS[kind], number))
        scenario = Scenario(broker)
        with_end = False
        try:
            broker.start()
            with_end = scenario.play()
        except RuntimeError:
            pass  # killed before it could answer
        finally:
            alive = broker.process is not None and broker.process.poll() is None
            broker.close()
        broker.wrapper = ()
        with broker:
            scenario.check()
        shutil.rmtree(broker.home)
        if alive and with_end:
            break
        killed += 1
    # Renames may be few, but a scenario that writes and syncs nothing proves nothing.
    assert killed or kind in ("rename", "shape"), "no call of this kind was made at all"
