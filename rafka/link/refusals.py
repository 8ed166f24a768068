"""What a client is told while the broker cannot be reached: for each op an error that makes it try again.

`unsent`: the broker has not seen the op. `unknown`: it may have, and the answer is lost.
There Produce is told that it took too long, which producers take for "maybe written",
and send again with the same sequence numbers; so with whatever else changes something.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import ErrorCode
from ..ops.base import KafkaOp, Op
from ..ops.packing import packing_of

# These may be held for as long as it takes others to do something; all else is done soon.
PATIENT: Final = frozenset((KafkaOp.FETCH, KafkaOp.JOIN_GROUP, KafkaOp.SYNC_GROUP, KafkaOp.GROUP_HISTORY))

ABOUT_GROUPS: Final = frozenset(
    (
        *(KafkaOp.JOIN_GROUP, KafkaOp.SYNC_GROUP, KafkaOp.HEARTBEAT, KafkaOp.LEAVE_GROUP),
        *(KafkaOp.OFFSET_COMMIT, KafkaOp.OFFSET_FETCH, KafkaOp.OFFSET_DELETE, KafkaOp.TXN_OFFSET_COMMIT),
        *(KafkaOp.LIST_GROUPS, KafkaOp.DESCRIBE_GROUPS, KafkaOp.DELETE_GROUPS, KafkaOp.GROUP_HISTORY),
    )
)
_ABOUT_TRANSACTIONS: Final = frozenset(
    (
        *(KafkaOp.INIT_PRODUCER_ID, KafkaOp.ADD_PARTITIONS_TO_TXN, KafkaOp.ADD_OFFSETS_TO_TXN),
        *(KafkaOp.END_TXN, KafkaOp.DESCRIBE_TRANSACTIONS, KafkaOp.LIST_TRANSACTIONS),
    )
)
_ABOUT_PARTITIONS: Final = frozenset(
    (
        *(KafkaOp.PRODUCE, KafkaOp.FETCH, KafkaOp.LIST_OFFSETS, KafkaOp.OFFSET_FOR_LEADER_EPOCH),
        *(KafkaOp.DELETE_RECORDS, KafkaOp.DESCRIBE_PRODUCERS, KafkaOp.WRITE_TXN_MARKERS),
    )
)
_ABOUT_LEADERS: Final = frozenset(
    (
        *(KafkaOp.METADATA, KafkaOp.DESCRIBE_TOPIC_PARTITIONS, KafkaOp.DESCRIBE_CLUSTER),
        *(KafkaOp.DESCRIBE_CONFIGS, KafkaOp.LIST_CONFIG_RESOURCES, KafkaOp.DESCRIBE_LOG_DIRS),
    )
)
_MAYBE_DONE: Final = frozenset(
    (
        *(KafkaOp.PRODUCE, KafkaOp.DELETE_RECORDS, KafkaOp.CREATE_TOPICS, KafkaOp.DELETE_TOPICS),
        *(KafkaOp.CREATE_PARTITIONS, KafkaOp.ALTER_CONFIGS, KafkaOp.INCREMENTAL_ALTER_CONFIGS),
        *(KafkaOp.ELECT_LEADERS, KafkaOp.ALTER_PARTITION_REASSIGNMENTS, KafkaOp.UPDATE_FEATURES),
    )
)
_TOO_LARGE: Final = {
    KafkaOp.PRODUCE: ErrorCode.MESSAGE_TOO_LARGE,
    KafkaOp.OFFSET_COMMIT: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    KafkaOp.TXN_OFFSET_COMMIT: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def unsent(op: Op[Any]) -> Any:
    """The reply to what was asked while there is no broker."""
    return op.refusal(unsent_code(op.code), "the gateway has no connection to its broker at the moment")


def unsent_code(code: KafkaOp) -> ErrorCode:
    if code in ABOUT_GROUPS or code in _ABOUT_TRANSACTIONS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _ABOUT_PARTITIONS:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if code in _ABOUT_LEADERS:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NOT_CONTROLLER


def unknown(op: Op[Any]) -> Any:
    """The reply to what was under way when the connection to the broker broke."""
    code = ErrorCode.REQUEST_TIMED_OUT if op.code in _MAYBE_DONE else unsent_code(op.code)
    return op.refusal(code, "the gateway lost its broker before the answer came")


def too_large(op: Op[Any], size: int, most: int) -> Any:
    code = _TOO_LARGE.get(op.code, ErrorCode.INVALID_REQUEST)
    return op.refusal(
        code, f"the request takes {size} bytes on the way to the broker, and {most} are the most"
    )


def not_served(op: Op[Any]) -> Any:
    name = packing_of(op.code).op.__name__
    return op.refusal(ErrorCode.UNSUPPORTED_VERSION, f"the broker is of an older release and has no {name}")
