"""The machine's own disk: what the system calls do not promise, and the disk does."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rafka.env.real_disk import RealDisk, RealFile
from rafka.types import Buffer


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


def opened(disk: RealDisk, path: Path) -> RealFile:
    return disk.open(str(path), create=True)


def test_pieces_are_written_one_after_another(disk: RealDisk, tmp_path: Path) -> None:
    file = opened(disk, tmp_path / "f")

    file.write([b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b""], 3)

    assert file.read(100, 0) == b"\0\0\0abcdef"
    assert file.size() == 9


def test_more_pieces_than_one_call_takes_are_written(disk: RealDisk, tmp_path: Path) -> None:
    file = opened(disk, tmp_path / "f")
    pieces = [b"%d," % i for i in range(5000)]

    file.write(pieces, 0)

    assert file.read(1 << 20, 0) == b"".join(pieces)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_short_writes_are_gone_on_with(
    step: int, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(disk, tmp_path / "f")

    def short(fd: int, pieces: Sequence[Buffer], at: int) -> int:
        return os.pwrite(fd, b"".join(pieces)[:step], at)

    monkeypatch.setattr("rafka.env.real_disk.os.pwritev", short)
    file.write([b"abc", b"", b"defgh", memoryview(b"ij")], 2)

    assert file.read(100, 2) == b"abcdefghij"


def test_a_disk_that_takes_nothing_is_an_error(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(disk, tmp_path / "f")
    answers = iter([2, 0])
    monkeypatch.setattr("rafka.env.real_disk.os.pwritev", lambda fd, pieces, at: next(answers))

    with pytest.raises(OSError, match="takes nothing more"):
        file.write([b"abc"], 0)


def test_short_reads_are_gone_on_with(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(disk, tmp_path / "f")
    file.write([b"abcdefghij"], 0)
    whole = os.pread
    monkeypatch.setattr("rafka.env.real_disk.os.pread", lambda fd, size, at: whole(fd, min(size, 3), at))

    assert file.read(8, 1) == b"bcdefghi"
    assert file.read(100, 1) == b"bcdefghij"
    assert file.read(100, 10) == b""


def test_what_is_cached_is_read_without_waiting(disk: RealDisk, tmp_path: Path) -> None:
    opened(disk, tmp_path / "f").write([bytes(range(256)) * 40], 0)
    file = opened(disk, tmp_path / "f")

    assert file.read_cached(300, 10) == (bytes(range(256)) * 40)[10:310]
    assert file.read_cached(1 << 20, 10_000) == (bytes(range(256)) * 40)[10_000:]
    assert file.read_cached(10, 1 << 20) == b""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(BlockingIOError(), None), (OSError(errno.EOPNOTSUPP, ""), b"abc"), (0, None), (1, b"abc")],
)
def test_what_is_not_cached_is_told_and_what_cannot_be_told_is_read(
    answer: OSError | int,
    expected: bytes | None,
    disk: RealDisk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened(disk, tmp_path / "f").write([b"abc"], 0)
    file = opened(disk, tmp_path / "f")

    def preadv(*args: object) -> int:
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr("rafka.env.real_disk.os.preadv", preadv)

    assert file.read_cached(3, 0) == expected


def test_an_error_of_reading_is_passed_on(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(disk, tmp_path / "f")

    def broken(*args: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("rafka.env.real_disk.os.preadv", broken)

    with pytest.raises(OSError, match="Input/output"):
        file.read_cached(3, 0)


def test_a_closed_file_is_never_another_one(disk: RealDisk, tmp_path: Path) -> None:
    file = opened(disk, tmp_path / "f")
    file.close()
    file.close()
    opened(disk, tmp_path / "g").write([b"x"], 0)

    for use in (lambda: file.write([b"y"], 0), lambda: file.read(1, 0), file.size, file.sync):
        with pytest.raises(OSError, match="Bad file descriptor"):
            use()


def test_files_grow_and_shrink(disk: RealDisk, tmp_path: Path) -> None:
    file = opened(disk, tmp_path / "f")
    file.write([b"abcdef"], 0)

    file.truncate(3)
    file.allocate(10_000)
    file.allocate(5)
    file.sync()

    assert file.size() == 10_000
    assert file.read(5, 0) == b"abc\0\0"


def test_names(disk: RealDisk, tmp_path: Path) -> None:
    root = str(tmp_path)
    disk.make_dir(f"{root}/a/b")
    disk.make_dir(f"{root}/a/b")
    disk.open(f"{root}/a/b/two", create=True).write([b"2"], 0)
    disk.open(f"{root}/a/b/one", create=True)
    disk.sync_dir(f"{root}/a/b")

    assert disk.list(f"{root}/a/b") == ["one", "two"]
    assert disk.list(f"{root}/nothing") == []
    with pytest.raises(NotADirectoryError):
        disk.list(f"{root}/a/b/one")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{root}/a/b/three")
    disk.rename(f"{root}/a/b/two", f"{root}/a/b/one")
    assert disk.open(f"{root}/a/b/one").read(5, 0) == b"2"
    assert disk.modified(f"{root}/a/b/one") > 1_600_000_000
    with pytest.raises(OSError, match="not empty"):
        disk.remove_dir(f"{root}/a/b")
    disk.remove(f"{root}/a/b/one")
    disk.remove_dir(f"{root}/a/b")
    assert not disk.exists(f"{root}/a/b")
    total, free = disk.room(root)
    assert total > free > 0


def test_a_lock_is_held_against_other_processes_and_let_go_by_their_death(
    disk: RealDisk, tmp_path: Path
) -> None:
    path = str(tmp_path / "lock")
    code = (
        "import sys; from rafka.env.real_disk import RealDisk; lock = RealDisk().lock(sys.argv[1]);"
        "print('held' if lock else 'taken', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert disk.lock(path) is None
        assert Path(path).read_text() == f"{other.pid}\n"
        other.kill()

    lock = disk.lock(path)
    assert lock is not None
    assert disk.lock(path) is None
    lock.release()
    again = disk.lock(path)
    assert again is not None
    again.release()
