"""`rafka produce`: records from standard input or a file, one for each line."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections import deque
from collections.abc import Iterator
from io import FileIO
from typing import Final

import attrs
import trio

from ..client import Client, ClientError, Delivery, Producer
from ..client.delivery import parse_acks
from ..client.model import Headers
from ..records.compress import NAMES
from .connected import checked, key_value, run_connected
from .format import unescape
from .output import ASKED_WRONGLY, DONE, CommandError, add_bootstrap

DESCRIPTION = """\
Write records to a topic: one for each line of standard input, or of a file.

The letters are kcat's. The command ends when everything was acknowledged; the first record that
is refused ends it with an error. With --json each line is an object such as `rafka consume --json`
prints: key, value (or key_base64, value_base64), headers and timestamp count, where the record
came from does not.
"""

EXAMPLES = """\
  echo hello | rafka produce orders
  rafka produce orders                                type lines, end with Ctrl-D
  echo k1:v1 | rafka produce orders -K :              key and value
  rafka produce orders -l orders.txt -z zstd          the lines of a file
  rafka produce orders -k k1 -H source=cli -p 0 < x   one key, one header, one partition
  echo k1: | rafka produce orders -K : -Z             a tombstone
  rafka consume old --json | rafka produce new --json
"""

READ_SIZE: Final = 64 * 1024


@attrs.frozen
class Input:
    """One record as it was read."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-K", "--key-separator", metavar="SEP", help="what comes before SEP is the key")
    parser.add_argument("-k", "--key", help="the key of all records")
    parser.add_argument(
        "-H", "--header", action="append", default=[], metavar="NAME=VALUE", help="a header of all records"
    )
    parser.add_argument("-p", "--partition", type=int, metavar="N", help="write to this one (else by key)")
    parser.add_argument("-z", "--compression", choices=NAMES, default="none", help="codec of the batches")
    parser.add_argument(
        "--acks", default="all", metavar="0|1|all", help="whose word to wait for (default all, idempotent)"
    )
    parser.add_argument(
        "-D", "--delimiter", default="\\n", metavar="TEXT", help=r"what ends a record (default \n)"
    )
    parser.add_argument("-l", "--file", metavar="FILE", help="read this instead of standard input")
    parser.add_argument("--json", action="store_true", help="each line is a JSON object")
    parser.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    add_bootstrap(parser)


def run(args: argparse.Namespace) -> int:
    acks = checked(parse_acks, args.acks)
    headers: Headers = tuple(
        (name, value.encode()) for name, value in (checked(key_value, one) for one in args.header)
    )
    if args.json and (args.key_separator is not None or args.key is not None):
        raise CommandError("with --json the keys are in the JSON: leave out -K and -k", ASKED_WRONGLY)
    stream = _open(args.file)

    async def produce(client: Client) -> int:
        settings = {"acks": acks, "compression": NAMES.index(args.compression)}
        async with client.producer(**settings) as producer:
            await _send_all(args, producer, stream, headers)
        return DONE

    return run_connected(args, produce)


def _open(path: str | None) -> FileIO:
    """Unbuffered: a buffer has a lock, which a thread left behind in a read would keep to the end."""
    if path is None or path == "-":
        return FileIO(sys.stdin.fileno(), closefd=False)
    try:
        return FileIO(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error


async def _send_all(args: argparse.Namespace, producer: Producer, stream: FileIO, headers: Headers) -> None:
    """Reading waits in a thread, which Ctrl-C leaves behind."""
    under_way: deque[Delivery] = deque()
    splitter = Splitter(unescape(args.delimiter))
    sent = 0
    while data := await trio.to_thread.run_sync(stream.read, READ_SIZE, abandon_on_cancel=True):
        for line in splitter.feed(data):
            sent += 1
            under_way.append(await _send(args, producer, line, headers, sent))
        _check(under_way, sent)
    if splitter.rest:
        sent += 1
        under_way.append(await _send(args, producer, splitter.rest, headers, sent))
    await producer.flush()
    _check(under_way, sent)


async def _send(
    args: argparse.Namespace, producer: Producer, line: bytes, headers: Headers, number: int
) -> Delivery:
    try:
        record = _record(args, line)
    except ValueError as error:
        raise CommandError(f"record {number}: {error}") from error
    return await producer.send(
        args.topic,
        record.value,
        key=record.key,
        headers=(*headers, *record.headers),
        partition=args.partition,
        timestamp=record.timestamp,
    )


def _check(under_way: deque[Delivery], sent: int) -> None:
    """Forget what arrived; end at the first that did not."""
    while under_way and under_way[0].done:
        try:
            under_way.popleft().result()
        except ClientError as error:
            raise CommandError(f"not all of {sent} records were written: {error}") from error


@attrs.define
class Splitter:
    """Feed bytes in, take out what stands between the delimiters."""

    delimiter: bytes
    rest: bytes = b""  # what has no delimiter behind it yet

    def feed(self, data: bytes) -> list[bytes]:
        *whole, self.rest = (self.rest + data).split(self.delimiter)
        return whole


def _record(args: argparse.Namespace, line: bytes) -> Input:
    if args.json:
        return from_json(line)
    key = None if args.key is None else args.key.encode()
    value: bytes | None = line
    if args.key_separator is not None:
        first, separator, last = line.partition(unescape(args.key_separator))
        if separator:
            key, value = first, last
    if args.null:
        key, value = key or None, value or None
    return Input(key, value)


def from_json(line: bytes) -> Input:
    """A record from a line of `rafka consume --json`. ValueError where it is none."""
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("not a JSON object")
    timestamp = given.get("timestamp")
    if timestamp is not None and not isinstance(timestamp, int):
        raise ValueError(f"not a timestamp in milliseconds: {timestamp!r}")
    return Input(
        _bytes(given, "key"),
        _bytes(given, "value"),
        tuple(_headers(given.get("headers") or [])),
        timestamp,
    )


def _headers(given: object) -> Iterator[tuple[str, bytes | None]]:
    """A list of key and value as it is printed, or an object with a value for each key."""
    if isinstance(given, dict):
        given = [{"key": name, "value": value} for name, value in given.items()]
    if not isinstance(given, list):
        raise ValueError("headers are a list or an object")
    for one in given:
        if not isinstance(one, dict) or not isinstance(one.get("key"), str):
            raise ValueError(f"not a header: {one!r}")
        yield one["key"], _bytes(one, "value")


def _bytes(given: dict[str, object], name: str) -> bytes | None:
    packed = given.get(f"{name}_base64")
    if isinstance(packed, str):
        return base64.b64decode(packed, validate=True)
    value = given.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()
