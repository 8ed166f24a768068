"""`rafka cluster` calls APIs by Kafka's names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rafka.cli.cluster import OTHER_APIS, api_name
from rafka.wire.apis import APIS

schemas = pytest.importorskip("kafka.protocol.schemas", reason="kafka-python before 3 has no names of APIs")


def test_every_api_has_the_name_that_kafka_python_knows() -> None:
    folder = Path(schemas.__path__[0])
    theirs = {}
    for path in folder.rglob("*Request.json"):
        text = path.read_text()
        key, name = re.search(r'"apiKey": (\d+)', text), re.search(r'"name": "(\w+)Request"', text)
        if key and name:
            theirs[int(key[1])] = name[1]

    ours = {key: api_name(key) for key in {*OTHER_APIS, *APIS}}

    known = theirs.keys() & ours.keys()
    assert len(known) > 50
    assert {key: ours[key] for key in known} == {key: theirs[key] for key in known}
    assert api_name(12345) is None
