"""Logs in Kafka's segment files, on one disk.

`backend` is the way in. A log is `written` and `reading`, put together in `log`; its way
down is `segment` (one file), `index` and `scan` (the batches in it), `rafka.env.disk`.
Beside it: `flusher` makes durable, `marks` is the checkpoint file, `recovery` brings a
folder in order at the start, `swap` and `leftovers` change the names of files so that
no crash finds half of a change.
"""

from .backend import EmbeddedBackend
from .config import DataDirLocked, EmbeddedConfig, UnknownFormat

__all__ = ["DataDirLocked", "EmbeddedBackend", "EmbeddedConfig", "UnknownFormat"]
