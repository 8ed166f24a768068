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
DIGITS_OF_MS: Final = 12  # of any time since 1973 in milliseconds, and of none in seconds
LAST_MS: Final = 2**63 - 1
LAST_PARTITION: Final = 2**31 - 1
WIDEST_RANGE: Final = 100_000
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
            until = _moment(text[2:])
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
        return AtTime(_moment(text.partition("@")[2]))
    if lower == "stored":
        raise ValueError("stored offsets belong to consumer groups: give --group, and no -o")
    raise ValueError(
        f"not an offset: {text!r} (write beginning, end, an offset, -N for N before the end, "
        "@TIME or s@TIME, and e@TIME to stop)"
    )


def parse_time(text: str) -> int:
    """An ISO date, UTC where it names no zone, or milliseconds since 1970, after an @ where they are few.

    Few digits may as well be seconds, or a date, and to take them for a moment of 1970 would be to
    begin with the oldest record.

    >>> parse_time("1970-01-01T00:00:01")
    1000
    >>> parse_time("@1000")
    1000
    """
    if text.startswith("@"):
        return _moment(text[1:])
    if re.fullmatch(r"\d+", text, re.ASCII) and len(text) < DIGITS_OF_MS:
        then = datetime.fromtimestamp(int(text) / 1000, UTC).isoformat(timespec="milliseconds")
        raise ValueError(
            f"{text} would be {then.removesuffix('+00:00')}: write a date such as 2026-11-18, "
            f"or @{text} for milliseconds"
        )
    return _moment(text)


def _moment(text: str) -> int:
    """Never below 0: there Kafka has numbers for special times, and the oldest record is not older."""
    if re.fullmatch(r"\d+", text, re.ASCII):
        if (ms := int(text)) > LAST_MS:
            raise ValueError(f"not a time: {text} is beyond what Kafka can count")
        return ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"not a time: {text!r} (write 2026-11-18T07:00:00, or @ and milliseconds since 1970)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000))


def parse_listed_time(text: str) -> int:
    """The `--time` of `topic offsets`: a special time by name or by Kafka's number, or a time."""
    special = SPECIAL_TIMES.get(text.lower())
    if special is not None:
        return special
    try:
        return parse_time(text)
    except ValueError as error:
        raise ValueError(f"{error}; or earliest, latest, max-timestamp") from None


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
        if numbers[-1] > LAST_PARTITION:
            raise ValueError(f"not a partition: {part!r} ({LAST_PARTITION} is the last there can be)")
        if len(numbers) > WIDEST_RANGE:
            raise ValueError(f"too many partitions: {part!r} (a range has at most {WIDEST_RANGE})")
        found.update(numbers)
    return sorted(found)
