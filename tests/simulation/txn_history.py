"""What the workers of a pipeline did and what its readers saw, and the judge of exactly-once.

A pipeline reads values from one topic and writes each, marked with the attempt in which it did so,
to another, together with how far it has read. `attempts` tells how every transaction went as its
worker knows it:

    commit    its end was asked for, and answered
    abort     it was never asked to be committed
    unknown   it was asked to be committed, and nobody knows whether it was

    X0 astonishing answer   an answer that a right broker never gives; clients say which
    X1 aborted read         a value of an aborted transaction was given to a reader of committed ones
    X2 torn                 part of a transaction is there and the rest is not, or none of a committed one
    X4 not exactly once     an input value is in the output never, twice, or out of order
    X5 late end             an end that came late has ended the transaction that followed
    X6 zombie               a transaction was committed by a worker that had been replaced
    X7 stuck                long after all is over the last stable offset is not the high watermark
    X8 open read            a value was read before anybody asked for its transaction to be committed
    X9 read, then lost      a committed value was read, and is not there at the end, or is elsewhere
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias

import attrs

from .history import Verdict

Fate: TypeAlias = Literal["commit", "abort", "unknown"]
Findings: TypeAlias = Iterator[tuple[str, str]]

MARK = "|"  # between an input value and the attempt that wrote it


@attrs.define(eq=False)
class Attempt:
    """One transaction of one instance of a worker."""

    name: str  # unique; it is part of every value that is written
    worker: str  # the transactional id
    epoch: int
    values: list[str] = attrs.Factory(list)
    fate: Fate = "abort"
    asked: float = float("inf")  # when its commit was first asked for


@attrs.frozen
class ReadCommitted:
    """A value that a reader of committed records was given."""

    reader: str
    partition: int
    offset: int
    value: str
    at: float


@attrs.frozen
class Ended:
    """Where a partition ends, after all."""

    partition: int
    stable: int
    high: int


@attrs.define
class PipelineHistory:
    inputs: dict[int, list[str]] = attrs.Factory(dict)  # of each partition, in order
    attempts: list[Attempt] = attrs.Factory(list)
    # By transactional id the epochs that workers were let in with, and when they were told.
    let_in: dict[str, list[tuple[int, float]]] = attrs.Factory(lambda: defaultdict(list))
    reads: list[ReadCommitted] = attrs.Factory(list)
    finals: dict[int, list[tuple[int, str]]] = attrs.Factory(dict)  # (offset, value) of committed ones
    ends: list[Ended] = attrs.Factory(list)
    surprises: list[str] = attrs.Factory(list)
    late_ends: list[str] = attrs.Factory(list)  # that were accepted
    faults: list[tuple[float, str]] = attrs.Factory(list)
    late: int = 0  # ends that were sent late on purpose
    zombies: int = 0


def judge(history: PipelineHistory) -> Verdict:
    anomalies: dict[str, list[str]] = defaultdict(list)
    for rule in _RULES:
        for kind, witness in rule(history):
            anomalies[kind].append(witness)
    return Verdict(
        anomalies=dict(anomalies),
        sends=len(history.attempts),
        acked=sum(attempt.fate == "commit" for attempt in history.attempts),
        polls=len(history.reads),
        faults=len(history.faults),
    )


def _by_value(history: PipelineHistory) -> Mapping[str, Attempt]:
    return {value: attempt for attempt in history.attempts for value in attempt.values}


def _seen(history: PipelineHistory) -> Iterator[tuple[str, int, int, str]]:
    for read in history.reads:
        yield read.reader, read.partition, read.offset, read.value
    for partition, found in history.finals.items():
        for offset, value in found:
            yield "the final reader", partition, offset, value


def _astonishing(history: PipelineHistory) -> Findings:
    for surprise in history.surprises:
        yield "X0", surprise


def _aborted_read(history: PipelineHistory) -> Findings:
    wrote = _by_value(history)
    for reader, partition, offset, value in _seen(history):
        attempt = wrote.get(value)
        if attempt is None:
            yield "X1", f"{reader} read {value!r} at {offset} of {partition}, which nobody wrote"
        elif attempt.fate == "abort":
            yield "X1", f"{reader} read {value} at {offset} of {partition}"


def _torn(history: PipelineHistory) -> Findings:
    there = {value for found in history.finals.values() for _, value in found}
    for attempt in history.attempts:
        found = [value for value in attempt.values if value in there]
        if 0 < len(found) < len(attempt.values):
            yield "X2", f"{len(found)} of {len(attempt.values)} values of {attempt.name} are there"
        if attempt.fate == "commit" and attempt.values and not found:
            yield "X2", f"{attempt.name} was committed, and nothing of it is there"


def _not_exactly_once(history: PipelineHistory) -> Findings:
    outcome: dict[str, list[str]] = {}
    for found in history.finals.values():
        for _, value in found:
            source, _, name = value.partition(MARK)
            outcome.setdefault(source, []).append(name)
    for partition, values in history.inputs.items():
        for value in values:
            times = outcome.get(value, [])
            if len(times) != 1:
                yield "X4", f"{value} of input partition {partition} is in the output by {times or 'nobody'}"
    order = {value: (p, n) for p, values in history.inputs.items() for n, value in enumerate(values)}
    for out, found in history.finals.items():
        last: Counter[int] = Counter()
        for _, value in found:
            where = order.get(value.partition(MARK)[0])
            if where is None:
                continue
            partition, number = where
            if number < last[partition] - 1:
                yield "X4", f"{value} lies behind a later one of input partition {partition} in output {out}"
            last[partition] = max(last[partition], number + 1)


def _late_end(history: PipelineHistory) -> Findings:
    for witness in history.late_ends:
        yield "X5", witness


def _zombie(history: PipelineHistory) -> Findings:
    for attempt in history.attempts:
        for epoch, told in history.let_in[attempt.worker]:
            if attempt.fate == "commit" and epoch > attempt.epoch and told < attempt.asked:
                yield "X6", f"{attempt.name} was committed though epoch {epoch} was given out {told:.3f} s"


def _stuck(history: PipelineHistory) -> Findings:
    for end in history.ends:
        if end.stable != end.high:
            yield "X7", f"partition {end.partition}: stable {end.stable}, high watermark {end.high}"


def _open_read(history: PipelineHistory) -> Findings:
    wrote = _by_value(history)
    for read in history.reads:
        attempt = wrote.get(read.value)
        if attempt is not None and read.at < attempt.asked:
            yield "X8", f"{read.reader} read {read.value} {read.at:.3f} s, asked for {attempt.asked:.3f} s"


def _read_then_lost(history: PipelineHistory) -> Findings:
    there = {(p, offset): value for p, found in history.finals.items() for offset, value in found}
    for read in history.reads:
        if there.get((read.partition, read.offset)) != read.value:
            yield "X9", f"{read.value} read by {read.reader} at {read.offset} of {read.partition}"


_RULES: tuple[Callable[[PipelineHistory], Findings], ...] = (
    _astonishing,
    _aborted_read,
    _torn,
    _not_exactly_once,
    _late_end,
    _zombie,
    _stuck,
    _open_read,
    _read_then_lost,
)
