"""What follows from a request to one transactional id: pure functions of what is known of it.

Each gives the fact that the request comes to, if any, and raises `KafkaError` for what
is refused. Nothing is changed here. The order of the checks is Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from ...errors import ErrorCode, KafkaError
from .facts import TransactionChanged, TxnPartitionsAdded
from .model import (
    BUMPED,
    BUSY,
    CLASSIC,
    COMPLETE,
    FENCED,
    LAST_EPOCH,
    NEVER,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    UNKNOWN,
    TopicPartition,
    Transaction,
    TxnState,
)

NewId = Callable[[], int]

_COMPLETED: Final = {
    TxnState.PREPARE_COMMIT: TxnState.COMPLETE_COMMIT,
    TxnState.PREPARE_ABORT: TxnState.COMPLETE_ABORT,
}


# --- a producer asks for its id -------------------------------------------------------


def claim(
    txn: Transaction, producer_id: int, epoch: int, timeout_ms: int, now_ms: int, new_id: NewId
) -> TransactionChanged:
    """A producer takes the transactional id over, or asks for its own next epoch. Rules I8-I16.

    Where a transaction is open it is aborted first: the fact prepares that, and whoever
    asked has to be told to come again.
    """
    supplied = producer_id != NO_ID
    if supplied and not _may_claim(txn, producer_id, epoch):
        raise KafkaError(FENCED)
    if txn.state in PREPARED:
        raise KafkaError(BUSY)
    if txn.state is TxnState.ONGOING:
        return fence(txn, now_ms, new_id)
    claimed = attrs.evolve(txn, timeout_ms=timeout_ms, started_ms=NEVER, partitions={})
    if supplied and txn.epoch not in (NO_EPOCH, epoch):
        if epoch != txn.last_epoch:
            raise KafkaError(FENCED)
        return changed(claimed, TxnState.EMPTY, now_ms)  # its last answer was lost: the same again
    claimed.last_epoch = epoch if supplied and txn.epoch != NO_EPOCH else NO_EPOCH
    if txn.exhausted:
        claimed.previous_producer_id = txn.producer_id
        claimed.producer_id, claimed.epoch = new_id(), 0
    else:
        claimed.epoch = txn.epoch + 1
    return changed(claimed, TxnState.EMPTY, now_ms)


def _may_claim(txn: Transaction, producer_id: int, epoch: int) -> bool:
    """Rule I9. The producer id before this one may ask again until the new one has begun a transaction."""
    if txn.epoch == NO_EPOCH or producer_id == txn.producer_id:
        return True
    replaced = producer_id == txn.previous_producer_id and epoch >= LAST_EPOCH and txn.epoch == 0
    return replaced and txn.state is not TxnState.ONGOING


def fence(txn: Transaction, now_ms: int, new_id: NewId) -> TransactionChanged:
    """Abort an open transaction on behalf of somebody else: its producer may write no more."""
    return prepare(txn, False, True, now_ms, new_id)


# --- partitions take part --------------------------------------------------------------


def check_producer(txn: Transaction | None, producer_id: int, epoch: int) -> Transaction:
    """Rules P4, P5."""
    if txn is None or txn.producer_id != producer_id:
        raise KafkaError(UNKNOWN)
    if txn.epoch != epoch or epoch > LAST_EPOCH:
        raise KafkaError(FENCED)  # one more than the last is for markers alone: nobody was given it
    return txn


def add(
    txn: Transaction, partitions: Iterable[TopicPartition], now_ms: int, most: int
) -> TxnPartitionsAdded | None:
    """Partitions become part of the transaction, which opens where none is open. Rules P6-P8a."""
    if txn.state in PREPARED:
        raise KafkaError(BUSY)
    ongoing = txn.state is TxnState.ONGOING
    already = txn.partitions if ongoing else {}
    new = tuple(dict.fromkeys(p for p in partitions if p not in already))
    if ongoing and not new:
        return None
    if len(already) + len(new) > most:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"a transaction has at most {most} partitions here")
    org, transactional_id = txn.key
    started = txn.started_ms if ongoing else now_ms
    return TxnPartitionsAdded(org, transactional_id, new, started, now_ms)


def takes_part(txn: Transaction, partition: TopicPartition) -> ErrorCode:
    """Whether the partition is part of the open transaction. Rule P10."""
    if txn.state in PREPARED:
        return BUSY
    if txn.state is TxnState.ONGOING and partition in txn.partitions:
        return ErrorCode.NONE
    return ErrorCode.TRANSACTION_ABORTABLE


# --- the end ---------------------------------------------------------------------------


def end(
    txn: Transaction | None,
    producer_id: int,
    epoch: int,
    committed: bool,
    bumps_epoch: bool,
    now_ms: int,
    new_id: NewId,
) -> TransactionChanged | None:
    """The producer ends its transaction. None where it has, and only its answer was lost. Rules E3-E13a."""
    overflow = txn is not None and bumps_epoch and _retries_overflow(txn, producer_id, epoch)
    if txn is None or (txn.producer_id != producer_id and not overflow):
        raise KafkaError(UNKNOWN)
    retry = bumps_epoch and (overflow or epoch + 1 == txn.epoch) and txn.state is not TxnState.ONGOING
    if txn.state is TxnState.EMPTY:
        retry = False
    if not retry and (epoch != txn.epoch or epoch > LAST_EPOCH):
        raise KafkaError(FENCED)
    if txn.state in PREPARED:
        raise KafkaError(BUSY)
    if txn.state is TxnState.ONGOING:
        return prepare(txn, committed, bumps_epoch, now_ms, new_id)
    if bumps_epoch and not retry:
        if committed:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        nothing = attrs.evolve(txn, partitions={}, started_ms=now_ms)
        return prepare(nothing, False, True, now_ms, new_id)
    ended = TxnState.COMPLETE_COMMIT if committed else TxnState.COMPLETE_ABORT
    if txn.state is not ended:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    return None


def _retries_overflow(txn: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether this repeats the request at whose end the producer id was used up."""
    return (
        txn.version == BUMPED
        and txn.state in COMPLETE
        and producer_id == txn.previous_producer_id
        and epoch == LAST_EPOCH
        and txn.epoch == 0
    )


