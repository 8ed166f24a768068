"""The two things about Trio's loop that it does not tell: what it sleeps on, and whether a task can run.

They are looked at, and nothing is changed. Where a version of Trio keeps them elsewhere, or waits by
other means than epoll, there is nothing to see, and the gateway does without: slower, not otherwise.
"""

from __future__ import annotations

from collections.abc import Sized

import attrs


@attrs.frozen
class Inside:
    epoll_fd: int  # readable when anything happens that Trio's loop waits for, deadlines excepted
    runnable: Sized  # tasks


def look_inside() -> Inside | None:
    try:
        from trio._core._run import GLOBAL_RUN_CONTEXT

        runner = GLOBAL_RUN_CONTEXT.runner
        return Inside(runner.io_manager._epoll.fileno(), runner.runq)
    except (ImportError, AttributeError):
        return None
