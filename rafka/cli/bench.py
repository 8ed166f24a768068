"""`rafka bench`: how fast a cluster takes records and gives them back, in the words of Kafka's own tools."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import deque
from typing import Final

import attrs
import trio

from ..client import Client, ClientError, Delivery, Producer, TopicPartition, UnknownTopic
from ..client.accumulator import Batch
from ..client.admin import NewTopic
from ..client.delivery import parse_acks
from ..client.offsets import Beginning, End
from ..records.compress import NAMES
from .connected import add_command, checked, run_connected, targets_of
from .figures import CONSUMED_HEADER, Latencies, Progress, consumed_row, end_to_end, sentence
from .output import DONE, CommandError, add_bootstrap

DESCRIPTION = """\
Measure producing, consuming, and the way from one to the other.

The figures are printed as Kafka's kafka-producer-perf-test, kafka-consumer-perf-test and
kafka-e2e-latency print them, so that they can be laid side by side. The client is rafka's own, in
Python and on one core: against a fast broker it is what is measured.
"""

EXAMPLES = """\
  rafka bench produce --num-records 1000000 --record-size 100
  rafka bench produce --throughput 10000 --acks 1 --compression lz4
  rafka bench consume --num-records 1000000
  rafka bench e2e --num-records 2000
"""

DEFAULT_TOPIC: Final = "rafka-bench"
PAYLOADS: Final = 64  # different ones, so that a codec has something to do
LETTERS: Final = bytes(range(65, 91))
PACE: Final = 0.002  # how long a throttled sender rests at the least


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    produce = add_command(
        commands,
        "produce",
        _produce,
        "send records as fast as they are taken, or at a rate",
        "  rafka bench produce --num-records 1000000 --record-size 100 --batch-size 65536 --linger-ms 5\n",
    )
    consume = add_command(
        commands,
        "consume",
        _consume,
        "read records from the beginning of a topic",
        "  rafka bench consume --num-records 1000000 --partitions 3\n",
    )
    e2e = add_command(
        commands,
        "e2e",
        _e2e,
        "send one record at a time and wait for it to come back",
        "  rafka bench e2e --num-records 2000 --acks 1\n",
    )
    _add_common(produce, 100_000)
    _add_common(consume, 100_000)
    _add_common(e2e, 1_000)
    _add_producing(produce)
    _add_producing(e2e)
    produce.add_argument(
        "--throughput", type=float, default=-1, metavar="N", help="records per second (-1: as many as can be)"
    )
    produce.add_argument("--batch-size", type=int, default=16384, metavar="BYTES", help="default 16384")
    produce.add_argument("--linger-ms", type=float, default=5, metavar="MS", help="default 5, as in Kafka 4")
    produce.add_argument("--compression", choices=NAMES, default="none")
    consume.add_argument(
        "--fetch-size",
        type=int,
        default=1024 * 1024,
        metavar="BYTES",
        help="of a partition in one answer (1 MB)",
    )
    consume.add_argument(
        "--timeout", type=float, default=10, metavar="S", help="stop after so long without news (10)"
    )


def run(args: argparse.Namespace) -> int:
    if args.num_records < 1:
        raise CommandError(f"--num-records is at least 1, not {args.num_records}", 2)
    code: int = args.act(args)
    return code


def _add_common(parser: argparse.ArgumentParser, records: int) -> None:
    parser.add_argument(
        "--topic", default=DEFAULT_TOPIC, help=f"made where it is not there (default {DEFAULT_TOPIC})"
    )
    parser.add_argument("--partitions", type=int, default=1, metavar="N", help="of a topic that is made (1)")
    parser.add_argument("--num-records", type=int, default=records, metavar="N", help=f"how many ({records})")
    parser.add_argument(
        "--progress", type=float, default=5, metavar="S", help="seconds between reports (5); 0: none"
    )
    add_bootstrap(parser)


def _add_producing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record-size", type=int, default=100, metavar="BYTES", help="of the value (100)")
    parser.add_argument(
        "--acks", default="all", metavar="0|1|all", help="whose word to wait for (all, idempotent)"
    )


async def _topic(client: Client, args: argparse.Namespace) -> list[TopicPartition]:
    try:
        return await targets_of(client, args.topic)
    except UnknownTopic:
        [outcome] = await client.admin.create_topics([NewTopic(name=args.topic, partitions=args.partitions)])
        outcome.check()
        print(f"created topic {args.topic}", file=sys.stderr)
        return await targets_of(client, args.topic)


def _payloads(size: int) -> list[bytes]:
    return [bytes(random.choices(LETTERS, k=size)) for _ in range(PAYLOADS)]


# --- produce -------------------------------------------------------------------------


@attrs.define
class Watch:
    """Waits for batches and takes the time of each of their records."""

    nursery: trio.Nursery
    latencies: Latencies
    progress: Progress
    size: int
    under_way: dict[int, list[float]] = attrs.field(factory=dict)  # by batch: when its records were sent
    error: ClientError | None = None

    def sent(self, delivery: Delivery, at: float) -> None:
        started = self.under_way.get(id(delivery.batch))
        if started is None:
            started = self.under_way[id(delivery.batch)] = []
            self.nursery.start_soon(self._wait, delivery.batch, started)
        started.append(at)

    async def _wait(self, batch: Batch, started: list[float]) -> None:
        await batch.wait()
        now = trio.current_time()
        del self.under_way[id(batch)]
        if batch.error is not None:
            self.error = self.error or batch.error
            return
        for at in started:
            self.latencies.add((now - at) * 1000)
        self.progress.add(len(started), len(started) * self.size)


def _produce(args: argparse.Namespace) -> int:
    settings = {
        "acks": checked(parse_acks, args.acks),
        "batch_size": args.batch_size,
        "linger": args.linger_ms / 1000,
        "compression": NAMES.index(args.compression),
    }

    async def bench(client: Client) -> int:
        await _topic(client, args)
        began = trio.current_time()
        latencies, progress = Latencies(), Progress(began)
        async with trio.open_nursery() as nursery:
            if args.progress > 0:
                nursery.start_soon(_report, args.progress, progress, latencies)
            async with client.producer(**settings) as producer, trio.open_nursery() as watching:
                watch = Watch(watching, latencies, progress, args.record_size)
                await _send_all(args, producer, watch)
                await producer.flush()
            nursery.cancel_scope.cancel()
        if watch.error is not None:
            raise watch.error
        print(sentence(progress.records, progress.bytes, trio.current_time() - began, latencies))
        return DONE

    return run_connected(args, bench)


async def _send_all(args: argparse.Namespace, producer: Producer, watch: Watch) -> None:
    payloads = _payloads(args.record_size)
    began = trio.current_time()
    for number in range(args.num_records):
        value = payloads[number % PAYLOADS]
        at = trio.current_time()
        try:
            delivery = producer.send_nowait(args.topic, value)
        except trio.WouldBlock:
            delivery = await producer.send(args.topic, value)
        watch.sent(delivery, at)
        if args.throughput > 0:
            ahead = began + (number + 1) / args.throughput - at
            if ahead > PACE:
                await trio.sleep(ahead)
        if number % 64 == 63:
            if watch.error is not None:
                return
            await trio.lowlevel.checkpoint()


async def _report(period: float, progress: Progress, latencies: Latencies) -> None:
    """What was done since the last report, as often as was asked for."""
    while True:
        await trio.sleep(period)
        records, size, seconds = progress.since_last(trio.current_time())
        print(sentence(records, size, seconds, latencies.window(), percentiles=False), flush=True)


# --- consume -------------------------------------------------------------------------


def _consume(args: argparse.Namespace) -> int:
    async def bench(client: Client) -> int:
        targets = await targets_of(client, args.topic)
        settings = {"partition_max_bytes": args.fetch_size}
        starts = dict.fromkeys(targets, Beginning())
        began_at, began = time.time(), trio.current_time()
        progress = Progress(began)
        print(CONSUMED_HEADER)
        async with client.consumer(starts, **settings) as consumer:
            reported = began
            while progress.records < args.num_records:
                with trio.move_on_after(args.timeout) as silence:
                    chunk = await consumer.next_chunk()
                if silence.cancelled_caught:
                    print(f"no record for {args.timeout:g} s: the topic has no more", file=sys.stderr)
                    break
                progress.add(len(chunk.records), sum(len(one.value or b"") for one in chunk.records))
                now = trio.current_time()
                if 0 < args.progress <= now - reported:
                    reported = now
                    print(consumed_row(began_at, now - began, progress), flush=True)
        print(consumed_row(began_at, trio.current_time() - began, progress))
        return DONE

    return run_connected(args, bench)


# --- end to end ----------------------------------------------------------------------


def _e2e(args: argparse.Namespace) -> int:
    acks = checked(parse_acks, args.acks)

    async def bench(client: Client) -> int:
        [target, *_] = await _topic(client, args)
        latencies = Latencies()
        payloads = deque(_payloads(max(args.record_size, 1)))
        starts = {target: End()}
        async with client.consumer(starts) as consumer, client.producer(acks=acks, linger=0.0) as producer:
            reported = trio.current_time()
            for number in range(args.num_records):
                payloads.rotate()
                at = trio.current_time()
                await producer.send(args.topic, payloads[0], partition=target.partition)
                with trio.move_on_after(client.cluster.settings.request_timeout) as waited:
                    record = await anext(consumer)
                if waited.cancelled_caught:
                    raise CommandError(f"record {number + 1} did not come back")
                now = trio.current_time()
                if record.value != payloads[0]:
                    raise CommandError(f"another record came back: somebody else writes to {args.topic}")
                latencies.add((now - at) * 1000)
                if 0 < args.progress <= now - reported:
                    reported = now
                    print(f"{number + 1}\t{latencies.average:.4f}", flush=True)
        print(end_to_end(latencies))
        return DONE

    return run_connected(args, bench)
