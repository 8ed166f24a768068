"""What clients saw, and the judge who finds in it what a log must never do.

A world writes down every send, poll and question for the end of a log, with the
virtual times of its beginning and its answer; at the end, when all is healed, it
reads every partition once more (`finals`). `judge` needs nothing else: it knows
neither the broker nor the faults, so it can be put behind any broker.

Every send carries a value that nobody else sends, and its result is one of
    ok    acknowledged
    fail  refused by an answer that means it was not done
    info  no answer: it may have been done, or be done yet

The anomalies, by the numbers that Jepsen's Kafka test and our own list give them:

    L0 astonishing answer   an answer that a right broker never gives; clients say which
    L1 lost write           an acknowledged value is not in the log
    L2 moved write          ... is there, at another offset than acknowledged
    L3 read, then lost      a value was read and is not in the log
    L4 offset used twice    two values were seen at one offset
    L5 duplicate            a value is in the log twice
    L6 reordered            a producer's values are not in the order it sent them
    L7 phantom              a value was read that nobody sent, or not as it was sent
    L8 failed, yet visible  a refused value was read or is in the log
    L9 poll went back       offsets did not ascend within one assignment
    L10 skipped             a poll passed over a record
    L11 time turned         a send began after another was acknowledged, and lies before it
    L12 watermark fell      the high watermark went back, or a stable offset lay above it
    L13 stale read          an answer does not cover what was acknowledged before the question
    L14 unseen              a reader who read all has not seen an acknowledged value
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

import attrs

TopicPartition: TypeAlias = tuple[str, int]
Result: TypeAlias = Literal["ok", "fail", "info"]


@attrs.frozen
class Seen:
    """One record as it was read. `crc` is of key, value, headers and time together."""

    offset: int
    value: str
    crc: int


@attrs.frozen
class Send:
    producer: str
    tp: TopicPartition
    value: str
    crc: int
    order: int  # ascending in the order in which this producer means its values to lie
    begun: float
    ended: float
    result: Result
    offset: int = -1  # where `ok`


@attrs.frozen
class Poll:
    reader: str
    assignment: int  # another number after every assignment and seek
    tp: TopicPartition
    position: int
    begun: float
    ended: float
    records: tuple[Seen, ...]
    high_watermark: int
    stable_offset: int


@attrs.frozen
class AskedEnd:
    """An answer to: where does the log end?"""

    tp: TopicPartition
    begun: float
    ended: float
    offset: int


@attrs.define
class History:
    """Everything that happened, in the order in which it was answered."""

    sends: list[Send] = attrs.field(factory=list)
    polls: list[Poll] = attrs.field(factory=list)
    ends: list[AskedEnd] = attrs.field(factory=list)
    faults: list[tuple[float, str]] = attrs.field(factory=list)
    surprises: list[str] = attrs.field(factory=list)
    finals: dict[TopicPartition, list[Seen]] = attrs.field(factory=dict)
    full_readers: set[str] = attrs.field(factory=set)  # who read everything from the first offset on


@attrs.frozen
class Verdict:
    """The anomalies found, with witnesses, and how much was tried."""

    anomalies: dict[str, list[str]]
    sends: int
    acked: int
    polls: int
    faults: int

    @property
    def worth(self) -> bool:
        """Whether enough was tried, and succeeded, for silence to mean something."""
        return self.sends > 0 and self.acked >= 0.6 * self.sends and self.faults >= 1

    def __str__(self) -> str:
        tried = f"{self.acked} of {self.sends} sends acknowledged, {self.polls} polls, {self.faults} faults"
        found = [
            f"{kind}: {len(witnesses)} times, such as {'; '.join(witnesses[:5])}"
            for kind, witnesses in sorted(self.anomalies.items(), key=lambda item: int(item[0][1:]))
        ]
        return "\n".join([tried, *found])


def judge(history: History) -> Verdict:
    """Find every anomaly."""
    facts = _Facts(history)
    anomalies: dict[str, list[str]] = defaultdict(list)
    for rule in _RULES:
        for kind, witness in rule(facts):
            anomalies[kind].append(witness)
    return Verdict(
        anomalies=dict(anomalies),
        sends=len(history.sends),
        acked=sum(send.result == "ok" for send in history.sends),
        polls=len(history.polls),
        faults=len(history.faults),
    )


Findings: TypeAlias = Iterator[tuple[str, str]]


class _Facts:
    """The history, indexed once for all rules."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.finals = {tp: sorted(seen, key=lambda s: s.offset) for tp, seen in history.finals.items()}
        self.at = {tp: {s.offset: s.value for s in seen} for tp, seen in self.finals.items()}
        self.offsets = {tp: [s.offset for s in seen] for tp, seen in self.finals.items()}
        self.found: dict[tuple[TopicPartition, str], list[int]] = defaultdict(list)
        for tp, seen in self.finals.items():
            for record in seen:
                self.found[tp, record.value].append(record.offset)
        self.sent: dict[str, list[Send]] = defaultdict(list)
        for send in history.sends:
            self.sent[send.value].append(send)
        self.acked = [send for send in history.sends if send.result == "ok"]

    def reads(self) -> Iterator[tuple[str, TopicPartition, Seen]]:
        """Every record that anybody ever read, the final reading included."""
        for poll in self.history.polls:
            for seen in poll.records:
                yield poll.reader, poll.tp, seen
        for tp, records in self.finals.items():
            for seen in records:
                yield "final", tp, seen

    def watermarks(self) -> dict[TopicPartition, list[AskedEnd]]:
        """Every answer that told a high watermark."""
        told = defaultdict(list)
        for poll in self.history.polls:
            told[poll.tp].append(AskedEnd(poll.tp, poll.begun, poll.ended, poll.high_watermark))
        for end in self.history.ends:
            told[end.tp].append(end)
        return told


