"""Holds the documentation to what it says: its links lead somewhere, its Python runs.

    python scripts/check_docs.py

Every relative link of every page must lead to a file. The Python examples of the pages named in EXAMPLES
are run, each in a fresh interpreter, against a broker in memory that takes the place of localhost:9092.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = (
    "README.md",
    "docs/tutorial/first-broker.md",
    "docs/howto/use-in-ci.md",
    "docs/howto/consume-in-a-group.md",
)
ADDRESS: Final = "localhost:9092"
LINK: Final = re.compile(r"\[[^\]]*\]\((?!https?:|#)([^)#\s]+)")
PYTHON: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("newsfragments/README.md")])


def broken_links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [
        f"{page.relative_to(ROOT)}: no such page: {link}"
        for link in LINK.findall(text)
        if not (page.parent / link).exists()
    ]


@contextmanager
def broker_in_memory() -> Iterator[str]:
    """The address of a broker that is there for the length of the block."""
    with tempfile.TemporaryDirectory() as folder:
        port, log = Path(folder) / "port", Path(folder) / "log"
        command = [sys.executable, "-m", "rafka", "serve", "--storage", "memory:"]
        command += ["--listen", "127.0.0.1:0", "--port-file", str(port)]
        with log.open("wb") as out:
            process = subprocess.Popen(command, env=environment(), stdout=out, stderr=out)
        try:
            while not (port.exists() and port.read_text().strip()):
                if process.poll() is not None:
                    raise SystemExit(f"the broker for the examples does not start:\n{log.read_text()}")
                time.sleep(0.02)
            yield f"127.0.0.1:{port.read_text().split()[0]}"
        finally:
            process.terminate()
            process.wait()


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def failing_examples(page: Path) -> list[str]:
    """Each page gets a broker of its own; its examples run one after the other."""
    failed = []
    with broker_in_memory() as address:
        for number, example in enumerate(PYTHON.findall(page.read_text()), 1):
            source = example.replace(ADDRESS, address)
            command = [sys.executable, "-W", "error::SyntaxWarning", "-c", source]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=60, check=False, env=environment()
            )
            where = f"{page.relative_to(ROOT)}, example {number}"
            if done.returncode or not done.stdout.strip():
                failed.append(f"{where} fails:\n{done.stdout}{done.stderr}")
            else:
                print(f"{where}:\n  " + done.stdout.strip().replace("\n", "\n  "))
    return failed


def main() -> int:
    wrong = [problem for page in pages() for problem in broken_links(page)]
    wrong += [problem for name in EXAMPLES for problem in failing_examples(ROOT / name)]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
