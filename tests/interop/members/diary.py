"""What members of a group tell of themselves, in the order of one clock, and what must hold of it.

A member says when partitions become its own, when it gives them up, and what it reads. Its
rebalance listener is what says so, before anything goes to the coordinator. The clock is the
machine's monotonic one, so members in processes of their own write into the same diary.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Final, Protocol

import attrs


class Did(StrEnum):
    ASSIGNED = "assigned"  # these are its own from now on, beside those that it has
    REVOKED = "revoked"  # it is about to give these up
    LOST = "lost"  # these have been given to others already
    READ = "read"
    LEFT = "left"  # it is about to close, or it was killed: it reads nothing more
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Entry:
    at: float
    member: str
    did: Did
    partitions: frozenset[int] = frozenset()
    offset: int = -1
    value: str = ""


@attrs.frozen(kw_only=True)
class Plan:
    """What a member is to be."""

    name: str
    bootstrap: str
    group: str
    topic: str
    assignor: str = "range"
    instance_id: str | None = None
    session_timeout: float = 10.0
    heartbeat_interval: float = 0.15

    @property
    def session_ms(self) -> int:
        return int(self.session_timeout * 1000)

    @property
    def heartbeat_ms(self) -> int:
        return int(self.heartbeat_interval * 1000)


class Member(Protocol):
    """Joins, reads until it is told to stop, leaves. Every library has one, called `consume`."""

    def __call__(self, plan: Plan, pen: Pen, stop: threading.Event) -> None: ...


class Pen:
    """What one member writes with. `write` may be called by any thread."""

    def __init__(self, member: str, write: Callable[[Entry], None]) -> None:
        self.member: Final = member
        self._write: Final = write

    def assigned(self, partitions: Iterable[Any]) -> None:
        self._say(Did.ASSIGNED, partitions)

    def revoked(self, partitions: Iterable[Any]) -> None:
        self._say(Did.REVOKED, partitions)

    def lost(self, partitions: Iterable[Any]) -> None:
        self._say(Did.LOST, partitions)

    def read(self, partition: int, offset: int, value: bytes) -> None:
        whose = frozenset([partition])
        self._write(self._entry(Did.READ, partitions=whose, offset=offset, value=value.decode()))

    def left(self) -> None:
        self._write(self._entry(Did.LEFT))

    def failed(self, error: BaseException) -> None:
        self._write(self._entry(Did.FAILED, value=repr(error)))

    def _say(self, did: Did, partitions: Iterable[Any]) -> None:
        """The libraries' own classes of partitions agree on the name of the number."""
        self._write(self._entry(did, partitions=frozenset(one.partition for one in partitions)))

    def _entry(self, did: Did, **more: Any) -> Entry:
        return Entry(at=time.monotonic(), member=self.member, did=did, **more)


class Diary:
    """The entries of all members."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> None:
        with self._lock:
            self._entries.append(entry)

    def entries(self, *dids: Did) -> list[Entry]:
        with self._lock:
            found = [one for one in self._entries if not dids or one.did in dids]
        return sorted(found, key=lambda one: one.at)

    def shares(self) -> dict[str, frozenset[int]]:
        """Who owns what by now, of those who are there."""
        held: dict[str, frozenset[int]] = {}
        gone = {
            one.member for one in self.entries(Did.LEFT)
        }  # what they are told while they close is no matter
        for entry in self.entries(Did.ASSIGNED, Did.REVOKED, Did.LOST):
            if entry.member in gone:
                continue
            if entry.did is Did.ASSIGNED:
                held[entry.member] = held.get(entry.member, frozenset()) | entry.partitions
            elif entry.member in held:
                held[entry.member] -= entry.partitions
        return held

    def values(self) -> set[str]:
        """All that was read, by whomever."""
        return {one.value for one in self.entries(Did.READ)}

    def times(self, did: Did, member: str) -> int:
        """How often its listener was told so."""
        return sum(one.member == member for one in self.entries(did))

    # --- what must hold -----------------------------------------------------------------

    def check(self) -> None:
        """No partition has two owners at a time, nobody gives up or reads what is not its own."""
        owner: dict[int, str] = {}
        gone: set[str] = set()
        for entry in self.entries():
            assert entry.did is not Did.FAILED, f"{entry.member}: {entry.value}"
            if entry.member in gone:  # a library may tell its listener while it closes, or not
                continue
            mine = {partition for partition, name in owner.items() if name == entry.member}
            if entry.did is Did.ASSIGNED:
                for partition in entry.partitions:
                    whose = owner.setdefault(partition, entry.member)
                    assert whose == entry.member, f"{entry} while it is {whose}'s"
            elif entry.did is Did.READ:
                assert entry.partitions <= mine, f"{entry} and owns {mine}"
            else:
                given_up = mine if entry.did is Did.LEFT else entry.partitions
                assert given_up <= mine, f"{entry} and owns {mine}"
                gone |= {entry.member} if entry.did is Did.LEFT else set()
                for partition in given_up:
                    del owner[partition]

    def check_order(self) -> None:
        """Within one ownership, offsets are read one after the other, without a gap."""
        at: dict[tuple[str, int], int] = {}
        for entry in self.entries(Did.ASSIGNED, Did.READ):
            for partition in entry.partitions:
                place = (entry.member, partition)
                if entry.did is Did.ASSIGNED:
                    at.pop(place, None)
                    continue
                assert at.get(place, entry.offset) == entry.offset, f"{entry}, expected {at[place]}"
                at[place] = entry.offset + 1

    def read_places(self) -> Counter[tuple[int, int]]:
        """How often each offset of each partition was read."""
        return Counter((at, one.offset) for one in self.entries(Did.READ) for at in one.partitions)

    def read_again(self) -> list[tuple[int, int]]:
        """What was read more than once."""
        return [place for place, times in self.read_places().items() if times > 1]
