"""What administrators of groups are asked in the same words, whatever their library."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import attrs

from ..vocabulary import CannotAsk
from .group import MODULES


@attrs.frozen(kw_only=True)
class Described:
    state: str
    assignor: str
    shares: Mapping[str, frozenset[int]]  # by client id


class GroupAdmin(Protocol):
    """What a library cannot do raises CannotAsk; what the broker refuses, Refused."""

    def groups(self) -> set[str]: ...

    def describe(self, group: str) -> Described: ...

    def offsets(self, group: str) -> dict[int, int]:
        """Of each partition that the group has committed for."""

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None: ...

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None: ...

    def remove_instances(self, group: str, instance_ids: Sequence[str]) -> None: ...

    def delete(self, group: str) -> None: ...


def group_admin(library: str, bootstrap: str) -> AbstractContextManager[GroupAdmin]:
    if importlib.util.find_spec(library) is None:
        raise CannotAsk(f"{library} is not installed")
    module: Any = importlib.import_module(f"{__package__}.{MODULES[library]}_admin")
    made: AbstractContextManager[GroupAdmin] = module.admin(bootstrap)
    return made
