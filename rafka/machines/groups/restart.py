"""After a restart: a group goes on from what was kept, as if its members had just been heard from.

Members that come back within their session timeout go on without a rebalance. Where some of the
last stable generation had gone already and the next one had not formed, it has to form now: their
partitions would be nobody's.
"""

from __future__ import annotations

from .core import Cause, Core
from .events import Trigger
from .model import Decision, Moment, State, Token
from .rebalance import prepare, subscriptions_of
from .roster import Member


def resume(core: Core[Token], now: Moment) -> Decision[Token]:
    """Called once, on a group that facts have been applied to and nobody has asked anything yet."""
    out: Decision[Token] = Decision()
    kept = core.kept
    core.generation, core.protocol_type = kept.generation, kept.protocol_type
    core.before = dict(kept.members)
    if not kept.members:
        return out
    core.protocol_name = kept.protocol_name
    for settled in kept.members.values():
        member: Member[Token] = Member.returned(settled)
        core.roster.add(member)
        core.heard_from(member, now)
    core.leader = kept.leader if kept.leader in kept.members else next(iter(kept.members))
    core.subscriptions = subscriptions_of(core)
    core.state = State.STABLE
    if kept.removed:
        prepare(core, Cause(Trigger.RESTARTED), now, out)
    elif len(core.roster) > core.rules.max_size:
        prepare(core, Cause(Trigger.GROUP_TOO_LARGE), now, out)
    return out
