"""A full disk: writes are refused with a code that says so, reads go on, and space heals everything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .disks import small_disk
from .load import create_topic, log_of, send

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

KAFKA_STORAGE_ERROR = 56
VALUE = bytes(range(256)) * 256  # 64 KB
MEGABYTES = 256
ENOUGH = (MEGABYTES << 20) // len(VALUE)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", MEGABYTES) as place:
        yield place


def test_writes_are_refused_reads_go_on_and_space_brings_writes_back(disk: Path, tmp_path: Path) -> None:
    filler = disk / "filler"
    filler.write_bytes(bytes(MEGABYTES << 19))  # half of it is somebody else's
    with RafkaProcess(tmp_path / "broker", data_dir=disk / "data") as broker:
        create_topic(broker.bootstrap, "full")

        acked, code = 0, 0
        while not code and acked < ENOUGH:
            code = send(broker.bootstrap, "full", [VALUE] * 20)
            acked += 0 if code else 20
        assert code == KAFKA_STORAGE_ERROR, f"{acked} records were taken"
        assert acked, "nothing was taken, though half the disk was free"

        assert len(log_of(broker.bootstrap, "full", 0, 0, acked)) == acked
        assert send(broker.bootstrap, "full", [VALUE]) == KAFKA_STORAGE_ERROR

        filler.unlink()
        began = time.monotonic()
        while (code := send(broker.bootstrap, "full", [b"after"])) and time.monotonic() - began < 10:
            time.sleep(0.1)
        assert code == 0
        assert time.monotonic() - began <= 5

        # And all of that is there after a crash too: nothing torn was taken for a record.
        broker.kill()
        broker.start()
        log = log_of(broker.bootstrap, "full", 0, 0, acked + 1)
        values = [value for _, value in log]
        assert values[:acked] == [VALUE] * acked
        assert len(values) > acked
        assert set(values[acked:]) <= {VALUE, b"after"}
