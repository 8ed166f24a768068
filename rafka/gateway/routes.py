"""Which request is which op. One line per API: ApiVersions is read off this table, and nowhere else.

A route is all that differs between APIs on the way from frame to op and back. Most need
a declaration and an op; `prepare` tells an op what only the version of its request
says, `settle` turns a reply into what that version's client expects. What the gateway
answers itself has a `local` instead of an op.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import attrs

from ..ops import cluster, group, log, offsets, topics, txn
from ..ops.base import Op
from ..wire.api import Api
from ..wire.apis.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from ..wire.apis.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from ..wire.apis.alter_configs import ALTER_CONFIGS
from ..wire.apis.alter_partition_reassignments import ALTER_PARTITION_REASSIGNMENTS
from ..wire.apis.api_versions import API_VERSIONS
from ..wire.apis.create_partitions import CREATE_PARTITIONS
from ..wire.apis.create_topics import CREATE_TOPICS
from ..wire.apis.delete_groups import DELETE_GROUPS
from ..wire.apis.delete_records import DELETE_RECORDS
from ..wire.apis.delete_topics import DELETE_TOPICS
from ..wire.apis.describe_cluster import DESCRIBE_CLUSTER
from ..wire.apis.describe_configs import DESCRIBE_CONFIGS
from ..wire.apis.describe_groups import DESCRIBE_GROUPS
from ..wire.apis.describe_log_dirs import DESCRIBE_LOG_DIRS
from ..wire.apis.describe_producers import DESCRIBE_PRODUCERS
from ..wire.apis.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from ..wire.apis.describe_transactions import DESCRIBE_TRANSACTIONS
from ..wire.apis.elect_leaders import ELECT_LEADERS
from ..wire.apis.end_txn import END_TXN
from ..wire.apis.fetch import FETCH
from ..wire.apis.find_coordinator import FIND_COORDINATOR
from ..wire.apis.group_history import GROUP_HISTORY
from ..wire.apis.heartbeat import HEARTBEAT
from ..wire.apis.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from ..wire.apis.init_producer_id import INIT_PRODUCER_ID
from ..wire.apis.join_group import JOIN_GROUP
from ..wire.apis.leave_group import LEAVE_GROUP
from ..wire.apis.list_config_resources import LIST_CONFIG_RESOURCES
from ..wire.apis.list_groups import LIST_GROUPS
from ..wire.apis.list_offsets import LIST_OFFSETS
from ..wire.apis.list_partition_reassignments import LIST_PARTITION_REASSIGNMENTS
from ..wire.apis.list_transactions import LIST_TRANSACTIONS
from ..wire.apis.metadata import METADATA
from ..wire.apis.offset_commit import OFFSET_COMMIT
from ..wire.apis.offset_delete import OFFSET_DELETE
from ..wire.apis.offset_fetch import OFFSET_FETCH
from ..wire.apis.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from ..wire.apis.produce import PRODUCE
from ..wire.apis.sasl_authenticate import SASL_AUTHENTICATE
from ..wire.apis.sasl_handshake import SASL_HANDSHAKE
from ..wire.apis.sync_group import SYNC_GROUP
from ..wire.apis.txn_offset_commit import TXN_OFFSET_COMMIT
from ..wire.apis.update_features import UPDATE_FEATURES
from ..wire.apis.write_txn_markers import WRITE_TXN_MARKERS
from ..wire.errors import WireError
from . import api_versions, find_coordinator, quirks, sasl, txn_quirks
from .local import Local


@attrs.frozen
class Route:
    api: Api
    op: type[Op[Any]] | None = None
    reply: type[Any] | None = None
    prepare: Callable[[Any, int], None] | None = None
    settle: Callable[[Any, Any, int], Any] | None = None
    local: Local | None = None
    own: bool = False  # no API of Kafka's: ApiVersions tells of it to rafka's own client only


def _route(
    api: Api,
    op: type[Op[Any]],
    reply: type[Any],
    prepare: Callable[[Any, int], None] | None = None,
    settle: Callable[[Any, Any, int], Any] | None = None,
) -> Route:
    return Route(api, op, reply, prepare, settle)


ROUTES: Final = {
    route.api.key: route
    for route in (
        _route(PRODUCE, log.Produce, log.ProduceReply, quirks.prepare_produce, quirks.settle_produce),
        _route(FETCH, log.Fetch, log.FetchReply, quirks.prepare_fetch),
        _route(LIST_OFFSETS, log.ListOffsets, log.ListOffsetsReply, quirks.prepare_list_offsets),
        _route(METADATA, topics.Metadata, topics.MetadataReply, quirks.prepare_metadata),
        _route(OFFSET_COMMIT, offsets.OffsetCommit, offsets.OffsetCommitReply, quirks.prepare_offset_commit),
        _route(
            OFFSET_FETCH,
            offsets.OffsetFetch,
            offsets.OffsetFetchReply,
            quirks.prepare_offset_fetch,
            quirks.settle_offset_fetch,
        ),
        Route(
            FIND_COORDINATOR,
            reply=find_coordinator.FindCoordinatorReply,
            local=find_coordinator.answer,
        ),
        _route(
            JOIN_GROUP,
            group.JoinGroup,
            group.JoinGroupReply,
            quirks.prepare_join_group,
            quirks.settle_join_group,
        ),
        _route(HEARTBEAT, group.Heartbeat, group.HeartbeatReply),
        _route(
            LEAVE_GROUP,
            group.LeaveGroup,
            group.LeaveGroupReply,
            quirks.prepare_leave_group,
            quirks.settle_leave_group,
        ),
        _route(SYNC_GROUP, group.SyncGroup, group.SyncGroupReply, quirks.prepare_sync_group),
        _route(
            DESCRIBE_GROUPS, group.DescribeGroups, group.DescribeGroupsReply, quirks.prepare_describe_groups
        ),
        _route(LIST_GROUPS, group.ListGroups, group.ListGroupsReply),
        Route(SASL_HANDSHAKE, reply=sasl.HandshakeReply, local=sasl.handshake),
        Route(API_VERSIONS, reply=api_versions.ApiVersionsReply, local=api_versions.answer),
        _route(CREATE_TOPICS, topics.CreateTopics, topics.CreateTopicsReply),
        _route(DELETE_TOPICS, topics.DeleteTopics, topics.DeleteTopicsReply),
        _route(DELETE_RECORDS, log.DeleteRecords, log.DeleteRecordsReply),
        _route(INIT_PRODUCER_ID, log.InitProducerId, log.InitProducerIdReply, settle=txn_quirks.settle_init),
        _route(OFFSET_FOR_LEADER_EPOCH, log.OffsetForLeaderEpoch, log.OffsetForLeaderEpochReply),
        _route(
            ADD_PARTITIONS_TO_TXN,
            txn.AddPartitionsToTxn,
            txn.AddPartitionsToTxnReply,
            txn_quirks.prepare_add_partitions,
            txn_quirks.settle_add_partitions,
        ),
        _route(
            ADD_OFFSETS_TO_TXN,
            txn.AddOffsetsToTxn,
            txn.AddOffsetsToTxnReply,
            settle=txn_quirks.settle_fenced,
        ),
        _route(END_TXN, txn.EndTxn, txn.EndTxnReply, txn_quirks.prepare_end, txn_quirks.settle_fenced),
        _route(WRITE_TXN_MARKERS, txn.WriteTxnMarkers, txn.WriteTxnMarkersReply),
        _route(
            TXN_OFFSET_COMMIT,
            offsets.TxnOffsetCommit,
            offsets.OffsetCommitReply,
            txn_quirks.prepare_txn_offset_commit,
        ),
        _route(DESCRIBE_CONFIGS, cluster.DescribeConfigs, cluster.DescribeConfigsReply),
        _route(ALTER_CONFIGS, cluster.AlterConfigs, cluster.AlterConfigsReply),
        _route(DESCRIBE_LOG_DIRS, cluster.DescribeLogDirs, cluster.DescribeLogDirsReply),
        Route(SASL_AUTHENTICATE, reply=sasl.AuthenticateReply, local=sasl.authenticate),
        _route(CREATE_PARTITIONS, topics.CreatePartitions, topics.CreatePartitionsReply),
        _route(DELETE_GROUPS, group.DeleteGroups, group.DeleteGroupsReply),
        _route(ELECT_LEADERS, topics.ElectLeaders, topics.ElectLeadersReply),
        _route(INCREMENTAL_ALTER_CONFIGS, cluster.IncrementalAlterConfigs, cluster.AlterConfigsReply),
        _route(
            ALTER_PARTITION_REASSIGNMENTS,
            topics.AlterPartitionReassignments,
            topics.AlterPartitionReassignmentsReply,
        ),
        _route(
            LIST_PARTITION_REASSIGNMENTS,
            topics.ListPartitionReassignments,
            topics.ListPartitionReassignmentsReply,
        ),
        _route(
            UPDATE_FEATURES,
            txn.UpdateFeatures,
            txn.UpdateFeaturesReply,
            txn_quirks.prepare_update_features,
        ),
        _route(DESCRIBE_TRANSACTIONS, txn.DescribeTransactions, txn.DescribeTransactionsReply),
        _route(LIST_TRANSACTIONS, txn.ListTransactions, txn.ListTransactionsReply),
        _route(OFFSET_DELETE, offsets.OffsetDelete, offsets.OffsetDeleteReply),
        _route(DESCRIBE_CLUSTER, cluster.DescribeCluster, cluster.DescribeClusterReply),
        _route(DESCRIBE_PRODUCERS, log.DescribeProducers, log.DescribeProducersReply),
        _route(
            LIST_CONFIG_RESOURCES,
            cluster.ListConfigResources,
            cluster.ListConfigResourcesReply,
            quirks.prepare_list_config_resources,
        ),
        _route(
            DESCRIBE_TOPIC_PARTITIONS,
            topics.DescribeTopicPartitions,
            topics.DescribeTopicPartitionsReply,
        ),
        Route(GROUP_HISTORY, group.GroupHistory, group.GroupHistoryReply, own=True),
    )
}


@attrs.frozen
class Bound:
    """A route for one version, with its codecs."""

    version: int
    decode: Callable[..., tuple[Any, int]]
    encode: Callable[..., None]
    splices: bool
    flexible: bool  # the request's header ends with tagged fields
    flexible_reply: bool
    prepare: Callable[[Any, int], None] | None
    settle: Callable[[Any, Any, int], Any] | None
    local: Local | None


def _bind(key: int, version: int) -> Bound | None:
    route = ROUTES.get(key)
    if route is None:
        return None
    api = route.api
    if version not in api.versions:
        if route.local is not api_versions.answer:
            return None
        return _bind_unsupported_api_versions(version > api.versions[-1])
    return Bound(
        version,
        api.request_decoder(version, route.op),
        api.response_encoder(version, route.reply),
        api.response_splices,
        api.is_flexible(version),
        api.response_header_flexible(version),
        route.prepare,
        route.settle,
        route.local,
    )


@cache
def _bind_unsupported_api_versions(later: bool) -> Bound:
    """Whoever asks for ApiVersions in a version that we lack is told so in version 0, with those we have.

    Of such a request only the header is read: that of any later version ends with tagged fields.
    """
    api = API_VERSIONS
    return Bound(
        0,
        api.request_decoder(0),
        api.response_encoder(0, api_versions.ApiVersionsReply),
        False,
        later,
        False,
        None,
        None,
        api_versions.unsupported,
    )


# Those that were used so far, by `key << 16 | version & 0xFFFF`: to be asked first.
bound_routes: Final[dict[int, Bound]] = {}


def bound_route(key: int, version: int) -> Bound:
    """The way of this request. WireError for what is not served: Kafka closes the connection."""
    bound = _bind(key, version)
    if bound is None:
        raise WireError(f"api key {key} version {version} is not served")
    if version in ROUTES[key].api.versions:  # few, so that this table cannot be made to grow
        bound_routes[key << 16 | version & 0xFFFF] = bound
    return bound
