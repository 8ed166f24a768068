"""A process that consumes, transforms and produces in transactions until it is killed.

    python -m tests.interop.transacting.worker LIBRARY BOOTSTRAP SOURCE TARGET GROUP NAME

It tells of each transaction with a line on its standard output.
"""

from __future__ import annotations

import sys

from .vocabulary import library_called


def main(name: str, *places: str) -> None:
    bootstrap, source, target, group, transactional_id = places
    for count in library_called(name).work(bootstrap, source, target, group, transactional_id):
        print(count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
