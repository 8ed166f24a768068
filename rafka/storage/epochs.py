"""The leader epochs of a log: which epoch each stretch of offsets was written in.

A list of (epoch, first offset), both ascending. Clients use it to notice that a log
was cut (KIP-320); Kafka keeps it in a text file beside the segments, whose format
this module reads and writes.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias

Epochs: TypeAlias = list[tuple[int, int]]

_FORMAT = 0


def epoch_at(epochs: Epochs, offset: int) -> int:
    """The epoch of an offset; -1 below the first one that is known."""
    index = bisect_right(epochs, offset, key=lambda entry: entry[1])
    return epochs[index - 1][0] if index else -1


def cut_head(epochs: Epochs, start: int) -> None:
    """Forget what lies below `start`. The epoch that `start` lies in now begins there."""
    below = bisect_right(epochs, start, key=lambda entry: entry[1])
    if below:
        epochs[:below] = [(epochs[below - 1][0], start)]


def cut_tail(epochs: Epochs, end: int) -> None:
    """Forget the epochs that begin at `end` or above: their batches are gone."""
    while epochs and epochs[-1][1] >= end:
        epochs.pop()


def grow(epochs: Epochs, epoch: int, offset: int) -> None:
    """Note the epoch of a batch. One that is not newer than the last changes nothing.

    An epoch that begins where the last one began takes its place: that one has no batch.
    """
    if epochs and epoch <= epochs[-1][0]:
        return
    cut_tail(epochs, offset)
    epochs.append((epoch, offset))


def to_text(epochs: Epochs) -> bytes:
    """Kafka's leader-epoch-checkpoint: a version, a count, a line for each."""
    lines = [str(_FORMAT), str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs)]
    return ("\n".join(lines) + "\n").encode()


def from_text(text: bytes) -> Epochs:
    """The reverse. ValueError where it is not such a file, or a line of it is missing."""
    lines = text.decode("ascii").splitlines()
    if len(lines) < 2 or int(lines[0]) != _FORMAT or int(lines[1]) != len(lines) - 2:
        raise ValueError("not a leader epoch checkpoint")
    epochs = [(int(epoch), int(offset)) for epoch, offset in (line.split() for line in lines[2:])]
    if epochs != sorted(set(epochs)):
        raise ValueError("the epochs do not ascend")
    return epochs
