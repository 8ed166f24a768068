"""CRC-32C, whichever way the library is loaded."""

from __future__ import annotations

import subprocess
import sys

import crc32c
import pytest

from rafka.records import checksum as room
from rafka.records.checksum import checksum


def test_it_is_the_sum_of_the_standard() -> None:
    """RFC 3720, appendix B.4."""
    assert checksum(bytes(32)) == 0x8A9136AA
    assert checksum(b"\xff" * 32) == 0x62A8AB43
    assert checksum(memoryview(bytes(range(32)))) == 0x46DD794E


def test_it_goes_on_from_an_earlier_one() -> None:
    assert checksum(b"789", checksum(b"123456")) == checksum(b"123456789") == crc32c.crc32c(b"123456789")


def test_without_the_extension_at_its_place_the_package_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_crc32c", None)
    monkeypatch.setattr(room, "extension", lambda: None)

    assert checksum(b"123456789") == 0xE3069283


def test_a_start_does_not_pay_for_what_the_package_imports() -> None:
    script = "import sys; from rafka.records.checksum import checksum; checksum(b''); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "importlib.metadata" not in run.stdout.split()