def prepare(
    txn: Transaction, committed: bool, bumps_epoch: bool, now_ms: int, new_id: NewId
) -> TransactionChanged:
    """The outcome is decided. Where the epoch goes on, the markers already carry the next one."""
    decided = attrs.evolve(txn, version=BUMPED if bumps_epoch else CLASSIC)
    if bumps_epoch:
        decided.last_epoch, decided.epoch = txn.epoch, txn.epoch + 1
        if txn.exhausted:
            decided.next_producer_id = new_id()
    return changed(decided, TxnState.PREPARE_COMMIT if committed else TxnState.PREPARE_ABORT, now_ms)


def told_at_end(txn: Transaction) -> tuple[int, int]:
    """(producer id, epoch) that the producer goes on with."""
    if txn.next_producer_id != NO_ID:
        return txn.next_producer_id, 0
    return txn.producer_id, txn.epoch


def complete(txn: Transaction, now_ms: int) -> TransactionChanged:
    """All markers are written."""
    done = attrs.evolve(txn, partitions={})
    if txn.next_producer_id != NO_ID:
        done.previous_producer_id = txn.producer_id
        done.producer_id, done.epoch, done.next_producer_id = txn.next_producer_id, 0, NO_ID
    return changed(done, _COMPLETED[txn.state], now_ms)


def changed(txn: Transaction, state: TxnState, now_ms: int) -> TransactionChanged:
    org, transactional_id = txn.key
    return TransactionChanged(
        org=org,
        transactional_id=transactional_id,
        producer_id=txn.producer_id,
        epoch=txn.epoch,
        previous_producer_id=txn.previous_producer_id,
        next_producer_id=txn.next_producer_id,
        last_epoch=txn.last_epoch,
        timeout_ms=txn.timeout_ms,
        state=state.value,
        partitions=tuple(txn.partitions),
        started_ms=txn.started_ms,
        updated_ms=now_ms,
        version=txn.version,
    )
