"""Replies in the making: each stands in the line of its connection until those before it have gone out."""

from __future__ import annotations

import logging
from typing import Any

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.base import Later, Op
from .routes import Bound

log = logging.getLogger(__name__)


@attrs.define
class Waiting:
    """A reply to wait for, or one that is there and stands behind others."""

    route: Bound
    correlation_id: int
    op: Op[Any] | None = None  # None: the gateway's own answer
    later: Later[Any] | None = None  # None: it is there
    rings: bool = False  # when it has come; else a task has to wait for it
    reply: Any = None
    last: bool = False  # nothing is taken up behind it

    @property
    def ready(self) -> bool:
        return self.later is None or self.later.ready()

    async def wait(self, host: str) -> None:
        assert self.later is not None
        try:
            self.reply = await self.later.wait()
        except Exception as error:
            self._fail(error, host)
        self.later = None

    def take(self, host: str) -> None:
        """What has rung."""
        assert self.later is not None
        try:
            self.reply = self.later.take()
        except Exception as error:
            self._fail(error, host)
        self.later = None

    def forget(self) -> None:
        if self.rings and self.later is not None:
            self.later.forget()

    def _fail(self, error: Exception, host: str) -> None:
        assert self.op is not None
        if isinstance(error, KafkaError):
            self.reply = self.op.refusal(error.code, error.message)
        else:
            self.reply = our_fault(self.op, host)


def our_fault(op: Op[Any], host: str) -> Any:
    """A mistake of ours: the client is told so, and others go on. Called where an exception is at hand."""
    log.exception("%s failed for %s", type(op).__name__, host)
    return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
