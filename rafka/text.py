"""Text that came from outside, made fit for a log or a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """The text with everything escaped that could move a cursor, end a line or hide something."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
