"""What an operator may set of the embedded backend, and what can be wrong with its folder."""

from __future__ import annotations

from ...types import message
from ..backend import StorageFailed

FORMAT = 1  # of the data directory; a broker refuses to open a newer one


@message
class EmbeddedConfig:
    """Defaults fit one disk that is shared with nobody much."""

    durable: bool = True  # acks=all waits for the disk; else for the page cache, as Kafka does by default
    reserve_bytes: int = 64 << 20  # appends are refused while less than this is free,
    reserve_percent: float = 5.0  # or less than this share of the disk, whichever is smaller
    max_open_files: int = 512
    max_loaded_indexes: int = 1024
    checkpoint_bytes: int = 64 << 20  # appended to one log: so much at most is walked after a crash
    checkpoint_interval: float = 60.0  # seconds between checkpoints, while anything is appended


class DataDirLocked(Exception):
    """Another process uses the folder."""

    def __init__(self, path: str, pid: str) -> None:
        super().__init__(
            f"the data directory {path} is in use by process {pid or '(unknown)'}: stop it, or choose another"
            " with --data-dir"
        )
        self.path = path
        self.pid = pid


class UnknownFormat(StorageFailed):
    """The folder was written by a newer rafka, or is not one of rafka's."""
