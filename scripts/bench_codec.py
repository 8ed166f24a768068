"""Our codecs beside kafka-python's: microseconds a message, and the ratio.

    python scripts/bench_codec.py            prints the table
    python scripts/bench_codec.py --check    and exits with 1 where a goal is missed

The two take turns, round by round, on the same bytes; the ratio is the median of the
rounds' ratios, so that a busy machine hurts both alike. Where the goal is a time of our
own, in brackets, it is for an idle machine and fails no check.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from timeit import Timer
from typing import Any, NamedTuple

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse

from rafka.wire.api import Api
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.list_offsets import LIST_OFFSETS
from rafka.wire.apis.offset_commit import OFFSET_COMMIT

PARTITIONS = 100
ROUNDS = 15
SECONDS_A_ROUND = 0.02


class Duel(NamedTuple):
    title: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    goal: float | None  # our time over theirs
    aim_us: float | None = None  # or our time alone


def duels() -> Iterator[Duel]:
    for api, version, request, goal, aim in [
        (FETCH, 12, fetch_request(), 0.75, None),
        (HEARTBEAT, 4, heartbeat_request(), 0.5, None),
        (OFFSET_COMMIT, 8, offset_commit_request(), 1.0, None),
        (LIST_OFFSETS, 1, list_offsets_request(), None, 1.5),
    ]:
        yield decode_duel(api, version, request, goal, aim)
    for api, version, response, goal, aim in [
        (FETCH, 12, fetch_response(), 0.25, None),
        (HEARTBEAT, 4, HeartbeatResponse(throttle_time_ms=0, error_code=0), 0.25, None),
        (OFFSET_COMMIT, 8, offset_commit_response(), 0.25, None),
        (LIST_OFFSETS, 1, list_offsets_response(), None, 1.0),
    ]:
        yield encode_duel(api, version, response, goal, aim)


def decode_duel(api: Api, version: int, theirs: Any, goal: float | None, aim: float | None) -> Duel:
    frame = bytes(theirs.encode(version=version))
    view = memoryview(frame)
    decode = api.request_decoder(version)
    cls = type(theirs)
    return Duel(
        f"decode {api.name} v{version}",
        lambda: decode(view, 0),
        lambda: cls.decode(view, version=version),
        goal,
        aim,
    )


def encode_duel(api: Api, version: int, theirs: Any, goal: float | None, aim: float | None) -> Duel:
    frame = bytes(theirs.encode(version=version))
    ours, _ = api.response_decoder(version)(frame, 0)
    encode = api.response_encoder(version)

    def encode_ours() -> bytearray:
        out = bytearray()
        if api.response_splices:
            encode(ours, out, [])
        else:
            encode(ours, out)
        return out

    if bytes(encode_ours()) != frame:
        raise SystemExit(f"{api.name} v{version}: the two do not write the same bytes")
    return Duel(
        f"encode {api.name} v{version}", encode_ours, lambda: theirs.encode(version=version), goal, aim
    )


# --- the messages --------------------------------------------------------------------


def fetch_request() -> Any:
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50_000_000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic(
                topic="orders",
                partitions=[
                    topic.FetchPartition(
                        partition=number,
                        current_leader_epoch=0,
                        fetch_offset=1_000_000 + number,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=1 << 20,
                    )
                    for number in range(PARTITIONS)
                ],
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
    )


def fetch_response() -> Any:
    topic = FetchResponse.FetchableTopicResponse
    return FetchResponse(
        throttle_time_ms=0,
        error_code=0,
        session_id=0,
        responses=[
            topic(
                topic="orders",
                partitions=[
                    topic.PartitionData(
                        partition_index=number,
                        error_code=0,
                        high_watermark=1_000_000 + number,
                        last_stable_offset=1_000_000 + number,
                        log_start_offset=0,
                        aborted_transactions=[],
                        preferred_read_replica=-1,
                        records=b"",
                    )
                    for number in range(PARTITIONS)
                ],
            )
        ],
    )


def heartbeat_request() -> Any:
    return HeartbeatRequest(
        group_id="shipping",
        generation_id=7,
        member_id="consumer-1-5f2c3a6e-0b1d-4c7e-9a55-1f0e2d3c4b5a",
        group_instance_id=None,
    )


def offset_commit_request() -> Any:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    return OffsetCommitRequest(
        group_id="shipping",
        generation_id_or_member_epoch=7,
        member_id="consumer-1-5f2c3a6e-0b1d-4c7e-9a55-1f0e2d3c4b5a",
        group_instance_id=None,
        topics=[
            topic(
                name="orders",
                partitions=[
                    topic.OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=1_000_000 + number,
                        committed_leader_epoch=-1,
                        committed_metadata="",
                    )
                    for number in range(PARTITIONS)
                ],
            )
        ],
    )


def offset_commit_response() -> Any:
    topic = OffsetCommitResponse.OffsetCommitResponseTopic
    return OffsetCommitResponse(
        throttle_time_ms=0,
        topics=[
            topic(
                name="orders",
                partitions=[
                    topic.OffsetCommitResponsePartition(partition_index=number, error_code=0)
                    for number in range(PARTITIONS)
                ],
            )
        ],
    )


def list_offsets_request() -> Any:
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[topic(name="orders", partitions=[partition])])


def list_offsets_response() -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse(
        partition_index=0, error_code=0, timestamp=-1, offset=1_000_000
    )
    return ListOffsetsResponse(topics=[topic(name="orders", partitions=[partition])])


# --- measuring -----------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 where a goal is missed")
    check = parser.parse_args().check
    missed = 0
    print(f"{'':26}{'rafka':>10}{'kafka-python':>14}{'ratio':>8}   goal")
    for duel in duels():
        ours, theirs, ratio = measure(duel)
        goal = f"<= {duel.goal}" if duel.goal is not None else f"[{duel.aim_us} us]"
        late = duel.goal is not None and ratio > duel.goal
        missed += late
        print(
            f"{duel.title:26}{ours:8.2f}us{theirs:12.2f}us{ratio:8.2f}   {goal}{'  missed' if late else ''}"
        )
    return 1 if check and missed else 0


def measure(duel: Duel) -> tuple[float, float, float]:
    """Median microseconds of each, and the median of the rounds' ratios."""
    timers = Timer(duel.ours), Timer(duel.theirs)
    loops = [loops_of(timer) for timer in timers]
    rounds = [
        [timer.timeit(number) / number * 1e6 for timer, number in zip(timers, loops, strict=True)]
        for _ in range(ROUNDS)
    ]
    ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
    return ours, theirs, statistics.median(mine / other for mine, other in rounds)


def loops_of(timer: Timer) -> int:
    timer.timeit(3)  # compiles, on both sides
    return max(1, int(SECONDS_A_ROUND / (timer.timeit(10) / 10)))


if __name__ == "__main__":
    sys.exit(main())
