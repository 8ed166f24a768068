"""The checkpoint file, as far as its own reading goes."""

from __future__ import annotations

import random

import msgpack
import pytest

from rafka.env.sim_disk import SimDisk
from rafka.records.checksum import checksum
from rafka.storage.embedded import marks


@pytest.mark.parametrize(
    "body",
    [
        msgpack.packb((1, True, True)) + msgpack.packb(("topics/a/0", 0, 0, [], [[1, 2, 3]])),
        msgpack.packb((1, True, True)) + msgpack.packb(7),
        msgpack.packb("nothing of the kind"),
        b"",
    ],
)
def test_a_checkpoint_of_another_shape_is_as_good_as_none(body: bytes) -> None:
    """Its checksum is right, and what it says is for another version: all logs are walked instead."""
    disk = SimDisk(random.Random(1))
    disk.make_dir("/data")
    marks.replace_file(disk, "/data", marks.CHECKPOINT, checksum(body).to_bytes(4, "big") + body)

    assert marks.load(disk, "/data") is None
