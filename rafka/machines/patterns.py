"""Regular expressions from clients, matched in time that grows with the text and not with its guesses.

Python's own matcher tries every way in turn: `(a+)+$` and thirty letters keep it busy for
minutes, and with it everybody else. Here all ways are followed at once, letter by
letter, as RE2 does it for Apache Kafka. What RE2 refuses is refused here too: looking
ahead or behind, and referring to what a group has matched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

LENGTH_MAX: Final = 1_000  # letters of a pattern
STATES_MAX: Final = 5_000  # what it comes to with its repetitions written out

_CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    op.CATEGORY_DIGIT: lambda c: "0" <= c <= "9",
    op.CATEGORY_NOT_DIGIT: lambda c: not "0" <= c <= "9",
    op.CATEGORY_SPACE: lambda c: c in " \t\n\r\f\v",
    op.CATEGORY_NOT_SPACE: lambda c: c not in " \t\n\r\f\v",
    op.CATEGORY_WORD: lambda c: c.isascii() and (c.isalnum() or c == "_"),
    op.CATEGORY_NOT_WORD: lambda c: not (c.isascii() and (c.isalnum() or c == "_")),
}
_AT_START: Final = (op.AT_BEGINNING, op.AT_BEGINNING_STRING)
_AT_END: Final = (op.AT_END, op.AT_END_STRING)
_REPEATS: Final = (op.MAX_REPEAT, op.MIN_REPEAT)

Test = Callable[[str], bool]


class NotAPattern(ValueError):
    """The text is no regular expression that can be matched here; the message says why."""


class Pattern:
    """States are numbers; from each lead empty steps, and at most one step that takes a letter."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_MAX:
            raise NotAPattern(f"a pattern has at most {LENGTH_MAX} letters")
        try:
            tree = parser.parse(text)
        except (re.error, RecursionError, OverflowError) as wrong:
            raise NotAPattern(str(wrong)) from wrong
        self._fold = bool(tree.state.flags & re.IGNORECASE)
        self._any_letter = bool(tree.state.flags & re.DOTALL)
        self._empty: list[list[int]] = []
        self._step: list[tuple[Test, int] | None] = []
        self._only_at: dict[int, str] = {}  # states to be passed at the start only, or the end
        self._start = self._state()
        self._end = self._sequence(tree, self._start)

    def matches(self, text: str) -> bool:
        """Whether the whole text is what the pattern means."""
        states = self._closure([self._start], at_start=True, at_end=not text)
        for at, letter in enumerate(text, 1):
            found = []
            for state in states:
                step = self._step[state]
                if step is not None and step[0](letter):
                    found.append(step[1])
            states = self._closure(found, at_start=False, at_end=at == len(text))
            if not states:
                return False
        return self._end in states

    def _closure(self, states: Iterable[int], *, at_start: bool, at_end: bool) -> set[int]:
        """These states and all that can be reached without taking a letter."""
        seen: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            where = self._only_at.get(state)
            if state in seen or (where == "start" and not at_start) or (where == "end" and not at_end):
                continue
            seen.add(state)
            todo += self._empty[state]
        return seen

    # --- building: each method leads from a state to the one it returns ---------------------

    def _state(self) -> int:
        if len(self._empty) >= STATES_MAX:
            raise NotAPattern("the pattern repeats too much")
        self._empty.append([])
        self._step.append(None)
        return len(self._empty) - 1

    def _sequence(self, items: Iterable[tuple[Any, Any]], at: int) -> int:
        for kind, value in items:
            at = self._item(kind, value, at)
        return at

    def _item(self, kind: Any, value: Any, at: int) -> int:
        if kind in _REPEATS:
            least, most, inner = value
            return self._repeat(least, most, inner, at)
        if kind is op.SUBPATTERN:
            _, added, removed, inner = value
            if added or removed:
                raise NotAPattern("flags can only be set for the whole pattern")
            return self._sequence(inner, at)
        if kind is op.BRANCH:
            after = self._state()
            for way in value[1]:
                self._empty[self._sequence(way, self._fork(at))].append(after)
            return after
        if kind is op.AT and value in _AT_START + _AT_END:
            after = self._fork(at)
            self._only_at[after] = "start" if value in _AT_START else "end"
            return after
        after = self._state()
        self._step[self._fork(at)] = self._test(kind, value), after
        return after

    def _fork(self, at: int) -> int:
        """A new state that is reached from `at` by an empty step."""
        new = self._state()
        self._empty[at].append(new)
        return new

    def _repeat(self, least: int, most: Any, inner: Sequence[tuple[Any, Any]], at: int) -> int:
        for _ in range(least):
            at = self._sequence(inner, self._fork(at))
        if most is op.MAXREPEAT:
            again = self._fork(at)
            self._empty[self._sequence(inner, self._fork(again))].append(again)
            return self._fork(again)
        after = self._state()
        for _ in range(most - least):
            self._empty[at].append(after)
            at = self._sequence(inner, self._fork(at))
        self._empty[at].append(after)
        return after

    def _test(self, kind: Any, value: Any) -> Test:
        if kind is op.LITERAL:
            return self._folded(_is(chr(value)))
        if kind is op.NOT_LITERAL:
            return _not(self._folded(_is(chr(value))))
        if kind is op.ANY:
            return _not(_is("" if self._any_letter else "\n"))
        if kind is op.IN:
            return self._one_of(value)
        raise NotAPattern(f"{str(kind).lower().replace('_', ' ')} cannot be used here")

    def _one_of(self, items: Sequence[tuple[Any, Any]]) -> Test:
        negated = items[0][0] is op.NEGATE
        tests: list[Test] = []
        for kind, value in items[negated:]:
            if kind is op.RANGE:
                tests.append(_between(chr(value[0]), chr(value[1])))
            elif kind is op.CATEGORY:
                tests.append(_CATEGORIES[value])
            else:
                tests.append(_is(chr(value)))
        found = self._folded(lambda c: any(test(c) for test in tests))
        return _not(found) if negated else found

    def _folded(self, test: Test) -> Test:
        if not self._fold:
            return test
        return lambda c: test(c) or test(c.lower()) or test(c.upper())


def _is(wanted: str) -> Test:
    return lambda c: c == wanted


def _between(low: str, high: str) -> Test:
    return lambda c: low <= c <= high


def _not(test: Test) -> Test:
    return lambda c: not test(c)
