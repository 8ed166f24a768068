"""Apache Kafka's own DumpLogSegments reads the files without complaint."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import trio

from rafka.broker.partition import Partition
from rafka.env import real_env
from rafka.records.batch import OVERHEAD, read_header
from rafka.records.build import build
from rafka.records.check import Accepted
from rafka.records.record import Record
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.embedded import EmbeddedBackend

from .batches import put

pytestmark = pytest.mark.interop

NAME = LogName("topics/0123456789abcdef0123456789abcdef/0")


def kafka_tool() -> Path:
    """The script that runs a tool of Kafka's; the test is skipped where there is none."""
    beside = Path(__file__).parents[3] / "shared" / "peer" / "apache-kafka"
    script = Path(os.environ.get("RAFKA_KAFKA_PEER", beside))
    if shutil.which("java") is None or not script.is_file():
        pytest.skip("needs java and a script that runs Kafka's tools (RAFKA_KAFKA_PEER)")
    return script


def dump(script: Path, files: list[Path], *options: str) -> str:
    command: list[str | Path] = [
        script,
        "tool",
        "org.apache.kafka.tools.DumpLogSegments",
        "--files",
        ",".join(map(str, files)),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


async def write(root: Path) -> Path:
    """Three segments of batches of several codecs, times and epochs; the second one compacted."""
    backend = EmbeddedBackend(real_env(), str(root))
    await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        log = backend.open(NAME, LogSettings(index_interval_bytes=100))
        for segment in range(3):
            batches = []
            for i in range(40):
                times = [1_700_000_000_000 + 1000 * segment + 7 * i + j for j in range(i % 4 + 1)]
                batches.append(put(log, times=times[::-1], value=b"%d" % i * 30, codec=i % 2, epoch=segment))
            if segment < 2:
                log.roll()
            if segment == 1:
                await log.wait_flushed(log.end_offset)
                old = log.closed_segments()[1:]
                new = log.replacement(old)
                for batch in batches[::2]:
                    new.write(batch)
                assert await log.replace_segments(old, new)
        await backend.remove_deleted(1 << 60)
        nursery.cancel_scope.cancel()
    await backend.close()
    return root / NAME


COMPLAINTS = re.compile(
    r"mismatch|out of order|Found|invalid|corrupt|non-consecutive|Exception", re.IGNORECASE
)


async def test_kafkas_tool_reads_logs_and_indexes(tmp_path: Path) -> None:
    script = kafka_tool()
    folder = await write(tmp_path / "data")
    logs = sorted(folder.glob("*.log"))
    assert len(logs) == 3

    for log in logs:
        files = [log, log.with_suffix(".index"), log.with_suffix(".timeindex")]
        assert all(file.stat().st_size for file in files)
        text = await trio.to_thread.run_sync(dump, script, files, "--print-data-log", "--deep-iteration")
        assert not COMPLAINTS.search(text), text
        assert "isvalid: true" in text
        assert "isvalid: false" not in text
        assert text.count("baseOffset: ") == (20 if log == logs[1] else 40)


async def test_kafkas_tool_finds_the_indexes_sane(tmp_path: Path) -> None:
    script = kafka_tool()
    folder = await write(tmp_path / "data")
    indexes = sorted([*folder.glob("*.index"), *folder.glob("*.timeindex")])

    text = await trio.to_thread.run_sync(dump, script, indexes, "--index-sanity-check")
    assert text.count("passed sanity check") == 6, text
    text = await trio.to_thread.run_sync(dump, script, indexes, "--verify-index-only")
    assert not COMPLAINTS.search(text), text


async def test_kafkas_tool_reads_markers_and_what_was_aborted(tmp_path: Path) -> None:
    script = kafka_tool()
    backend = EmbeddedBackend(real_env(), str(tmp_path / "data"))
    await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        partition = Partition("t", 0, backend.open(NAME, LogSettings()))
        for producer, committed in ((7, False), (8, True), (9, False)):
            write_in_transaction(partition, producer)
            partition.write_marker(
                producer, 1, committed=committed, coordinator_epoch=5, now_ms=1_700_000_000_000
            )
        nursery.cancel_scope.cancel()
    await backend.close()
    [log] = (tmp_path / "data" / NAME).glob("*.log")

    index = await trio.to_thread.run_sync(dump, script, [log.with_suffix(".txnindex")])
    assert [line for line in index.splitlines() if line.startswith("version")] == [
        "version: 0 producerId: 7 firstOffset: 0 lastOffset: 1 lastStableOffset: 2",
        "version: 0 producerId: 9 firstOffset: 4 lastOffset: 5 lastStableOffset: 6",
    ]
    text = await trio.to_thread.run_sync(dump, script, [log], "--print-data-log", "--deep-iteration")
    assert not COMPLAINTS.search(text), text
    assert re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: (\d+)", text) == [
        ("ABORT", "5"),
        ("COMMIT", "5"),
        ("ABORT", "5"),
    ]


def write_in_transaction(partition: Partition, producer: int) -> None:
    records = [Record(0, 1_700_000_000_000, b"key", b"value")]
    batch = build(records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    header = read_header(batch)
    verified = partition.producers.verify(header, adds=True, now_ms=0)
    partition.append(Accepted(header=header, pieces=[batch[OVERHEAD:]]), False, verified)
