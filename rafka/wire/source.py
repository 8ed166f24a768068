"""Python source in the making: lines, indentation, names that nobody else uses."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    """One function's source, and the constants that it refers to."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._counters: dict[str, int] = {}

    def __iadd__(self, line: str) -> Source:
        self._lines.append("    " * self._depth + line)
        return self

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self += opening
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self += "pass"
        self._depth -= 1

    def fresh(self, stem: str) -> str:
        """A local variable."""
        number = self._counters.get(stem, 0)
        self._counters[stem] = number + 1
        return f"{stem}{number or ''}"

    def constant(self, stem: str, value: object) -> str:
        """A name by which the source knows `value`; the same one for the same value."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(stem)
        self.names[name] = value
        return name

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def compile(self, function: str, title: str) -> Callable[..., Any]:
        """Run the source and take `function` from it. A traceback shows its lines."""
        filename = f"<wire {title}>"
        text = self.text
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.names)
        made: Callable[..., Any] = self.names[function]
        made.__qualname__ = title
        return made
