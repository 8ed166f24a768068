"""A broker or a gateway as a process: its signals, and how it ends.

SIGTERM or SIGINT: what was taken in is answered, the logs are flushed, exit code 0,
within `shutdown.grace.ms`; a thread sees to it even if the loop hangs. A second signal
ends the process at once. A storage that failed ends it at once as well, without another
sync: one that follows a failed one reports success, with the data lost.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NoReturn, TypeVar

import trio

from .config import Config, ConfigError
from .link import LinkMismatch
from .observe.exporting import exporting
from .storage.backend import StorageFailed
from .storage.embedded.config import DataDirLocked
from .storage.journal import JournalDamaged

log = logging.getLogger(__name__)

ENDED_IN_ORDER: Final = 0
COULD_NOT_START: Final = 1
STORAGE_FAILED: Final = 3
INTERRUPTED: Final = 130
TOO_SLOW: Final = 4
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
COULD_BE_TOLD: Final = (ConfigError, DataDirLocked, StorageFailed, JournalDamaged, LinkMismatch, OSError)

# From glibc's malloc.h: what is settled for all of malloc, and so for every large `bytes`.
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
KEPT_WARM: Final = 64 << 20
LARGEST_WARM: Final = 32 << 20  # and the largest that malloc lets one say

T = TypeVar("T")


def main(
    config: Config, opened: Callable[[Config], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> int:
    """Run what `opened` opens until a signal comes, having called `ready` once it serves; the exit code."""
    _take_all_handles()
    _keep_memory_warm()
    try:
        with exporting(os.environ):
            trio.run(_serve, config, opened, ready, strict_exception_groups=True)
    except BaseExceptionGroup as group:
        return _told(group)
    except COULD_BE_TOLD as error:
        return _told(error)
    return ENDED_IN_ORDER


async def _serve(
    config: Config, opened: Callable[[Config], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> None:
    stop = trio.Event()
    opening = trio.CancelScope()

    async def await_signal(*, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            await signals.__anext__()
            log.info("stopping: answering what was asked, then closing")
            for number in SIGNALS:
                signal.signal(number, _end_now)
            _start_watchdog(config.broker.shutdown_grace_ms / 1000)
            stop.set()
            if not serving:
                opening.cancel()  # there is nothing to answer yet, and nothing to flush
            await trio.sleep_forever()  # until the end a second signal is none of Python's

    serving = False
    async with trio.open_nursery() as waiting:
        await waiting.start(await_signal)
        try:
            with opening:
                async with opened(config) as running:
                    serving = True
                    _quieten_garbage_collection()
                    ready(running)
                    await stop.wait()
        except* StorageFailed as failed:
            _die_of_storage(failed)
        waiting.cancel_scope.cancel()
    log.info("stopped")


def _take_all_handles() -> None:
    """Connections and segment files each need one, and the usual soft limit is far below the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _keep_memory_warm() -> None:
    """Keep what large replies were read into, for the next ones.

    By itself malloc gives each of them back to the kernel at once, and gets it again page by page,
    filled with zeros: that costs more than to read and to send it. One arena, so that what a thread
    has read into serves the next reader as well.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # not everywhere is malloc glibc's
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGEST_WARM)
        mallopt(M_TRIM_THRESHOLD, KEPT_WARM)


def _quieten_garbage_collection() -> None:
    """What the start has made stays: the collector need not look at it again, nor so often at the rest."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


# --- the end -----------------------------------------------------------------------------


def _end_now(number: int, _: object) -> NoReturn:
    os._exit(128 + number)


def _start_watchdog(grace: float) -> None:
    def bark() -> None:
        time.sleep(grace)
        print(f"rafka: not stopped within {grace:g} s: ending now", file=sys.stderr, flush=True)
        os._exit(TOO_SLOW)

    threading.Thread(target=bark, name="shutdown watchdog", daemon=True).start()


def _die_of_storage(failed: BaseException) -> NoReturn:
    print(f"rafka: {_first(failed)}: ending at once, and nothing more is acknowledged", file=sys.stderr)
    sys.stderr.flush()
    os._exit(STORAGE_FAILED)


def _told(error: BaseException) -> int:
    """One line for the person at the console."""
    first = _first(error)
    if isinstance(first, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(first, COULD_BE_TOLD):
        print(f"rafka: {first}", file=sys.stderr)
        return STORAGE_FAILED if type(first) is StorageFailed else COULD_NOT_START
    raise error


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
