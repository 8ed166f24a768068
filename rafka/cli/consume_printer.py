"""What `rafka consume` prints records with, and says things beside them."""

from __future__ import annotations

import argparse
import sys
from typing import BinaryIO, Final

import attrs

from ..client import Chunk, TopicPartition
from .format import Formatter

COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"


@attrs.define
class Printer:
    """Writes records, and knows when it is enough."""

    out: BinaryIO
    write: Formatter
    ends: dict[TopicPartition, int]  # where each partition stops; those not here go on for ever
    left: int | None  # records still wanted
    flush_each: bool = False
    printed: int = 0

    def print(self, chunk: Chunk) -> int:
        """The offset to go on from."""
        topic, partition = chunk.target
        end = self.ends.get(chunk.target)
        following = chunk.next_offset
        for record in chunk.records:
            if self.left == 0 or (end is not None and record.offset >= end):
                following = record.offset
                break
            self.out.write(self.write(topic, partition, record))
            self.printed += 1
            if self.left is not None:
                self.left -= 1
            if self.flush_each:
                self.out.flush()
        self.out.flush()
        return following


def note(args: argparse.Namespace, text: str) -> None:
    """Say something on standard error, unless --quiet."""
    if not args.quiet:
        print(f"% {text}", file=sys.stderr)
