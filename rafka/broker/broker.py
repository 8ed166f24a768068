"""The broker: which op is answered by whom.

What can be answered from what is in memory is a plain call. What an actor decides (the catalog
keeper, the coordinator of groups) is asked of it, and comes later. Nothing here knows the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import ErrorCode, KafkaError
from ..ops import cluster, group, log, topics, txn
from ..ops import offsets as group_offsets
from ..ops.base import Envelope, Later, Op, R
from .catalog_keeper import CatalogKeeper
from .configs import ConfigKeeper
from .coordinator import Coordinator
from .describe import Describer
from .fetch import Fetcher
from .group_requests import GroupRequests
from .offsets import Offsets
from .produce import Writer
from .txn_coordinator import TxnCoordinator
from .txn_requests import TxnRequests

logger = logging.getLogger(__name__)

OpT = TypeVar("OpT", bound=Op[Any])


class Broker:
    """As `link.Link`: `ask` gives the reply, or what to wait for."""

    def __init__(
        self,
        *,
        writer: Writer,
        fetcher: Fetcher,
        offsets: Offsets,
        describer: Describer,
        configs: ConfigKeeper,
        keeper: CatalogKeeper,
        coordinator: Coordinator,
        group_requests: GroupRequests,
        transactions: TxnCoordinator,
        txn_requests: TxnRequests,
    ) -> None:
        self.fetcher = fetcher
        self.keep = coordinator.keep
        self._coordinator = coordinator
        self._handlers: dict[type[Op[Any]], Callable[[Envelope, Any], Any]] = {
            log.Produce: writer.produce,
            log.Fetch: fetcher.fetch,
            log.ListOffsets: offsets.list_offsets,
            log.OffsetForLeaderEpoch: offsets.epoch_ends,
            log.DeleteRecords: offsets.delete_records,
            log.DescribeProducers: offsets.producers,
            log.InitProducerId: txn_requests.init,
            topics.Metadata: describer.metadata,
            topics.DescribeTopicPartitions: describer.topic_partitions,
            topics.ElectLeaders: describer.elect,
            topics.AlterPartitionReassignments: describer.reassign,
            topics.ListPartitionReassignments: describer.reassignments,
            topics.CreateTopics: keeper.ask,
            topics.DeleteTopics: keeper.ask,
            topics.CreatePartitions: keeper.ask,
            group.JoinGroup: coordinator.ask,
            group.SyncGroup: coordinator.ask,
            group.Heartbeat: coordinator.ask,
            group.LeaveGroup: coordinator.ask,
            group.DescribeGroups: coordinator.ask,
            group.ListGroups: coordinator.ask,
            group.DeleteGroups: coordinator.ask,
            group.GroupHistory: coordinator.ask,
            group_offsets.OffsetCommit: group_requests.commit,
            group_offsets.OffsetFetch: group_requests.fetch,
            group_offsets.OffsetDelete: group_requests.delete,
            group_offsets.TxnOffsetCommit: txn_requests.commit_offsets,
            txn.AddPartitionsToTxn: transactions.ask,
            txn.AddOffsetsToTxn: transactions.ask,
            txn.EndTxn: transactions.ask,
            txn.WriteTxnMarkers: txn_requests.write_markers,
            txn.DescribeTransactions: transactions.ask,
            txn.ListTransactions: transactions.ask,
            txn.UpdateFeatures: keeper.ask,
            cluster.DescribeCluster: describer.cluster,
            cluster.DescribeLogDirs: describer.log_dirs,
            cluster.DescribeConfigs: configs.describe,
            cluster.ListConfigResources: configs.list_resources,
            cluster.AlterConfigs: keeper.ask,
            cluster.IncrementalAlterConfigs: keeper.ask,
        }

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        try:
            return self._handlers[type(op)](envelope, op)  # type: ignore[no-any-return]
        except KafkaError as refused:
            return op.refusal(refused.code, refused.message)
        except Exception:  # a mistake of ours: the client is told so, and others go on
            logger.exception("%s failed for %s", type(op).__name__, envelope.client_host)
            return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def close(self) -> None:
        """Answer whoever waits for something to happen: it will not happen here."""
        self.fetcher.close()
        self._coordinator.close()
