"""Where to begin and to stop, and times, as they are typed on a command line. No I/O."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import attrs

from ..client.offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    AtOffset,
    AtTime,
    Beginning,
    End,
    FromEnd,
    Start,
)

BEGINNINGS: Final = ("beginning", "start", "earliest")
ENDS: Final = ("end", "latest")
SPECIAL_TIMES: Final = {
    "earliest": EARLIEST,
    "beginning": EARLIEST,
    "-2": EARLIEST,
    "latest": LATEST,
    "end": LATEST,
    "-1": LATEST,
    "max-timestamp": MAX_TIMESTAMP,
    "-3": MAX_TIMESTAMP,
}


@attrs.frozen
class Span:
    """What `-o` says: where to start, and maybe the time before which to stop."""

    start: Start
    until_time: int | None = None


def parse_span(texts: list[str]) -> Span:
    """kcat's `-o`, which may be given twice: `s@TIME` and `e@TIME`. ValueError says what may be written."""
    start: Start | None = None
    until: int | None = None
    for text in texts:
        if text.startswith("e@"):
            until = parse_time(text[2:])
        elif start is not None:
            raise ValueError(f"two starts, the second {text!r}: only s@TIME and e@TIME go together")
        else:
            start = parse_start(text)
    return Span(start or Beginning(), until)


def parse_start(text: str) -> Start:
    lower = text.lower()
    if lower in BEGINNINGS:
        return Beginning()
    if lower in ENDS:
        return End()
    if re.fullmatch(r"\d+", text):
        return AtOffset(int(text))
    if re.fullmatch(r"-\d+", text):
        return FromEnd(-int(text))
    if lower.startswith(("s@", "@")):
        return AtTime(parse_time(text.partition("@")[2]))
    if lower == "stored":
        raise ValueError("stored offsets belong to consumer groups: give --group, and no -o")
    raise ValueError(
        f"not an offset: {text!r} (write beginning, end, an offset, -N for N before the end, "
        "@TIME or s@TIME, and e@TIME to stop)"
    )


def parse_time(text: str) -> int:
    """Milliseconds since 1970: written so, or as an ISO date, which is UTC where it names no zone.

    >>> parse_time("1970-01-01T00:00:01")
    1000
    """
    if re.fullmatch(r"\d+", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"not a time: {text!r} (write milliseconds since 1970, or 2026-11-18T07:00:00)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_listed_time(text: str) -> int:
    """The `--time` of `topic offsets`: a special time by name or by Kafka's number, or a time."""
    special = SPECIAL_TIMES.get(text.lower())
    if special is not None:
        return special
    try:
        return parse_time(text.removeprefix("@"))
    except ValueError:
        raise ValueError(
            f"not a time: {text!r} (write earliest, latest, max-timestamp, "
            "milliseconds since 1970 or an ISO date)"
        ) from None


def parse_partitions(texts: list[str]) -> list[int]:
    """`-p`, given several times or with commas and ranges: 0,2,4-6."""
    found: set[int] = set()
    for part in ",".join(texts).split(","):
        first, dash, last = part.strip().partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise ValueError(f"not a partition: {part!r} (write 0, or 0,2, or 0-3)") from None
        if not numbers:
            raise ValueError(f"an empty range of partitions: {part!r}")
        found.update(numbers)
    return sorted(found)