def _astonishing(facts: _Facts) -> Findings:
    for surprise in facts.history.surprises:
        yield "L0", surprise


def _lost_or_moved(facts: _Facts) -> Findings:
    for send in facts.acked:
        if facts.at.get(send.tp, {}).get(send.offset) == send.value:
            continue
        elsewhere = facts.found.get((send.tp, send.value))
        if elsewhere:
            yield "L2", f"{send.value} acknowledged at {send.offset} of {send.tp}, lies at {elsewhere}"
        else:
            yield "L1", f"{send.value} acknowledged at {send.offset} of {send.tp}, {send.ended:.4f} s"


def _read_then_lost(facts: _Facts) -> Findings:
    for reader, tp, seen in facts.reads():
        if facts.at.get(tp, {}).get(seen.offset) != seen.value:
            yield "L3", f"{seen.value} read by {reader} at {seen.offset} of {tp}"


def _offset_used_twice(facts: _Facts) -> Findings:
    values: dict[tuple[TopicPartition, int], set[str]] = defaultdict(set)
    for _, tp, seen in facts.reads():
        values[tp, seen.offset].add(seen.value)
    for send in facts.acked:
        values[send.tp, send.offset].add(send.value)
    for (tp, offset), different in values.items():
        if len(different) > 1:
            yield "L4", f"offset {offset} of {tp} held {sorted(different)}"


def _duplicate(facts: _Facts) -> Findings:
    for (tp, value), offsets in facts.found.items():
        if len(offsets) > 1:
            yield "L5", f"{value} lies at {offsets} of {tp}"


def _reordered(facts: _Facts) -> Findings:
    for tp, records in facts.finals.items():
        last: dict[str, tuple[int, str]] = {}
        for seen in records:
            for send in facts.sent.get(seen.value, ())[:1]:
                before = last.get(send.producer)
                if before is not None and send.order < before[0]:
                    yield "L6", f"{before[1]} lies before {seen.value} in {tp}, at {seen.offset}"
                last[send.producer] = send.order, seen.value


def _phantom(facts: _Facts) -> Findings:
    for reader, tp, seen in facts.reads():
        sends = facts.sent.get(seen.value, ())
        if not any(send.tp == tp and send.crc == seen.crc for send in sends):
            why = "not as it was sent" if sends else "which nobody sent"
            yield "L7", f"{reader} read {seen.value!r} at {seen.offset} of {tp}, {why}"


def _failed_yet_visible(facts: _Facts) -> Findings:
    for reader, tp, seen in facts.reads():
        sends = facts.sent.get(seen.value, ())
        if sends and all(send.result == "fail" for send in sends):
            yield "L8", f"{reader} read {seen.value} at {seen.offset} of {tp}"


