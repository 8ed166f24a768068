"""What time alone decides: sessions end, a join phase is over, members that never synced are taken out."""

from __future__ import annotations

from .core import Cause, Core
from .events import Trigger
from .model import Decision, Moment, Token
from .rebalance import join_timeout, maybe_complete, prepare, rebalance_or_complete


def deadline_of(core: Core[Token]) -> float:
    return min(core.sessions.next, core.join_until, core.sync_until)


def tick(core: Core[Token], now: Moment) -> Decision[Token]:
    """Do all that is due. Afterwards the deadline lies in the future."""
    out: Decision[Token] = Decision()
    while deadline_of(core) <= now.at:
        if core.sessions.next <= now.at:
            _end_sessions(core, core.sessions.due(now.at), now, out)
        elif core.join_until <= now.at:
            join_timeout(core, now, out)
        else:
            _sync_timeout(core, now, out)
    return out


def _end_sessions(core: Core[Token], names: list[str], now: Moment, out: Decision[Token]) -> None:
    ids = [name for name in names if name in core.pending]
    core.pending.difference_update(ids)
    silent = [core.roster.by_id[name] for name in names if name in core.roster.by_id]
    if silent:
        core.remove(silent, now, out)
        cause = Cause(Trigger.SESSION_EXPIRED, silent[0].member_id)
        rebalance_or_complete(core, cause, now, out)
    elif ids:
        maybe_complete(core, now, out)


def _sync_timeout(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    late = [member for name, member in core.roster.by_id.items() if name in core.unsynced]
    core.remove(late, now, out)
    prepare(core, Cause(Trigger.SYNC_TIMED_OUT, late[0].member_id), now, out)
