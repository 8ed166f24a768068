"""What only the version of a request about transactions says. As `quirks`, of which it is a part."""

from __future__ import annotations

from typing import Any, Final

from ..errors import ErrorCode
from ..ops.offsets import TxnOffsetCommit
from ..ops.txn import (
    AddPartitionsToTxn,
    AddPartitionsToTxnReply,
    EndTxn,
    TxnAddition,
    TxnPartitionResult,
    TxnTopicResult,
    UpdateFeatures,
)

BATCHED: Final = 4  # the version of AddPartitionsToTxn from which on many transactions are asked for
FENCED_KNOWN: Final = 2  # before this version a producer that was replaced learns of an invalid epoch
FENCED_KNOWN_AT_INIT: Final = 4
SAFE_DOWNGRADE: Final = 2


def _as_known(code: ErrorCode) -> ErrorCode:
    """To a client that does not know PRODUCER_FENCED."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


def settle_fenced(op: Any, reply: Any, version: int) -> Any:
    """AddOffsetsToTxn and EndTxn."""
    if version < FENCED_KNOWN:
        reply.error_code = _as_known(reply.error_code)
    return reply


def settle_init(op: Any, reply: Any, version: int) -> Any:
    if version < FENCED_KNOWN_AT_INIT:
        reply.error_code = _as_known(reply.error_code)
    return reply


def prepare_add_partitions(op: AddPartitionsToTxn, version: int) -> None:
    """Before version 4 a client asks for its own transaction, in fields of their own."""
    if version >= BATCHED:
        return
    op.by_client = True  # type: ignore[misc]
    op.transactions = [  # type: ignore[misc]
        TxnAddition(
            transactional_id=op.v3_and_below_transactional_id,
            producer_id=op.v3_and_below_producer_id,
            producer_epoch=op.v3_and_below_producer_epoch,
            topics=list(op.v3_and_below_topics),
        )
    ]


def settle_add_partitions(
    op: AddPartitionsToTxn, reply: AddPartitionsToTxnReply, version: int
) -> AddPartitionsToTxnReply:
    """From version 4 on topics without partitions are left out."""
    if version >= BATCHED:
        for result in reply.results_by_transaction:
            named = [topic for topic in result.topic_results if topic.results_by_partition]
            result.topic_results = named  # type: ignore[misc]  # it is nobody else's any more
        return reply
    topics = [topic for result in reply.results_by_transaction for topic in result.topic_results]
    if version < FENCED_KNOWN:
        topics = [
            TxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    TxnPartitionResult(
                        partition_index=p.partition_index,
                        partition_error_code=_as_known(p.partition_error_code),
                    )
                    for p in topic.results_by_partition
                ],
            )
            for topic in topics
        ]
    return AddPartitionsToTxnReply(results_by_topic_v3_and_below=topics)


def prepare_end(op: EndTxn, version: int) -> None:
    op.bumps_epoch = version >= 5  # type: ignore[misc]


def prepare_txn_offset_commit(op: TxnOffsetCommit, version: int) -> None:
    op.adds_group = version >= 5  # type: ignore[misc]
    op.abortable_known = version >= 4  # type: ignore[misc]


def prepare_update_features(op: UpdateFeatures, version: int) -> None:
    op.results_told = version < 2  # type: ignore[misc]
    for update in op.feature_updates:
        if update.allow_downgrade:
            update.upgrade_type = SAFE_DOWNGRADE  # type: ignore[misc]
