"""Every op can be refused, in a shape that every version of its API can say; and no handler is missing."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.gateway.routes import ROUTES, Route
from rafka.ops import cluster, log, topics
from rafka.ops.base import Envelope, KafkaOp, Later, Op
from rafka.types import NO_TOPIC_ID, TopicId
from rafka.wire.frame import pieces

CODE = ErrorCode.KAFKA_STORAGE_ERROR
ID = TopicId(b"sixteen bytes...")

# One of each, that asks for two things where it can.
SAMPLES: list[Op[Any]] = [
    log.Produce(
        acks=1,
        timeout_ms=1,
        topic_data=[
            log.TopicData(
                name="t",
                topic_id=ID,
                partition_data=[log.PartitionData(index=n, records=b"") for n in (0, 1)],
            )
        ],
    ),
    log.Fetch(
        max_wait_ms=0,
        min_bytes=0,
        session_id=9,
        topics=[
            log.FetchTopic(
                topic="t",
                topic_id=ID,
                partitions=[
                    log.FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1) for n in (0, 1)
                ],
            )
        ],
    ),
    log.ListOffsets(
        topics=[
            log.ListOffsetsTopic(
                name="t",
                partitions=[log.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in (0, 1)],
            )
        ]
    ),
    log.OffsetForLeaderEpoch(
        topics=[
            log.EpochTopic(
                topic="t", partitions=[log.EpochPartition(partition=n, leader_epoch=0) for n in (0, 1)]
            )
        ]
    ),
    log.DeleteRecords(
        timeout_ms=1,
        topics=[
            log.DeleteRecordsTopic(
                name="t",
                partitions=[log.DeleteRecordsPartition(partition_index=n, offset=0) for n in (0, 1)],
            )
        ],
    ),
    log.InitProducerId(transaction_timeout_ms=1),
    log.DescribeProducers(topics=[log.ProducersTopic(name="t", partition_indexes=[0, 1])]),
    topics.Metadata(topics=[topics.MetadataTopic(name="t"), topics.MetadataTopic(name="u")]),
    topics.DescribeTopicPartitions(topics=[topics.TopicName(name="t"), topics.TopicName(name="u")]),
    topics.CreateTopics(
        topics=[topics.NewTopic(name=name, num_partitions=1, replication_factor=1) for name in "tu"]
    ),
    topics.DeleteTopics(topics=[topics.DoomedTopic(name="t"), topics.DoomedTopic(name="u")]),
    topics.CreatePartitions(
        topics=[topics.GrownTopic(name=name, count=2) for name in "tu"], timeout_ms=1, validate_only=False
    ),
    topics.ElectLeaders(topic_partitions=[topics.TopicPartitions(topic="t", partitions=[0, 1])]),
    topics.AlterPartitionReassignments(
        topics=[
            topics.ReassignableTopic(name="t", partitions=[topics.ReassignablePartition(partition_index=0)])
        ]
    ),
    topics.ListPartitionReassignments(topics=[topics.AskedTopic(name="t", partition_indexes=[0])]),
    cluster.DescribeCluster(),
    cluster.DescribeLogDirs(topics=None),
    cluster.DescribeConfigs(
        resources=[cluster.ConfigResource(resource_type=2, resource_name=name) for name in "tu"]
    ),
    cluster.AlterConfigs(
        resources=[cluster.ReplacedResource(resource_type=2, resource_name=n, configs=[]) for n in "tu"],
        validate_only=False,
    ),
    cluster.IncrementalAlterConfigs(
        resources=[cluster.ChangedResource(resource_type=2, resource_name=n, configs=[]) for n in "tu"],
        validate_only=False,
    ),
    cluster.ListConfigResources(resource_types=[]),
]
BY_TYPE = {type(op): op for op in SAMPLES}
OPS = [route.op for route in ROUTES.values() if route.op is not None]
SOLITARY = (  # whose reply has one code for all, whatever was asked
    log.InitProducerId,
    topics.ListPartitionReassignments,
    cluster.DescribeCluster,
    cluster.DescribeLogDirs,
    cluster.ListConfigResources,
)
# Versions that have no place for a refusal of the whole request: an empty answer is all they can give.
UNSPEAKABLE = {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}


def encoded(route: Route, version: int, reply: Any) -> bytes:
    encode = route.api.response_encoder(version, route.reply)
    out = bytearray()
    splices: list[tuple[int, Any]] = []
    if route.api.response_splices:
        encode(reply, out, splices)
    else:
        encode(reply, out)
    return b"".join(pieces(out, splices))


def codes_in(value: Any) -> list[int]:
    """Every error code of a decoded reply, wherever it is."""
    found: list[int] = []
    if isinstance(value, list):
        for item in value:
            found += codes_in(item)
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            inner = getattr(value, field.name)
            found += [inner] if field.name == "error_code" else codes_in(inner)
    return found


def versions() -> list[Any]:
    return [
        pytest.param(route, version, id=f"{route.api.name}-v{version}")
        for route in ROUTES.values()
        if route.op in BY_TYPE
        for version in route.api.versions
    ]


@pytest.mark.parametrize(("route", "version"), versions())
def test_a_refusal_can_be_said_in_every_version(route: Route, version: int) -> None:
    assert route.op is not None
    reply = BY_TYPE[route.op].refusal(CODE, "no")

    data = encoded(route, version, reply)

    response, end = route.api.response_decoder(version)(memoryview(data), 0)
    assert end == len(data)
    if (route.api.name, version) not in UNSPEAKABLE:
        assert CODE in codes_in(response)


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: type(op).__name__)
def test_a_refusal_is_to_all_that_was_asked(op: Op[Any]) -> None:
    codes = codes_in(op.refusal(CODE))

    assert codes == [CODE] if isinstance(op, SOLITARY) else codes.count(CODE) >= 2


def test_every_op_of_these_files_has_a_sample_here() -> None:
    """Ops of groups and transactions are held to the same beside those."""
    files = {module.__name__ for module in (log, topics, cluster)}

    assert {op for op in OPS if op.__module__ in files} == set(BY_TYPE)


def test_every_op_has_a_number_of_its_own() -> None:
    numbers = [op.code for op in OPS]

    assert len(set(numbers)) == len(numbers)
    assert set(numbers) <= set(KafkaOp)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.__name__)
def test_ops_and_replies_are_slotted_and_by_keyword(op: type[Op[Any]]) -> None:
    """They are made by the hundred thousand a second, and read by their names."""
    reply = next(route.reply for route in ROUTES.values() if route.op is op)
    assert reply is not None
    cls: Any
    for cls in (op, reply):
        assert all(field.kw_only for field in attrs.fields(cls))
        assert "__slots__" in vars(cls)


# --- the shapes that rules ask for ------------------------------------------------------------------


def test_metadata_is_refused_without_brokers() -> None:
    """M5, LF-091."""
    reply = topics.Metadata(topics=[topics.MetadataTopic(name=None, topic_id=ID)]).refusal(CODE)

    assert (reply.brokers, reply.cluster_id, reply.controller_id, reply.error_code) == ((), None, -1, CODE)
    [topic] = reply.topics
    assert (topic.name, topic.topic_id, topic.partitions) == ("", ID, ())
    assert topics.Metadata(topics=None).refusal(CODE).topics == []


def test_a_fetch_is_refused_at_the_top_and_in_each_partition() -> None:
    """F0, LF-083: with the session's id."""
    reply = BY_TYPE[log.Fetch].refusal(CODE)

    assert (reply.error_code, reply.session_id) == (CODE, 9)
    for partition in reply.responses[0].partitions:
        assert (partition.high_watermark, partition.records) == (-1, b"")
        assert partition.aborted_transactions == ()


