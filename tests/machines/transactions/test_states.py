"""Every state, and whatever may be asked in it: who is answered what, and where it leads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.transactions.facts import TransactionChanged
from rafka.machines.transactions.model import TRANSITIONS, TxnState
from rafka.types import DEFAULT_ORG

from .kit import T0, T1, World

# A producer that has its second epoch, so that the one before is somebody's who was replaced.
OLD, OWN, NEW = 0, 1, 2

Way = Callable[[World, int], None]
Ask = Callable[[World, int, int], ErrorCode]


def _open(world: World, pid: int) -> None:
    world.add(pid, OWN, T0)


def _ended(committed: bool, bumps: bool, complete: bool) -> Way:
    def way(world: World, pid: int) -> None:
        _open(world, pid)
        world.end(pid, OWN, committed, bumps=bumps)
        if complete:
            world.complete()

    return way


def _timed_out(world: World, pid: int) -> None:
    _open(world, pid)
    world.pass_ms(60_001)
    world.complete()


WAYS: Final[dict[str, Way]] = {
    "empty": lambda world, pid: None,
    "open": _open,
    "committing": _ended(True, False, False),
    "aborting": _ended(False, False, False),
    "committed": _ended(True, False, True),
    "aborted": _ended(False, False, True),
    "committing, bumped": _ended(True, True, False),
    "aborting, bumped": _ended(False, True, False),
    "committed, bumped": _ended(True, True, True),
    "aborted, bumped": _ended(False, True, True),
    "timed out": _timed_out,
}


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = TxnState
AT_REST: Final = {EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}
ALLOWED: Final = {state: {EMPTY, ONGOING, PREPARE_ABORT} for state in AT_REST} | {
    ONGOING: {ONGOING, PREPARE_COMMIT, PREPARE_ABORT},
    PREPARE_COMMIT: {COMPLETE_COMMIT},
    PREPARE_ABORT: {COMPLETE_ABORT},
}


def _init(epoch: int | None) -> Ask:
    def ask(world: World, pid: int, own: int) -> ErrorCode:
        reply = world.init() if epoch is None else world.init("x", pid, own + epoch)
        return reply.error_code

    return ask


def _add(epoch: int) -> Ask:
    def ask(world: World, pid: int, own: int) -> ErrorCode:
        world.add(pid, own + epoch, T1)
        return ErrorCode.NONE

    return ask


def _end(epoch: int, committed: bool, bumps: bool) -> Ask:
    def ask(world: World, pid: int, own: int) -> ErrorCode:
        return world.end(pid, own + epoch, committed, bumps=bumps).error_code

    return ask


def _late(world: World, pid: int, own: int) -> ErrorCode:
    world.pass_ms(60_001)
    return ErrorCode.NONE


# An epoch here is relative to the one that is in force: 0 is that, -1 the one before.
ASKS: Final[dict[str, Ask]] = {
    "init": _init(None),
    "init, own": _init(0),
    "init, before": _init(-1),
    "init, ahead": _init(1),
    "add, own": _add(0),
    "add, before": _add(-1),
    "add, ahead": _add(1),
    "commit": _end(0, True, False),
    "commit, before": _end(-1, True, False),
    "abort": _end(0, False, False),
    "abort, before": _end(-1, False, False),
    "commit, bumping": _end(0, True, True),
    "commit, bumping, before": _end(-1, True, True),
    "commit, bumping, ahead": _end(1, True, True),
    "abort, bumping": _end(0, False, True),
    "abort, bumping, before": _end(-1, False, True),
    "time": _late,
}


def outcome(way: str, ask: str) -> str:
    """The answer and, where something changes, the state and by how much the epoch has grown."""
    world = World()
    world.init()
    pid = world.init().producer_id
    WAYS[way](world, pid)
    before, facts = world.seen(), len(world.journal)
    try:
        code = ASKS[ask](world, pid, before.producer_epoch)
    except KafkaError as refused:
        code = refused.code
        assert len(world.journal) == facts, "what was refused has changed something"
    after = world.seen()
    if after == before and len(world.journal) == facts:
        return code.name
    return f"{code.name}: {after.transaction_state} +{after.producer_epoch - before.producer_epoch}"


TABLE: Final = """
empty:
    NONE: Empty +1
        init; init, own
    PRODUCER_FENCED
        init, before; init, ahead; add, before; add, ahead; commit, before; abort, before;
        commit, bumping, before; commit, bumping, ahead; abort, bumping, before
    NONE: Ongoing +0
        add, own
    INVALID_TXN_STATE
        commit; abort; commit, bumping
    NONE: PrepareAbort +1
        abort, bumping
    NONE
        time
