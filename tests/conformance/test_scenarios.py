"""The wire probe's scenarios, played to a fresh rafka and compared with Apache Kafka's answers.

The probe is a neighbour of this repository, not a part of it: RAFKA_PROBE names its folder, or
it lies at ../shared/probe, or these tests skip. Each theme of scenarios is one test. What differs on
purpose is named, with its reason, in docs/reference/differences.md; any other difference fails,
and so does a listed one that has ceased to be.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.brokers import EXTERNAL, ROOT, Broker, ExternalBroker, RafkaProcess

pytestmark = pytest.mark.conformance

PROBE: Final = Path(os.environ.get("RAFKA_PROBE") or ROOT.parent / "shared" / "probe")
DIFFERENCES: Final = ROOT / "docs" / "reference" / "differences.md"
THEMES: Final = {
    "V": "versions",
    "L": "logs",
    "F": "fetching",
    "T": "topics",
    "C": "configurations",
    "I": "idempotence",
    "X": "transactions",
    "H": "hostile input",
    "G": "groups",
    "GJ": "joining",
    "GR": "rebalancing",
    "GS": "assignments",
    "GH": "heartbeats",
    "GL": "leaving",
    "GT": "static members",
    "GO": "committing offsets",
    "GF": "fetching offsets",
    "GA": "administration of groups",
    "GC": "cooperative consumers",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if not (PROBE / "probe.py").exists():
        pytest.skip(f"no wire probe at {PROBE}; RAFKA_PROBE may name its folder")
    if EXTERNAL:
        yield ExternalBroker(EXTERNAL)
        return
    settings = {"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true"}
    home = tmp_path_factory.mktemp("conformance")
    with RafkaProcess(home, durability="page-cache", env=settings) as process:
        yield process


def probe(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROBE / "probe.py"), *args]
    # The probe may lie where nothing can be written: it shall not try to leave its bytecode there.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)


@pytest.mark.parametrize("theme", THEMES, ids=THEMES.values())
def test_answers_are_apache_kafka_s(broker: Broker, theme: str, tmp_path: Path) -> None:
    answers = tmp_path / "answers.json"
    scenarios = f"{theme}-*"

    ran = probe("run", "--broker", broker.bootstrap, "--only", scenarios, "--out", str(answers))
    assert ran.returncode == 0, ran.stderr

    known = ["--known", str(DIFFERENCES)] if DIFFERENCES.exists() else []
    told = probe("diff", str(PROBE / "expected.json"), str(answers), "--only", scenarios, "-v", *known)
    print(told.stdout)
    assert told.returncode == 0, told.stdout + told.stderr
