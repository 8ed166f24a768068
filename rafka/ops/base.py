"""What an op is: a question to the broker, free of wire versions, typed by its reply.

Ops keep the names and the numbers of the system that rafka follows. Field names are
the wire's own, so that a decoded frame *is* an op, with no code between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import ClassVar, Generic, TypeVar

import attrs

from ..errors import ErrorCode
from ..types import DEFAULT_ORG, OrgId

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class KafkaOp(IntEnum):
    PRODUCE = 0x01
    FETCH = 0x02
    LIST_OFFSETS = 0x03
    METADATA = 0x04
    INIT_PRODUCER_ID = 0x05
    JOIN_GROUP = 0x06
    SYNC_GROUP = 0x07
    HEARTBEAT = 0x08
    LEAVE_GROUP = 0x09
    OFFSET_COMMIT = 0x0A
    OFFSET_FETCH = 0x0B
    OFFSET_FOR_LEADER_EPOCH = 0x0C
    DELETE_RECORDS = 0x0D
    CREATE_TOPICS = 0x0E
    DELETE_TOPICS = 0x0F
    CREATE_PARTITIONS = 0x10
    DESCRIBE_TOPIC_PARTITIONS = 0x11
    DESCRIBE_CONFIGS = 0x12
    ALTER_CONFIGS = 0x13
    INCREMENTAL_ALTER_CONFIGS = 0x14
    LIST_CONFIG_RESOURCES = 0x15
    DESCRIBE_CLUSTER = 0x16
    DESCRIBE_LOG_DIRS = 0x17
    DESCRIBE_PRODUCERS = 0x18
    ELECT_LEADERS = 0x19
    ALTER_PARTITION_REASSIGNMENTS = 0x1A
    LIST_PARTITION_REASSIGNMENTS = 0x1B
    LIST_GROUPS = 0x1C
    DESCRIBE_GROUPS = 0x1D
    DELETE_GROUPS = 0x1E
    OFFSET_DELETE = 0x1F
    GROUP_HISTORY = 0x20
    ADD_PARTITIONS_TO_TXN = 0x21
    ADD_OFFSETS_TO_TXN = 0x22
    END_TXN = 0x23
    WRITE_TXN_MARKERS = 0x24
    TXN_OFFSET_COMMIT = 0x25
    DESCRIBE_TRANSACTIONS = 0x26
    LIST_TRANSACTIONS = 0x27
    UPDATE_FEATURES = 0x28


class Op(Generic[R]):
    """A question, typed by its reply: `ask(Produce(...))` gives a `ProduceReply`."""

    code: ClassVar[KafkaOp]

    def refusal(self, code: ErrorCode, message: str | None = None) -> R:
        """The reply that says no, to everything that was asked. Each op knows its shape."""
        raise NotImplementedError


@attrs.define(kw_only=True)
class Envelope:
    """Who asks. Made once for a connection and used for each of its ops."""

    org_id: OrgId = DEFAULT_ORG
    principal: str = "User:ANONYMOUS"
    client_id: str = ""
    client_host: str = ""
    # Where the client reached us, to be told in answers that name this broker.
    host: str = ""
    port: int = 0
    # Batches of this sender that were taken so far: `record.validation=sampled` looks closely at the first.
    batches: int = 0
    # The span that the op belongs to, in the form of W3C's `traceparent`; empty where nobody traces. It
    # changes from op to op, and holds while `ask` runs.
    trace: str = ""


class Later(Generic[R_co]):
    """A reply that is not ready: `fn(*args)` gives it when it is awaited, and nothing runs before that.

    Waiting may be cancelled; what the op did stays done. `overlaps` says that the op's
    work is done, or on its way in order, and only the outcome is awaited: a connection may
    take up the next request meanwhile, as long as it answers in order. Whoever waits
    has no use any more for the bytes that the op came in.

    To wait is a task's. Where `ring` takes a bell, a reply can be had without one: the bell
    is called when the reply is there, and `take` gives it. Then nobody calls `wait`.
    """

    __slots__ = ("_args", "_fn", "_ready", "overlaps")

    def __init__(
        self,
        fn: Callable[..., Awaitable[R_co]],
        *args: object,
        overlaps: bool = False,
        ready: Callable[[], bool] | None = None,
    ) -> None:
        self._fn = fn
        self._args = args
        self._ready = ready
        self.overlaps = overlaps

    def ready(self) -> bool:
        """Whether waiting would take no time: replies that are ready together go out together."""
        return self._ready is not None and self._ready()

    def wait(self) -> Awaitable[R_co]:
        return self._fn(*self._args)

    def ring(self, bell: Callable[[], None]) -> bool:
        """Have `bell` called when the reply has come; it must neither raise nor wait. False: nobody will."""
        return False

    def take(self) -> R_co:
        """The reply, once, where `ring` has taken a bell and `ready` says that it is there."""
        raise NotImplementedError

    def forget(self) -> None:
        """Whoever gave a bell wants no reply any more."""
