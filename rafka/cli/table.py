"""Tables as text: columns under their names, however wide their letters are. No I/O.

A terminal gives East Asian letters two columns and accents that stand on the letter before none,
so the length of a text is not its width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import category, east_asian_width

from ..text import plain

GAP: Final = "  "
ELLIPSIS: Final = "…"
NARROWEST: Final = 4  # what is left of a column of words where there is too little room for all


def lines_of(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, within: int | None = None
) -> list[str]:
    """The header and a line for each row. An empty cell is `-`, so that a script can count on the columns.

    Where they have to fit `within` so many columns, words are shortened, the longest first: numbers are not.
    """
    lines = [list(headers), *([plain(_cell(value)) for value in row] for row in rows)]
    widths = [max(width_of(line[at]) for line in lines) for at in range(len(headers))]
    if within is not None:
        widths = _fitted(widths, [_least(row[at] for row in rows) for at in range(len(headers))], within)
    return [_line(line, widths) for line in lines]


def width_of(text: str) -> int:
    """The columns that a terminal gives it."""
    return len(text) if text.isascii() else sum(map(_width, text))


def padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def shortened(text: str, width: int) -> str:
    """The text, or what of it fits with a mark that there is more."""
    if width_of(text) <= width:
        return text
    kept, room = "", width - 1
    for letter in text:
        room -= _width(letter)
        if room < 0:
            break
        kept += letter
    return kept + ELLIPSIS


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    placed = (padded(shortened(text, width), width) for text, width in zip(cells, widths, strict=True))
    return GAP.join(placed).rstrip()


def _fitted(widths: Sequence[int], least: Sequence[int], within: int) -> list[int]:
    fitted = list(widths)
    over = sum(fitted) + len(GAP) * (len(fitted) - 1) - within
    while over > 0:
        spare, at = max((width - low, at) for at, (width, low) in enumerate(zip(fitted, least, strict=True)))
        if spare <= 0:
            break
        fitted[at] -= 1
        over -= 1
    return fitted


def _least(column: Iterable[object]) -> int:
    return max([NARROWEST, *(len(str(value)) for value in column if isinstance(value, int))])


def _width(letter: str) -> int:
    if category(letter) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(letter) in ("W", "F") else 1


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None or value == "" else str(value)
