"""kill -9 at random moments under load, again and again, on one data directory.

Whatever was acknowledged is there, once, at the offset that was told; whatever anybody read
stays; idempotent producers that never noticed the crash have written each record once and in
order. RAFKA_CRASH_ROUNDS says how often (100), RAFKA_CRASH_SEED repeats a run's moments.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .history import History
from .load import create_topic, load
from .witness import Witness

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

ROUNDS = int(os.environ.get("RAFKA_CRASH_ROUNDS", "100"))
SEED = int(os.environ.get("RAFKA_CRASH_SEED", str(random.randrange(1 << 32))))
TOPIC, PARTITIONS = "crash", 3


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
def test_nothing_acknowledged_is_lost_by_kill_9(durability: str, tmp_path: Path) -> None:
    moments = random.Random(f"{SEED} {durability}")
    history = History()
    witness = Witness(TOPIC, PARTITIONS, history)
    rounds = ROUNDS if durability == "fsync" else max(1, ROUNDS // 5)

    with RafkaProcess(tmp_path, durability=durability) as broker:
        # Segments of 1 MB, so that crashes meet rolls too.
        create_topic(broker.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": "1048576"})
        with load(broker.bootstrap, TOPIC, PARTITIONS, history):
            for round_ in range(rounds):
                time.sleep(moments.uniform(0.05, 1.0))
                broker.kill()
                until = history.acked_until()
                broker.start()
                assert witness.missing(broker, until) == [], f"round {round_}, seed {SEED}"

        found = witness.anomalies(broker)

    assert found == [], f"{len(found)} anomalies after {rounds} rounds, seed {SEED}: {found[:10]}"
    assert len(history.acked) > rounds * 20, "too little was acknowledged for the run to mean anything"
