"""A bug that is planted stands where the broker really goes, in place of something of its shape.

That every one of them is found is for the tests of the worlds to show, and takes minutes. Here it is
shown in a moment that none has been left behind by the code that it is about.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final
from unittest import mock

import pytest

from .bugs import BREAKING_BUGS, STORAGE_BUGS, Bug
from .group_bugs import GROUP_BUGS
from .txn_bugs import BREAKING_TXN_BUGS, TXN_BUGS

ALL: Final[Mapping[str, Bug]] = {**STORAGE_BUGS, **TXN_BUGS, **GROUP_BUGS}


@pytest.mark.parametrize("name", ALL)
def test_a_planted_bug_is_in_the_place_of_something_and_gone_afterwards(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right: dict[tuple[Any, str], object] = {}
    patch = mock.patch.object

    def noted(owner: Any, name: str, *wrong: object) -> Any:
        right[owner, name] = inspect.getattr_static(owner, name)
        return patch(owner, name, *wrong)

    monkeypatch.setattr(mock.patch, "object", noted)
    with ALL[name]():
        wrong = {place: inspect.getattr_static(*place) for place in right}

    assert right
    for place, was in right.items():
        assert wrong[place] is not was
        assert may_stand_for(wrong[place], was), place
        assert inspect.getattr_static(*place) is was


@pytest.mark.parametrize(("bugs", "breaking"), [(STORAGE_BUGS, BREAKING_BUGS), (TXN_BUGS, BREAKING_TXN_BUGS)])
def test_a_bug_that_breaks_its_world_is_one_of_those_that_there_are(
    bugs: Mapping[str, Bug], breaking: frozenset[str]
) -> None:
    assert breaking < set(bugs)


def may_stand_for(wrong: object, right: object) -> bool:
    """Whether it may be called with the same arguments, where there are any."""
    if isinstance(right, property):
        return isinstance(wrong, property)
    if not inspect.isfunction(right) or not inspect.isfunction(wrong):
        return True
    args, named = [], {}
    for parameter in inspect.signature(right).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = parameter
        elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.kind is not parameter.VAR_KEYWORD:
            args.append(parameter)
    return can_be_called(wrong, args, named)


def can_be_called(function: Callable[..., Any], args: list[Any], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **named)
    except TypeError:
        return False
    return True
