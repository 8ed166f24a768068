"""An fsync that fails ends the process at once: a second one would report success, with the data gone.

A small library, preloaded, makes fsync fail from a chosen moment on. What was not synced must not
have been acknowledged, the last line of the log must say what happened, and a restart on a disk
that works again must be whole.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .asking import offset_of
from .load import create_topic, log_of, send, send_and_wait

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

SOURCE = Path(__file__).with_name("failing_fsync.c")


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        pytest.skip("needs a C compiler to build the library that makes fsync fail")
    library = tmp_path / "failing_fsync.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


def test_a_failed_fsync_ends_the_process_without_an_ack(shim: Path, tmp_path: Path) -> None:
    fail, count = tmp_path / "fail", tmp_path / "count"
    env = {"LD_PRELOAD": str(shim), "FAIL_WHEN": str(fail), "FAIL_COUNT": str(count)}
    broker = RafkaProcess(tmp_path / "broker", env=env)
    with broker:
        create_topic(broker.bootstrap, "eio")
        assert send_and_wait(broker.bootstrap, "eio", 50) == 50

        fail.touch()
        refused = send(broker.bootstrap, "eio", [b"never acknowledged"], timeout=5)

        assert refused != 0, "acknowledged though it could not be synced"
        assert broker.wait_for_end(timeout=5) not in (0, -9), (
            "it must end by itself, and not as if all were well"
        )
        assert len(count.read_bytes()) == 1, "fsync was tried again after it had failed"
        last = broker.log.strip().splitlines()[-1]
        assert "fsync" in last.lower() or "sync" in last.lower(), f"the last line explains nothing: {last}"

        fail.unlink()
        broker.start()
        assert offset_of(broker.port, "eio", 0) >= 50
        assert len(log_of(broker.bootstrap, "eio", 0, 0, 50)) == 50