def _assignments(facts: _Facts) -> Iterable[list[Poll]]:
    """The polls of each reader of each partition between two seeks, in order."""
    spans: dict[tuple[str, TopicPartition, int], list[Poll]] = defaultdict(list)
    for poll in facts.history.polls:
        spans[poll.reader, poll.tp, poll.assignment].append(poll)
    return spans.values()


def _went_back_or_skipped(facts: _Facts) -> Findings:
    for polls in _assignments(facts):
        reader, tp = polls[0].reader, polls[0].tp
        offsets = facts.offsets.get(tp, [])
        expected = polls[0].position
        for seen in (seen for poll in polls for seen in poll.records):
            if seen.offset < expected:
                yield "L9", f"{reader} got offset {seen.offset} of {tp} when {expected} was next"
            passed = offsets[bisect_left(offsets, expected) : bisect_left(offsets, seen.offset)]
            if passed:
                yield "L10", f"{reader} got offset {seen.offset} of {tp}, not {passed[:3]} before it"
            expected = seen.offset + 1


def _time_turned(facts: _Facts) -> Findings:
    for tp, sends in _by_partition(facts.acked).items():
        acks = [AskedEnd(tp, send.begun, send.ended, send.offset) for send in sends]
        for earlier, later in _covered(acks, acks):
            if later.offset < earlier.offset:
                yield (
                    "L11",
                    (
                        f"{tp}: what lies at {later.offset} was sent {later.begun:.4f} s,"
                        f" after {earlier.offset} was acknowledged {earlier.ended:.4f} s"
                    ),
                )


def _watermark_fell(facts: _Facts) -> Findings:
    for tp, told in facts.watermarks().items():
        for earlier, later in _covered(told, told):
            if later.offset < earlier.offset:
                yield (
                    "L12",
                    (
                        f"high watermark of {tp}: {earlier.offset} at {earlier.ended:.4f} s,"
                        f" {later.offset} asked {later.begun:.4f} s"
                    ),
                )
    for poll in facts.history.polls:
        if poll.stable_offset > poll.high_watermark:
            yield "L12", f"stable offset {poll.stable_offset} above high watermark {poll.high_watermark}"


def _stale_read(facts: _Facts) -> Findings:
    told = facts.watermarks()
    for tp, sends in _by_partition(facts.acked).items():
        acks = [AskedEnd(tp, send.begun, send.ended, send.offset + 1) for send in sends]
        for ack, answer in _covered(acks, told.get(tp, [])):
            if answer.offset < ack.offset:
                yield (
                    "L13",
                    (
                        f"{tp}: end {answer.offset} told to who asked {answer.begun:.4f} s,"
                        f" though offset {ack.offset - 1} was acknowledged {ack.ended:.4f} s"
                    ),
                )


def _unseen(facts: _Facts) -> Findings:
    seen: dict[str, set[str]] = defaultdict(set)
    for poll in facts.history.polls:
        seen[poll.reader].update(record.value for record in poll.records)
    for reader in sorted(facts.history.full_readers):
        for send in facts.acked:
            if send.value not in seen[reader]:
                yield "L14", f"{send.value}, acknowledged at {send.offset} of {send.tp}, unseen by {reader}"


def _by_partition(sends: Iterable[Send]) -> dict[TopicPartition, list[Send]]:
    parted = defaultdict(list)
    for send in sends:
        parted[send.tp].append(send)
    return parted


def _covered(earlier: list[AskedEnd], later: list[AskedEnd]) -> Iterator[tuple[AskedEnd, AskedEnd]]:
    """For each of `later`: the highest of `earlier` that was answered before it was asked."""
    ended = sorted(earlier, key=lambda end: end.ended)
    highest: AskedEnd | None = None
    index = 0
    for end in sorted(later, key=lambda end: end.begun):
        while index < len(ended) and ended[index].ended < end.begun:
            if highest is None or ended[index].offset > highest.offset:
                highest = ended[index]
            index += 1
        if highest is not None:
            yield highest, end


_RULES: tuple[Callable[[_Facts], Findings], ...] = (
    _astonishing,
    _lost_or_moved,
    _read_then_lost,
    _offset_used_twice,
    _duplicate,
    _reordered,
    _phantom,
    _failed_yet_visible,
    _went_back_or_skipped,
    _time_turned,
    _watermark_fell,
    _stale_read,
    _unseen,
)