def test_a_write_is_refused_with_no_offsets() -> None:
    for partition in BY_TYPE[log.Produce].refusal(CODE).responses[0].partition_responses:
        assert (partition.base_offset, partition.log_append_time_ms, partition.log_start_offset) == (-1,) * 3


def test_names_that_come_twice_are_refused_once() -> None:
    """T1, P1."""
    new = topics.NewTopic(name="t", num_partitions=1, replication_factor=1)
    grown = topics.GrownTopic(name="t", count=2)

    created = topics.CreateTopics(topics=[new, new]).refusal(CODE)
    more = topics.CreatePartitions(topics=[grown, grown], timeout_ms=1, validate_only=False).refusal(CODE)

    assert len(created.topics) == len(more.results) == 1


def test_old_and_new_ways_to_name_what_is_to_be_deleted_are_one() -> None:
    op = topics.DeleteTopics(topics=[topics.DoomedTopic(topic_id=ID)], topic_names=["a", "b"])

    assert [(d.name, d.topic_id) for d in op.doomed()] == [(None, ID), ("a", NO_TOPIC_ID), ("b", NO_TOPIC_ID)]


# --- later ------------------------------------------------------------------------------------------


async def test_nothing_runs_before_a_later_is_waited_for() -> None:
    ran = []

    async def work(a: int, b: int) -> int:
        ran.append((a, b))
        return a + b

    later: Later[int] = Later(work, 1, 2)

    assert ran == []
    assert not later.overlaps
    assert await later.wait() == 3
    assert ran == [(1, 2)]


def test_envelopes_are_nobodys_but_their_connections() -> None:
    first, second = Envelope(), Envelope()
    first.batches += 1

    assert (second.batches, second.org_id, second.principal) == (0, "default", "User:ANONYMOUS")
