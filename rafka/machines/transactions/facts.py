"""What must survive of transactions."""

from __future__ import annotations

from typing import Final

from ...types import OrgId
from ..facts import fact


@fact("transaction-changed")
class TransactionChanged:
    """All that is known of a transactional id, from now on."""

    org: OrgId
    transactional_id: str
    producer_id: int
    epoch: int
    previous_producer_id: int
    next_producer_id: int
    last_epoch: int
    timeout_ms: int
    state: str
    partitions: tuple[tuple[str, int], ...]
    started_ms: int
    updated_ms: int
    version: int


@fact("transaction-partitions-added")
class TxnPartitionsAdded:
    """A transaction is open and these take part in it, beside those that did."""

    org: OrgId
    transactional_id: str
    partitions: tuple[tuple[str, int], ...]
    started_ms: int
    updated_ms: int


@fact("transaction-forgotten")
class TransactionForgotten:
    org: OrgId
    transactional_id: str


TRANSACTION_FACTS: Final = (TransactionChanged, TxnPartitionsAdded, TransactionForgotten)
