"""The lines that rafka writes about itself: text as Kafka's brokers write it, or JSON for machines.

    [2026-11-18 07:00:00,123] INFO [conn_id=7 client_id=app] closed: it sent nothing (rafka.gateway)
    {"ts": "2026-11-18T07:00:00.123Z", "level": "INFO", "logger": "rafka.gateway", "msg": ..., "conn_id": 7}

Whatever came from outside is made harmless here, in one place: a client's name cannot end a line,
move a cursor, or turn the reading direction of what follows.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

from .text import plain

LEVELS: Final[Mapping[str, str]] = {"WARNING": "WARN", "CRITICAL": "FATAL"}

_USUAL: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def set_up(style: str, level: str, *, node_id: int | None = None, stream: TextIO | None = None) -> None:
    """Write log lines to the stream, stderr unless said otherwise, and to nothing else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(node_id) if style == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.raiseExceptions = False  # a log that cannot be written must not stop the broker
    logging.captureWarnings(True)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about = " ".join(f"{key}={value}" for key, value in _extras(record))
        text = plain(f"[{about}] {record.getMessage()}" if about else record.getMessage())
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = LEVELS.get(record.levelname, record.levelname)
        line = f"[{at},{int(record.msecs):03}] {level} {text} ({record.name})"
        trace = _trace(self, record)
        return f"{line}\n{trace}" if trace else line


class JsonLines(logging.Formatter):
    def __init__(self, node_id: int | None = None) -> None:
        super().__init__()
        self._fixed: dict[str, Any] = {} if node_id is None else {"node_id": node_id}

    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "ts": f"{at}.{int(record.msecs):03}Z",
            "level": LEVELS.get(record.levelname, record.levelname),
            "logger": record.name,
            "msg": record.getMessage(),
            **self._fixed,
            **dict(_extras(record)),
        }
        if trace := _trace(self, record):
            line["trace"] = trace
        return json.dumps(line, default=str)  # ASCII only: nothing in it can act on a terminal


def _extras(record: logging.LogRecord) -> Iterator[tuple[str, Any]]:
    """What the caller gave as `extra`."""
    return ((key, value) for key, value in record.__dict__.items() if key not in _USUAL)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info:
        parts.append(formatter.formatException(record.exc_info))
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join("\n".join(plain(line) for line in part.splitlines()) for part in parts)
