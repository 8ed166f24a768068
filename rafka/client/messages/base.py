"""What every request has: its API, the class of its reply, and how new a version we speak."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from ...wire.api import Api

ReplyT = TypeVar("ReplyT")


class Request(Generic[ReplyT]):
    """A question to a broker. Subclasses are `@message` classes with the wire's field names."""

    __slots__ = ()

    api: ClassVar[Api]
    reply: ClassVar[type[Any]]  # the class that ReplyT stands for
    newest: ClassVar[int | None] = None  # the newest version this client speaks, where the wire knows newer