open:
    CONCURRENT_TRANSACTIONS: PrepareAbort +1
        init; init, own; init, before; init, ahead
    NONE: Ongoing +0
        add, own
    PRODUCER_FENCED
        add, before; add, ahead; commit, before; abort, before; commit, bumping, before;
        commit, bumping, ahead; abort, bumping, before
    NONE: PrepareCommit +0
        commit
    NONE: PrepareAbort +0
        abort
    NONE: PrepareCommit +1
        commit, bumping
    NONE: PrepareAbort +1
        abort, bumping; time
committing; aborting; committing, bumped; aborting, bumped:
    CONCURRENT_TRANSACTIONS
        init; init, own; init, before; init, ahead; add, own; commit; abort; commit, bumping;
        commit, bumping, before; abort, bumping; abort, bumping, before
    PRODUCER_FENCED
        add, before; add, ahead; commit, before; abort, before; commit, bumping, ahead
    NONE
        time
committed:
    NONE: Empty +1
        init; init, own
    PRODUCER_FENCED
        init, before; init, ahead; add, before; add, ahead; commit, before; abort, before;
        commit, bumping, ahead
    NONE: Ongoing +0
        add, own
    NONE
        commit; commit, bumping, before; time
    INVALID_TXN_STATE
        abort; commit, bumping; abort, bumping, before
    NONE: PrepareAbort +1
        abort, bumping
aborted:
    NONE: Empty +1
        init; init, own
    PRODUCER_FENCED
        init, before; init, ahead; add, before; add, ahead; commit, before; abort, before;
        commit, bumping, ahead
    NONE: Ongoing +0
        add, own
    INVALID_TXN_STATE
        commit; commit, bumping; commit, bumping, before
    NONE
        abort; abort, bumping, before; time
    NONE: PrepareAbort +1
        abort, bumping
committed, bumped:
    NONE: Empty +1
        init; init, own
    NONE: Empty +0
        init, before
    PRODUCER_FENCED
        init, ahead; add, before; add, ahead; commit, before; abort, before; commit, bumping, ahead
    NONE: Ongoing +0
        add, own
    NONE
        commit; commit, bumping, before; time
    INVALID_TXN_STATE
        abort; commit, bumping; abort, bumping, before
    NONE: PrepareAbort +1
        abort, bumping
aborted, bumped; timed out:
    NONE: Empty +1
        init; init, own
    NONE: Empty +0
        init, before
    PRODUCER_FENCED
        init, ahead; add, before; add, ahead; commit, before; abort, before; commit, bumping, ahead
    NONE: Ongoing +0
        add, own
    INVALID_TXN_STATE
        commit; commit, bumping; commit, bumping, before
    NONE
        abort; abort, bumping, before; time
    NONE: PrepareAbort +1
        abort, bumping
"""


def table() -> dict[tuple[str, str], str]:
    """(way, ask) -> outcome. Ways at the margin, below them outcomes, and below those what is asked."""
    found: dict[tuple[str, str], str] = {}
    ways: list[str] = []
    told = ""
    for line in TABLE.strip().splitlines():
        text = line.strip()
        match len(line) - len(text):
            case 0:
                ways = text.rstrip(":").split("; ")
            case 4:
                told = text
            case _:
                found.update({(way, ask): told for way in ways for ask in text.rstrip(";").split("; ")})
    return found


@pytest.mark.parametrize(("way", "ask"), [*product(WAYS, ASKS)])
def test_every_question_in_every_state_has_its_answer(way: str, ask: str) -> None:
    assert outcome(way, ask) == table()[way, ask]


@pytest.mark.parametrize(("before", "after"), [*product(TxnState, TxnState)])
def test_no_fact_leads_where_a_transaction_cannot_go(before: TxnState, after: TxnState) -> None:
    """What an operator reads in the drawing of the states is what holds."""
    world = World()
    world.all.apply(_fact(before))

    if after in ALLOWED[before]:
        world.all.apply(_fact(after))
        assert world.seen().transaction_state == after.value
    else:
        with pytest.raises(AssertionError, match="cannot become"):
            world.all.apply(_fact(after))
        assert world.seen().transaction_state == before.value
    assert (after in TRANSITIONS[before]) == (after in ALLOWED[before])


def _fact(state: TxnState) -> TransactionChanged:
    return TransactionChanged(
        org=DEFAULT_ORG,
        transactional_id="x",
        producer_id=1,
        epoch=0,
        previous_producer_id=-1,
        next_producer_id=-1,
        last_epoch=-1,
        timeout_ms=1000,
        state=state.value,
        partitions=(),
        started_ms=0,
        updated_ms=0,
        version=0,
    )
