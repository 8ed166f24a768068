"""The simulated disk: it keeps what was synced, and loses what may be lost, in every way there is."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from rafka.env.sim_disk import PowerCut, SimDisk


def disk_with(content: bytes, seed: int = 0) -> SimDisk:
    """One file, `f`, durable as it is."""
    disk = SimDisk(Random(seed))
    file = disk.open("f", create=True)
    file.write([content], 0)
    file.sync()
    disk.sync_dir("")
    return disk


def outcomes(before: Callable[[SimDisk], None], after: Callable[[SimDisk], object]) -> set[object]:
    """What there may be after a loss of power."""
    found = set()
    for seed in range(300):
        disk = disk_with(b"durable", seed)
        before(disk)
        disk.power_loss()
        found.add(after(disk))
    return found


def test_what_was_synced_stays() -> None:
    def synced(disk: SimDisk) -> None:
        file = disk.open("f")
        file.write([b"D"], 0)
        file.truncate(3)
        file.sync()

    assert outcomes(synced, lambda disk: disk.contents("f")) == {b"Dur"}


def test_writes_are_kept_lost_torn_holed_or_damaged_but_only_they() -> None:
    def written(disk: SimDisk) -> None:
        file = disk.open("f")
        file.write([b"-one"], 7)
        file.write([b"-two"], 11)

    found = outcomes(written, lambda disk: disk.contents("f"))

    assert all(bytes(content).startswith(b"durable") for content in found if isinstance(content, bytes))
    assert {b"durable", b"durable-one", b"durable-one-two"} <= found  # lost, cut short, kept
    assert {b"durable-on", b"durable-one-t"} <= found  # torn
    assert b"durable\0\0\0\0-two" in found  # a hole
    assert any(
        isinstance(content, bytes) and len(content) == 15 and sum(map(int.bit_count, xor(content))) == 1
        for content in found
    )


def xor(content: bytes) -> list[int]:
    return [a ^ b for a, b in zip(content, b"durable-one-two", strict=True)]


def test_a_truncation_may_be_undone() -> None:
    def cut(disk: SimDisk) -> None:
        disk.open("f").truncate(3)

    assert outcomes(cut, lambda disk: disk.contents("f")) == {b"dur", b"durable"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda disk: disk.open("g", create=True), {("f",), ("f", "g")}),
        (lambda disk: disk.rename("f", "g"), {("f",), ("g",)}),
        (lambda disk: disk.remove("f"), {("f",), ()}),
        (lambda disk: disk.make_dir("d/e"), {("f",), ("d", "f")}),
    ],
)
def test_names_that_were_not_synced_may_be_as_before(
    change: Callable[[SimDisk], None], expected: set[object]
) -> None:
    assert outcomes(change, lambda disk: tuple(disk.list(""))) == expected

    def synced(disk: SimDisk) -> None:
        change(disk)
        disk.sync_dir("")

    assert len(outcomes(synced, lambda disk: tuple(disk.list("")))) == 1


def test_what_is_in_a_folder_that_is_lost_is_lost() -> None:
    def nested(disk: SimDisk) -> None:
        disk.make_dir("d")
        file = disk.open("d/x", create=True)
        file.sync()
        disk.sync_dir("d")

    assert outcomes(nested, lambda disk: disk.exists("d/x")) == {True, False}


def test_a_kill_loses_no_bytes_but_all_handles_and_locks() -> None:
    disk = disk_with(b"durable")
    file = disk.open("f")
    file.write([b"!"], 7)
    lock = disk.lock("lock")
    assert lock is not None
    assert disk.lock("lock") is None

    disk.kill()

    assert disk.contents("f") == b"durable!"
    assert disk.lock("lock") is not None
    for use in (lambda: file.read(1, 0), lambda: file.write([b"x"], 0), file.sync, file.size):
        with pytest.raises(OSError, match="Bad file"):
            use()


def test_a_failed_sync_drops_what_it_should_have_kept_and_the_next_one_says_nothing() -> None:
    disk = disk_with(b"durable")
    file = disk.open("f")
    file.write([b"!"], 7)
    disk.p_sync_error = 1
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.p_sync_error = 0
    file.sync()
    assert file.read(10, 0) == b"durable!"

    disk.power_loss()

    assert disk.contents("f") == b"durable"


def test_a_full_disk_takes_what_fits_and_says_so() -> None:
    disk = SimDisk(Random(0), capacity=10)
    file = disk.open("f", create=True)
    file.write([b"123456"], 0)
    with pytest.raises(OSError, match="No space"):
        file.write([b"789abc"], 6)
    assert disk.contents("f") == b"123456789a"
    file.write([b"X"], 3)  # over what is there
    with pytest.raises(OSError, match="No space"):
        file.allocate(11)
    file.truncate(5)
    assert disk.room("") == (10, 5)


def test_power_can_be_cut_before_any_change() -> None:
    disk = disk_with(b"durable")
    file = disk.open("f")
    disk.cut_power_after(1)
    assert file.read(7, 0) == b"durable"
    file.write([b"D"], 0)
    assert file.read(7, 0) == b"Durable"
    with pytest.raises(PowerCut):
        file.write([b"UR"], 1)
    for use in (lambda: file.read(1, 0), file.sync, lambda: disk.list(""), lambda: disk.exists("f")):
        with pytest.raises(PowerCut):
            use()

    disk.kill()

    assert disk.contents("f") == b"Durable"
    disk.remove("f")


def test_reads_may_be_cold_or_fail() -> None:
    disk = disk_with(b"durable")
    file = disk.open("f")
    disk.p_cold = 1
    assert file.read_cached(7, 0) is None
    assert file.read(7, 0) == b"durable"
    disk.p_read_error = 1
    with pytest.raises(OSError, match="Input/output"):
        file.read(7, 0)


def test_errors_are_those_of_a_real_disk() -> None:
    disk = disk_with(b"durable")
    disk.make_dir("d/e")
    disk.open("d/x", create=True)
    for use, kind in (
        (lambda: disk.open("g"), FileNotFoundError),
        (lambda: disk.open("no/g", create=True), FileNotFoundError),
        (lambda: disk.list("f"), NotADirectoryError),
        (lambda: disk.make_dir("f/g"), NotADirectoryError),
        (lambda: disk.remove_dir("f"), NotADirectoryError),
        (lambda: disk.remove("d"), IsADirectoryError),
        (lambda: disk.remove_dir("d"), OSError),
        (lambda: disk.remove("g"), FileNotFoundError),
        (lambda: disk.rename("g", "h"), FileNotFoundError),
        (lambda: disk.sync_dir("no"), FileNotFoundError),
    ):
        with pytest.raises(kind):
            use()
    assert disk.list("no") == []
    disk.remove("d/x")
    disk.remove_dir("d/e")
    disk.remove_dir("d")
    assert disk.list("") == ["f"]


def test_the_same_seed_loses_the_same() -> None:
    def life(seed: int) -> list[bytes]:
        disk = disk_with(b"durable", seed)
        for i in range(20):
            file = disk.open(f"g{i}", create=True)
            file.write([bytes([i]) * 30], 0)
        disk.power_loss()
        return [disk.contents(name) for name in disk.list("")]

    assert life(7) == life(7)
    assert life(7) != life(8)
