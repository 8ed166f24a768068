"""Disks to break: images on loop devices, and small file systems in memory.

All of it needs root. Each is a context manager that unmounts whatever happens inside, and a test
that may not mount skips with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def new_image(path: Path, megabytes: int) -> None:
    """An empty ext4 that occupies only what is written to it."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed")
    with path.open("wb") as image:
        image.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-F", path)


@contextmanager
def mounted(place: Path, *how: str | Path) -> Iterator[Path]:
    """`mount *how place`; skips where this machine allows no mounts."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place.mkdir(exist_ok=True)
    try:
        run("mount", *how, place)
    except OSError as error:
        pytest.skip(f"no mounts here: {error}")
    try:
        yield place
    finally:
        unmount(place)


def unmount(place: Path) -> None:
    """A process that was just killed may hold the mount for a moment longer."""
    for _ in range(50):
        if subprocess.run(["umount", str(place)], capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.1)
    run("umount", "-l", place)


def image_mounted(image: Path, place: Path) -> AbstractContextManager[Path]:
    return mounted(place, "-o", "loop", image)


def small_disk(place: Path, megabytes: int) -> AbstractContextManager[Path]:
    return mounted(place, "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs")


def copy_as_power_loss_leaves_it(image: Path, copy: Path) -> None:
    """What has reached the device, and nothing that only the page cache of the file system knows.

    Nobody syncs and nobody unmounts: to the copy it is as if the power had gone at this moment.
    """
    run("cp", "--sparse=always", "--reflink=never", image, copy)
