"""A group in a test's hands: members come, leave and are killed, and the test waits for what follows.

with Company(bootstrap, group, topic) as company:
    ann = company.join("kafka")
    company.until_shared(6)
    ann.leave()
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar

import attrs
import cattrs
import pytest

from tests.brokers import ROOT

from ..vocabulary import CannotAsk
from .diary import Diary, Did, Entry, Member, Pen, Plan

MODULES: Final = {"kafka": "kafka_python", "confluent_kafka": "confluent", "aiokafka": "aio", "rafka": "ours"}
PATIENCE: Final = 25.0
LEAVING: Final = 15.0


def member_of(library: str, plan: Plan) -> Member:
    """Raises CannotAsk where the library is not there, or has no such member."""
    if importlib.util.find_spec(library) is None:
        raise CannotAsk(f"{library} is not installed")
    module: Any = importlib.import_module(f"{__package__}.{MODULES[library]}")
    module.check(plan)
    member: Member = module.consume
    return member


class Threaded:
    """A member in a thread of this process."""

    def __init__(self, library: str, plan: Plan, diary: Diary) -> None:
        self.name: Final = plan.name
        self.library: Final = library
        self.gone = False
        self._member: Final = member_of(library, plan)
        self._pen: Final = Pen(plan.name, diary.write)
        self._stop: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, args=(plan,), name=plan.name, daemon=True)
        self._thread.start()

    def ask_to_leave(self) -> None:
        self._stop.set()

    def leave(self) -> None:
        """It leaves as its library leaves, and is gone."""
        self.ask_to_leave()
        self.gone = True
        self._thread.join(LEAVING)
        assert not self._thread.is_alive(), f"{self.name} does not come to an end"

    def _run(self, plan: Plan) -> None:
        try:
            self._member(plan, self._pen, self._stop)
        except Exception as error:
            self._pen.failed(error)


class Processed:
    """A member in a process of its own, which can be killed."""

    def __init__(self, library: str, plan: Plan, diary: Diary) -> None:
        member_of(library, plan)
        self.name: Final = plan.name
        self.library: Final = library
        self.gone = False
        self._diary: Final = diary
        command = [sys.executable, "-m", __package__ or "", library, json.dumps(attrs.asdict(plan))]
        self._process: Final = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        self._copier: Final = threading.Thread(target=self._copy, daemon=True)
        self._copier.start()

    def kill(self) -> float:
        """SIGKILL: it says nothing to anybody. When that was."""
        self.gone = True
        self._process.kill()
        self._process.wait()
        self._copier.join(LEAVING)
        now = time.monotonic()
        self._diary.write(Entry(at=now, member=self.name, did=Did.LEFT))
        return now

    def ask_to_leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def leave(self) -> None:
        self.ask_to_leave()
        self.gone = True
        self._process.wait(LEAVING)
        self._copier.join(LEAVING)

    def _copy(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._diary.write(cattrs.structure(json.loads(line), Entry))


T = TypeVar("T", Threaded, Processed)


class Company:
    """The members of one group, and their diary."""

    def __init__(self, bootstrap: str, group: str, topic: str, **settings: Any) -> None:
        self.plan: Final = Plan(name="", bootstrap=bootstrap, group=group, topic=topic, **settings)
        self.diary: Final = Diary()
        self._members: list[Threaded | Processed] = []

    def join(self, library: str, **changes: Any) -> Threaded:
        return self._seat(Threaded, library, changes)

    def join_apart(self, library: str, **changes: Any) -> Processed:
        """A member that can be killed."""
        return self._seat(Processed, library, changes)

    def _seat(self, kind: Callable[[str, Plan, Diary], T], library: str, changes: dict[str, Any]) -> T:
        name = f"{library}-{len(self._members)}"
        try:
            member = kind(library, attrs.evolve(self.plan, name=name, **changes), self.diary)
        except CannotAsk as reason:
            pytest.skip(str(reason))
        self._members.append(member)
        return member

    @property
    def members(self) -> list[Threaded | Processed]:
        """Those who are there, the eldest first."""
        return [one for one in self._members if not one.gone]

    def leave(self) -> None:
        """All of them at once."""
        for member in self.members:
            member.ask_to_leave()
        for member in self.members:
            member.leave()

    def until(self, what: str, holds: Callable[[], bool], within: float = PATIENCE) -> None:
        deadline = time.monotonic() + within
        while not holds():
            for failure in self.diary.entries(Did.FAILED):
                raise AssertionError(f"{failure.member}: {failure.value}")
            assert time.monotonic() < deadline, f"waited {within:.1f} s for {what}: {self.diary.shares()}"
            time.sleep(0.02)

    def until_shared(self, partitions: int, within: float = PATIENCE) -> None:
        """Every partition is somebody's, and nobody who is there is left out."""
        names = {one.name for one in self.members}

        def shared() -> bool:
            shares = self.diary.shares()
            return (
                shares.keys() == names
                and all(shares.values())
                and sorted(one for share in shares.values() for one in share) == list(range(partitions))
            )

        self.until(f"{partitions} partitions to be shared by {names}", shared, within)

    def until_read(self, values: set[str]) -> None:
        def missing() -> set[str]:
            return values - self.diary.values()

        try:
            self.until("all records to be read", lambda: not missing())
        except AssertionError as error:
            last = dict(sorted(self.diary.read_places()))
            raise AssertionError(f"{error}; missing {sorted(missing())[:10]}; read up to {last}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for member in self.members:
            member.ask_to_leave()
        if kind is None:
            self.leave()
