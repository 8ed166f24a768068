"""Kafka's own message definitions, as JSON, where somebody has put them.

`RAFKA_KAFKA_MESSAGES` names the folder; without it, one beside the repository is
looked for. Kafka keeps them under clients/src/main/resources/common/message.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "kafka-messages"


def folder() -> Path:
    return Path(os.environ.get("RAFKA_KAFKA_MESSAGES") or BESIDE)


def load(name: str) -> dict[str, Any]:
    """The definition of a message, such as `FetchRequest`. Skips the test where there is none."""
    path = folder() / f"{name}.json"
    if not path.exists():
        pytest.skip(f"Kafka's message definitions are not at {folder()} (RAFKA_KAFKA_MESSAGES names them)")
    without_comments = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    definition: dict[str, Any] = json.loads(without_comments)
    return definition


def versions(text: str) -> range:
    """`0-3`, `2+`, `7` or `none`."""
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), 2**15)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
