"""Where records are kept, as `--storage` says it: `memory:`, `file:DIR`, or just a directory."""

from __future__ import annotations

import os
from collections.abc import Mapping

import attrs


@attrs.frozen
class Place:
    """A kind of storage. `path` is absolute, and None in memory."""

    path: str | None

    def __str__(self) -> str:
        return "memory:" if self.path is None else f"file:{self.path}"

    @property
    def in_memory(self) -> bool:
        return self.path is None


MEMORY = Place(None)


def parse_place(text: str) -> Place:
    """Read a storage URL or a directory. ValueError says what it should be."""
    if text == "memory:":
        return MEMORY
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        path = path[2:] if path.startswith("///") else path
    elif "," in text:
        raise ValueError("all records are kept in one directory")
    elif ":" in text.partition("/")[0]:
        raise ValueError("must be memory:, file:DIR, or a directory")
    else:
        path = text
    if not path:
        raise ValueError("must name a directory")
    return Place(os.path.abspath(os.path.expanduser(path)))


def default_place(environ: Mapping[str, str] = os.environ) -> Place:
    """A folder of the user's own, where state belongs that nobody made by hand."""
    state = environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Place(os.path.join(os.path.abspath(state), "rafka"))
