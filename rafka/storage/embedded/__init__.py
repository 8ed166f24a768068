"""Logs in Kafka's segment files, on one disk.

`backend` is the way in. A log's way down: `log` (appends and reads) → `segment` (one
file) → `index`, `scan` (batches in it) → `rafka.env.disk`. Beside it: `flusher` makes
durable, `marks` is the checkpoint file, `recovery` brings a folder in order at the
start, `swap` and `leftovers` change files' names so that no crash finds a half of it.
"""

from .backend import EmbeddedBackend
from .config import DataDirLocked, EmbeddedConfig, UnknownFormat

__all__ = ["DataDirLocked", "EmbeddedBackend", "EmbeddedConfig", "UnknownFormat"]
