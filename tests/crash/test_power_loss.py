"""Power loss: the disk keeps what was synced, and nothing else.

The broker writes to an ext4 on a loop device. At a random moment it is frozen, the device's
image is copied without a sync, and the next round goes on from the copy: a real file system, real
fsync, and a journal that is replayed. With fsync durability no acknowledged record, no topic and no
deletion may be missing, and nobody may have read what then vanished.

The last test is the control: in page-cache mode the same machinery must find losses, or it is blind.
RAFKA_POWER_LOSS_ROUNDS says how often (20), RAFKA_CRASH_SEED repeats a run's moments.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .asking import offset_of
from .disks import copy_as_power_loss_leaves_it, image_mounted, new_image
from .history import History
from .load import create_topic, delete_topic, load, send_and_wait, topics_of
from .witness import Witness

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

ROUNDS = int(os.environ.get("RAFKA_POWER_LOSS_ROUNDS", "20"))
SEED = int(os.environ.get("RAFKA_CRASH_SEED", str(random.randrange(1 << 32))))
TOPIC, PARTITIONS, MEGABYTES = "power", 2, 1024


class Outages:
    """One broker that lives through power losses: the disk changes under it, its port stays."""

    def __init__(self, home: Path, durability: str) -> None:
        self.home = home
        self.place = home / "disk"
        self.broker = RafkaProcess(home / "broker", durability=durability, data_dir=self.place / "data")
        self.number = 0
        new_image(self.image, MEGABYTES)

    @property
    def image(self) -> Path:
        return self.home / f"disk-{self.number}.img"

    @contextmanager
    def powered(self) -> Iterator[RafkaProcess]:
        """The broker runs inside the block; where the block ends the power goes."""
        before = self.image
        with image_mounted(before, self.place):
            try:
                self.broker.start()
                yield self.broker
                self.broker.freeze()
                self.number += 1
                copy_as_power_loss_leaves_it(before, self.image)
            finally:
                self.broker.close()
        before.unlink()


def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path) -> None:
    moments = random.Random(SEED)
    history = History()
    witness = Witness(TOPIC, PARTITIONS, history)
    outages = Outages(tmp_path, "fsync")

    with ExitStack() as clients:
        for round_ in range(ROUNDS):
            until = history.acked_until()
            with outages.powered() as broker:
                if round_ == 0:
                    create_topic(broker.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": "1048576"})
                    clients.enter_context(load(broker.bootstrap, TOPIC, PARTITIONS, history, plain=False))
                else:
                    there = topics_of(broker.bootstrap)
                    assert f"made-{round_ - 1}" in there, "a creation that was answered is undone"
                    assert f"gone-{round_ - 1}" not in there, "a deletion that was answered is undone"
                    assert witness.missing(broker, until) == [], f"round {round_}, seed {SEED}"
                create_topic(broker.bootstrap, f"gone-{round_}")
                delete_topic(broker.bootstrap, f"gone-{round_}")
                time.sleep(moments.uniform(0.1, 1.0))
                create_topic(broker.bootstrap, f"made-{round_}")
        with outages.powered() as broker:
            clients.close()
            found = witness.anomalies(broker)

    assert found == [], f"{len(found)} anomalies after {ROUNDS} outages, seed {SEED}: {found[:10]}"
    assert len(history.acked) > ROUNDS * 20, "too little was acknowledged for the run to mean anything"


def test_without_fsync_the_same_outage_loses_records(tmp_path: Path) -> None:
    outages = Outages(tmp_path, "page-cache")
    with outages.powered() as broker:
        create_topic(broker.bootstrap, TOPIC)
        assert send_and_wait(broker.bootstrap, TOPIC, 200) == 200

    with outages.powered() as broker:
        try:
            left = offset_of(broker.port, TOPIC, 0)
        except (LookupError, struct.error):
            left = 0  # not even the topic

    assert left < 200, "nothing was lost: this test could not see a loss if there were one"
