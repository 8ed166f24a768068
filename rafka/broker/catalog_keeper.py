"""The catalog keeper: the one task that decides which topics there are and how all is configured.

It goes round the four verbs of an actor:

    drain    take what came in
    decide   let the machines say what follows, with no await
    journal  make the facts durable, all of the round in one append
    answer   publish the facts for everybody to see, then send each reply

Deciding goes by its own copy of the catalogue, which is ahead of the published one by
the round that is being journaled: nobody sees a topic that a crash could take back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

import attrs
import trio

from ..errors import ErrorCode, KafkaError
from ..machines.catalog import Catalog, CatalogFact, TopicDeleted
from ..machines.features import FeatureLevelSet
from ..machines.topic_admin import TopicAdmin
from ..ops.base import Envelope, Later, Op, R
from ..ops.cluster import AlterConfigs, IncrementalAlterConfigs
from ..ops.features import Levels
from ..ops.topics import CreatePartitions, CreateTopics, DeleteTopics
from ..ops.txn import UpdateFeatures
from ..storage.backend import LogName
from ..storage.journal import Journal
from ..types import OrgId, TopicId
from .actor import Inbox, Waiter, answer_all
from .configs import ConfigKeeper
from .topics import Topics

log = logging.getLogger(__name__)

INBOX_SIZE: Final = 256  # past this, the connections that ask wait to hand in their letter


@attrs.frozen
class AutoCreate:
    """Topics that a client asked about and that are made for that. Nobody waits for it."""

    names: Sequence[str]


@attrs.frozen
class Letter:
    org: OrgId
    op: Op[Any] | AutoCreate
    waiter: Waiter | None


class CatalogKeeper:
    def __init__(
        self,
        catalog: Catalog,
        topics: Topics,
        admin: TopicAdmin,
        configs: ConfigKeeper,
        journal: Journal,
        discard: Callable[[Iterable[LogName]], None],
        forget: Callable[[TopicId], None],
    ) -> None:
        """`discard` is given the logs of a topic that was deleted, `forget` its id."""
        self.on_features: list[Callable[[Levels], None]] = []  # told of levels that were changed
        self._inbox: Inbox[Letter] = Inbox(INBOX_SIZE)
        self._catalog = catalog
        self._topics = topics
        self._admin = admin
        self._configs = configs
        self._journal = journal
        self._discard = discard
        self._forget = forget
        self._being_made: set[tuple[OrgId, str]] = set()

    def ask(self, envelope: Envelope, op: Op[R]) -> Later[R]:
        """Leave `op` in the inbox. Cancelling only stops the waiting."""
        waiter = self._inbox.waiter()
        return self._inbox.post(Letter(envelope.org_id, op, waiter), waiter)

    def auto_create(self, org: OrgId, names: Iterable[str]) -> None:
        """Have topics made that are not there. With a full inbox nothing happens: clients ask again."""
        wanted = [name for name in names if (org, name) not in self._being_made]
        if wanted and self._inbox.offer(Letter(org, AutoCreate(wanted), None)):
            self._being_made.update((org, name) for name in wanted)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        task_status.started()
        while True:
            letters = await self._inbox.drain()
            facts: list[CatalogFact] = []
            replies = [self._decide(letter, facts) for letter in letters]
            if facts:
                await self._journal.append(facts)
            self._publish(facts)
            answer_all(self._answers(letters, replies))

    def _decide(self, letter: Letter, facts: list[CatalogFact]) -> object:
        """What the letter comes to. Its facts are applied, so that the next letter sees them."""
        op = letter.op
        try:
            new, reply = self._handle(op, letter.org)
        except KafkaError as refused:
            return _refusal(op, refused.code, refused.message)
        except Exception:  # a mistake of ours must not end the broker: nothing has changed
            log.exception("%s failed", type(op).__name__)
            return _refusal(op, ErrorCode.UNKNOWN_SERVER_ERROR)
        for fact in new:
            self._catalog.apply(fact)
        facts += new
        return reply

    def _handle(self, op: Op[Any] | AutoCreate, org: OrgId) -> tuple[Sequence[CatalogFact], object]:
        match op:
            case CreateTopics():
                return self._admin.create(op, org)
            case DeleteTopics():
                return self._admin.delete(op, org)
            case CreatePartitions():
                return self._admin.grow(op, org)
            case AutoCreate():
                return self._admin.create_by_use(op.names, org), None
            case AlterConfigs():
                return self._configs.alter(op, org)
            case IncrementalAlterConfigs():
                return self._configs.alter_incrementally(op, org)
            case UpdateFeatures():
                return self._catalog.features.update(op)
        raise TypeError(f"{type(op).__name__} is not for the catalog keeper")

    def _publish(self, facts: Iterable[CatalogFact]) -> None:
        for fact in facts:
            if isinstance(fact, TopicDeleted):
                self._forget(self._topics.by_name(OrgId(fact.org), fact.name).topic.topic_id)
            self._discard(self._topics.publish(fact))
            if isinstance(fact, FeatureLevelSet):
                for told in self.on_features:
                    told(self._topics.catalog.features.published())

    def _answers(
        self, letters: Sequence[Letter], replies: Sequence[object]
    ) -> Iterator[tuple[Waiter, object]]:
        for letter, reply in zip(letters, replies, strict=True):
            if isinstance(letter.op, AutoCreate):
                self._being_made.difference_update((letter.org, name) for name in letter.op.names)
            elif letter.waiter is not None:
                yield letter.waiter, reply


def _refusal(op: Op[Any] | AutoCreate, code: ErrorCode, message: str | None = None) -> object:
    return None if isinstance(op, AutoCreate) else op.refusal(code, message)
