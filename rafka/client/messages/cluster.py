"""Which versions a broker speaks, and which brokers, topics and leaders there are."""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import message
from ...wire.api import Api
from ...wire.apis.api_versions import API_VERSIONS
from ...wire.apis.metadata import METADATA
from .base import Request


@message
class VersionRange:
    api_key: int
    min_version: int
    max_version: int


@message
class SupportedFeature:
    name: str
    min_version: int
    max_version: int


@message
class FinalizedFeature:
    name: str
    max_version_level: int
    min_version_level: int


@message
class ApiVersionsReply:
    error_code: int
    api_keys: list[VersionRange]
    supported_features: list[SupportedFeature] = attrs.field(factory=list)
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeature] = attrs.field(factory=list)


@message
class ApiVersions(Request[ApiVersionsReply]):
    api: ClassVar[Api] = API_VERSIONS
    reply = ApiVersionsReply

    client_software_name: str = "rafka"
    client_software_version: str = ""


@message
class BrokerEntry:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@message
class PartitionEntry:
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]


@message
class TopicEntry:
    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[PartitionEntry]


@message
class MetadataReply:
    brokers: list[BrokerEntry]
    cluster_id: str | None
    controller_id: int
    topics: list[TopicEntry]
    error_code: int = 0


@message
class WantedTopic:
    name: str | None


@message
class Metadata(Request[MetadataReply]):
    """`topics=None` asks for all of them, an empty list for none."""

    api: ClassVar[Api] = METADATA
    reply = MetadataReply

    topics: list[WantedTopic] | None
    allow_auto_topic_creation: bool = False
