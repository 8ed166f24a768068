"""What a broker process asks of the machine before it starts."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

READ_AND_LET_GO = """
import resource
from rafka import daemon

if {warm}:
    daemon._keep_memory_warm()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for _ in range(3):
    replies = [bytearray(1 << 20) for _ in range(20)]
    del replies
before = faults()
for _ in range(10):
    replies = [bytearray(1 << 20) for _ in range(20)]
    del replies
print(faults() - before)
"""


def page_faults(warm: bool) -> int:
    script = READ_AND_LET_GO.format(warm=warm)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="malloc is not glibc's here")
def test_large_replies_take_memory_that_is_there_already() -> None:
    """200 MB by itself are 51,200 pages, got from the kernel again and again."""
    assert page_faults(warm=True) < 1000
    assert page_faults(warm=False) > 10_000, "else there is no need for it any more"
