"""Where `rafka group reset-offsets` puts a group: one option says how, and this works it out.

Offsets that lie outside the log are brought to its nearer end, as Kafka's own tool does it.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ...client import Client, TopicPartition
from ...client.offsets import EARLIEST, LATEST, AtTime, Beginning, End, Start, resolve
from ..output import ASKED_WRONGLY, CommandError
from .shared import note

_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


@attrs.frozen
class To:
    """The same place in every partition: an end of the log, or a time."""

    start: Start


@attrs.frozen
class ToOffset:
    offset: int


@attrs.frozen
class ShiftBy:
    count: int


@attrs.frozen
class ToCurrent:
    """Where the group stands, and the end where it stands nowhere."""


@attrs.frozen
class FromFile:
    offsets: Mapping[TopicPartition, int]


Destination: TypeAlias = To | ToOffset | ShiftBy | ToCurrent | FromFile

Offsets: TypeAlias = dict[TopicPartition, int]


async def worked_out(
    client: Client,
    destination: Destination,
    targets: Sequence[TopicPartition],
    current: Mapping[TopicPartition, int],
) -> Offsets:
    """The new offset of each partition."""
    match destination:
        case To(Beginning() | End() as start):
            return await resolve(client.cluster, dict.fromkeys(targets, start))
        case To(start):
            return await _within(client, await resolve(client.cluster, dict.fromkeys(targets, start)))
        case ToOffset(offset):
            return await _within(client, dict.fromkeys(targets, offset))
        case ShiftBy(count):
            return await _within(client, {one: _known(one, current) + count for one in targets})
        case FromFile(offsets):
            return await _within(client, dict(offsets))
        case ToCurrent():
            ends = await resolve(client.cluster, {one: End() for one in targets if one not in current})
            return {one: current[one] if one in current else ends[one] for one in targets}


def _known(target: TopicPartition, current: Mapping[TopicPartition, int]) -> int:
    if target not in current:
        raise CommandError(
            f"{target} has no committed offset to shift: use --to-offset, --to-earliest or --to-latest"
        )
    return current[target]


async def _within(client: Client, offsets: Offsets) -> Offsets:
    """Bring each into its log, and say so."""
    first = await client.admin.list_offsets(dict.fromkeys(offsets, EARLIEST))
    last = await client.admin.list_offsets(dict.fromkeys(offsets, LATEST))
    brought = {}
    for target, offset in offsets.items():
        start, end = first[target].offset, last[target].offset
        brought[target] = min(max(offset, start), end)
        if brought[target] != offset:
            log = f"the log, which goes from {start} to {end}"
            note(f"{target}: {offset} is not in {log}: taking {brought[target]}")
    return brought


# --- as it is typed -------------------------------------------------------------------------


def parse_duration(text: str) -> timedelta:
    """ISO 8601, as Java has it: days and smaller.

    >>> parse_duration("P1DT2H30M")
    datetime.timedelta(days=1, seconds=9000)
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"not a duration: {text!r} (write PnDTnHnMnS, such as P7D or PT1H30M)")
    try:
        return timedelta(**{unit: float(value) for unit, value in found.groupdict().items() if value})
    except OverflowError:
        raise ValueError(f"not a duration: {text!r} is longer than there have been days") from None


def ago(text: str, now_ms: int) -> To:
    """Not before 1970: below 0 Kafka has numbers for special times."""
    return To(AtTime(max(0, now_ms - round(parse_duration(text).total_seconds() * 1000))))


def read_plan(path: str, group: str) -> FromFile:
    """What --export or Kafka's tool wrote: `topic,partition,offset`, maybe with a group before it.

    `-` is standard input. Spreadsheets begin a file with a mark of its encoding, which is passed over.
    """
    offsets: Offsets = {}
    for number, row in enumerate(_rows(path), 1):
        if not row:
            continue
        if len(row) == 4:
            if row[0].strip() != group:
                continue
            row = row[1:]
        try:
            topic, partition, offset = row
            target, wanted = TopicPartition(topic.strip(), int(partition)), int(offset)
        except ValueError:
            raise CommandError(
                f"{path}, line {number}: not topic,partition,offset: {','.join(row)!r}", ASKED_WRONGLY
            ) from None
        if target in offsets:
            raise CommandError(f"{path}, line {number}: {target} for the second time", ASKED_WRONGLY)
        offsets[target] = wanted
    if not offsets:
        raise CommandError(f"{path} has no offsets for group {group!r}")
    return FromFile(offsets)


def _rows(path: str) -> list[list[str]]:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return list(csv.reader(StringIO(data.decode("utf-8-sig"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is no CSV in UTF-8: {error}"
        raise CommandError(f"{path}: {reason}") from error
