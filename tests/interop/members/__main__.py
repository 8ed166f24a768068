"""`python -m tests.interop.members LIBRARY PLAN`: a member in a process of its own, its diary on stdout.

It leaves when its standard input ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading

import attrs
import cattrs

from .diary import Entry, Pen, Plan
from .group import member_of


def main(library: str, words: str) -> None:
    plan = cattrs.structure(json.loads(words), Plan)
    # What the library itself prints is not for the diary.
    diary = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    stop = threading.Event()

    def write(entry: Entry) -> None:
        told = attrs.asdict(entry) | {"partitions": sorted(entry.partitions)}
        diary.write(json.dumps(told) + "\n")

    def wait_for_the_end() -> None:
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    member_of(library, plan)(plan, Pen(plan.name, write), stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
