"""What is known of one transactional id, and which changes of its state are legal.

                  ┌───────────── add ──────────────┐
                  ▼                                │
    EMPTY ──add──▶ ONGOING ──commit──▶ PREPARE_COMMIT ──markers written──▶ COMPLETE_COMMIT
      ▲               └─────abort────▶ PREPARE_ABORT ───markers written──▶ COMPLETE_ABORT
      └───────────── a producer asks for its id again ───────────────────────┘

A transaction is decided when its PREPARE is durable; from then on it can only be
completed. All that must survive is in a `TransactionChanged` or `TxnPartitionsAdded`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

import attrs

from ...errors import ErrorCode
from ...types import OrgId

NO_ID: Final = -1
NO_EPOCH: Final = -1
LAST_EPOCH: Final = 32_766  # the highest that a client is given; its markers may carry one more
NEVER: Final = -1
CLASSIC: Final = 0  # a transaction that ends with the epoch it began with
BUMPED: Final = 2  # a transaction that ends with a new epoch (KIP-890)

TxnKey: TypeAlias = tuple[OrgId, str]
TopicPartition: TypeAlias = tuple[str, int]


class TxnState(Enum):
    """The values are Kafka's names: they are what admin clients see, and what facts keep."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


_S: Final = TxnState
TRANSITIONS: Final[dict[TxnState, frozenset[TxnState]]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
}
PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETE: Final = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
FORGETTABLE: Final = COMPLETE | {_S.EMPTY}

# Names that clients may filter by, though no transaction here is ever seen in the last two.
STATE_NAMES: Final = frozenset(state.value for state in TxnState) | {"Dead", "PrepareEpochFence"}


@attrs.define
class Transaction:
    """One transactional id. Changed by `Transactions.apply` and by nothing else."""

    key: TxnKey
    producer_id: int
    epoch: int = NO_EPOCH
    previous_producer_id: int = NO_ID  # the one before, when its epochs were used up
    next_producer_id: int = NO_ID  # the one that takes over when this transaction is complete
    last_epoch: int = NO_EPOCH  # whoever asks again with this one has missed the answer
    timeout_ms: int = 0
    state: TxnState = TxnState.EMPTY
    partitions: dict[TopicPartition, None] = attrs.Factory(dict)
    started_ms: int = NEVER
    updated_ms: int = NEVER
    version: int = CLASSIC  # how the last transaction ended, or ends

    @property
    def exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH

    @property
    def expires_ms(self) -> int:
        """When an open transaction has lasted long enough."""
        return self.started_ms + self.timeout_ms


@attrs.frozen
class TxnRules:
    """What is configured; may be replaced while the broker runs."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    max_ids: int = 1_000_000
    max_partitions: int = 100_000  # of one transaction
    max_reply_bytes: int = 67_108_864  # of one answer that describes transactions


@attrs.frozen
class Ending:
    """A transaction whose outcome is durable, and whose markers have to be written."""

    key: TxnKey
    producer_id: int
    epoch: int  # that the markers carry
    committed: bool
    version: int
    partitions: tuple[TopicPartition, ...]


UNKNOWN: Final = ErrorCode.INVALID_PRODUCER_ID_MAPPING
FENCED: Final = ErrorCode.PRODUCER_FENCED
BUSY: Final = ErrorCode.CONCURRENT_TRANSACTIONS
