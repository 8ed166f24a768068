"""Lets tox find the interpreters that pyenv keeps, whether or not its shims know them.

A shim of pyenv answers for `python3.13` only where that version was made global. The folders below
~/.pyenv/versions (or $PYENV_ROOT) hold the interpreters themselves: newest first, they are put on
the PATH that tox searches, before the shims that would only say no.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def pyenv_folders() -> list[Path]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [
        (tuple(map(int, version.name.split("."))), version / "bin")
        for version in root.glob("versions/*")
        if re.fullmatch(r"3(\.\d+)+", version.name) and (version / "bin").is_dir()
    ]
    return [folder for _, folder in sorted(found, reverse=True)]


os.environ["PATH"] = os.pathsep.join([*map(str, pyenv_folders()), os.environ.get("PATH", "")])
