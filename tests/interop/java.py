"""Kafka's own tools, run by java: they are there where java is, and a script that finds their classes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.brokers import ROOT

CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUP_COMMAND: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PATIENCE: Final = 90.0


def script() -> Path:
    """What runs a tool of Kafka's; the test is skipped where there is none."""
    beside = ROOT.parent / "shared" / "peer" / "apache-kafka"
    found = Path(os.environ.get("RAFKA_KAFKA_PEER", beside))
    if shutil.which("java") is None or not found.is_file():
        pytest.skip("needs java and a script that runs Kafka's tools (RAFKA_KAFKA_PEER)")
    return found


def start(tool: str, *words: str) -> subprocess.Popen[str]:
    # In a session of its own: the script may stand between us and java.
    return subprocess.Popen(
        [script(), "tool", tool, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextlib.contextmanager
def running(tool: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = start(tool, *words)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def stop(process: subprocess.Popen[str]) -> str:
    """SIGTERM, upon which Kafka's tools close their clients; what was printed."""
    os.killpg(process.pid, signal.SIGTERM)
    return process.communicate(timeout=PATIENCE)[0]


def run(*commands: tuple[str, ...]) -> list[str]:
    """What each of these tools prints, run side by side: a virtual machine takes its time to begin."""
    started = [start(*command) for command in commands]
    printed = []
    for process in started:
        out, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, out + errors
        printed.append(out)
    return printed
