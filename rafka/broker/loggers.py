"""The broker's loggers, as admin clients see and set them: Kafka's words for Python's levels."""

from __future__ import annotations

import logging
from typing import Final

ROOT: Final = "root"
OURS: Final = "rafka"

_TO_PYTHON: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def kafka_levels() -> dict[str, str]:
    """Each logger with the level that counts for it."""
    names = [OURS, *sorted(name for name in logging.root.manager.loggerDict if name.startswith(OURS + "."))]
    levels = {name: _word(logging.getLogger(name).getEffectiveLevel()) for name in names}
    return {ROOT: _word(logging.root.getEffectiveLevel()), **levels}


def set_level(name: str, word: str | None) -> None:
    """Set a logger's level; None lets it go by its parent again."""
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(_TO_PYTHON[word] if word is not None else logging.NOTSET)


def _word(level: int) -> str:
    """The least word that lets this level through."""
    for word, number in _TO_PYTHON.items():
        if level <= number:
            return word
    return "FATAL"
