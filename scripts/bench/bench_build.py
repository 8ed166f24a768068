"""Builds the C clients, once per version of their source, against the librdkafka that is there.

The one inside the confluent-kafka wheel is taken first (it is the newest), else the system's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent


def librdkafka() -> list[str]:
    """What the linker is told."""
    found = importlib.util.find_spec("confluent_kafka")
    if found is not None and found.origin is not None:
        folder = Path(found.origin).parent.parent / "confluent_kafka.libs"
        for library in sorted(folder.glob("librdkafka-*.so*")):
            return [
                f"-L{folder}",
                f"-l:{library.name}",
                f"-Wl,-rpath,{folder}",
                "-Wl,--allow-shlib-undefined",
            ]
    return ["-lrdkafka"]


def built(name: str) -> Path:
    """The program made of scripts/bench/`name`.c."""
    if (compiler := shutil.which("gcc") or shutil.which("cc")) is None:
        raise SystemExit("the bench needs a C compiler")
    libraries = librdkafka() if name == "stream" else []
    sources = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.[ch]")))
    mark = hashlib.sha256(sources + " ".join(libraries).encode()).hexdigest()[:12]
    program = Path(tempfile.gettempdir()) / f"rafka-bench-{name}-{mark}"
    if not program.exists():
        part = program.with_suffix(".part")
        command = [
            compiler,
            "-O2",
            "-Wall",
            "-o",
            str(part),
            str(HERE / f"{name}.c"),
            *libraries,
            "-lpthread",
        ]
        subprocess.run(command, check=True)
        part.rename(program)
    return program
