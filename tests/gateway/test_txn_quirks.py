"""What only the version of a request about transactions says."""

from __future__ import annotations

import pytest

from rafka.gateway.txn_quirks import prepare_add_partitions, settle_add_partitions
from rafka.ops import txn


@pytest.mark.parametrize(("version", "by_client"), [(0, True), (3, True), (4, False), (5, False)])
def test_from_version_4_on_brokers_add_partitions(version: int, by_client: bool) -> None:
    op = txn.AddPartitionsToTxn(transactions=[], v3_and_below_transactional_id="x")

    prepare_add_partitions(op, version)

    assert op.by_client is by_client
    assert [asked.transactional_id for asked in op.transactions] == (["x"] if by_client else [])


@pytest.mark.parametrize("version", [3, 4])
def test_a_topic_without_partitions_is_left_out_of_the_answer_from_version_4_on(version: int) -> None:
    found = [
        txn.TxnTopicResult(name="t", results_by_partition=[txn.TxnPartitionResult(partition_index=1)]),
        txn.TxnTopicResult(name="empty", results_by_partition=[]),
    ]
    one = txn.TxnAdditionResult(transactional_id="x", topic_results=found)
    reply = txn.AddPartitionsToTxnReply(results_by_transaction=[one])

    told = settle_add_partitions(txn.AddPartitionsToTxn(transactions=[]), reply, version)

    if version < 4:
        assert [topic.name for topic in told.results_by_topic_v3_and_below] == ["t", "empty"]
    else:
        assert [topic.name for topic in told.results_by_transaction[0].topic_results] == ["t"]
