"""Those of a world of groups who are no members: who writes, who looks, who commits without a group.

The supplier writes the records that members go forward by, so that committed offsets can be held
against the ends of logs. The simple committer has a topic of its own that it deletes and makes again.
Topics are told apart by their ids: what was committed to the one that is gone must never be seen as
the new one's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import trio

from rafka.client.model import TopicPartition
from rafka.errors import ErrorCode
from rafka.records.build import build
from rafka.records.record import Record
from rafka.types import TopicId
from rafka.wire.apis.delete_topics import DELETE_TOPICS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.list_offsets import LIST_OFFSETS
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.produce import PRODUCE

from . import group_wire as wires
from .clients import CODES, Client, Topic, create_topic
from .group_history import Committed, Fetched, GroupHistory, LogEnd, Place, Told
from .group_profile import TOPICS
from .group_wire import Who
from .history import History
from .wire_client import GONE, Connect

GROUP: Final = "simple"
TOPIC: Final = "passing"
PARTITIONS: Final = 2
BY_ID_SINCE: Final = 6  # DeleteTopics
BY_NAME: Final = 9  # a version of Produce
RECORD: Final = Record(0, 0, None, b"", [])


class _Bystander(Client):
    def __init__(self, name: str, connect: Connect, dice: random.Random, history: GroupHistory) -> None:
        self._told = History()
        super().__init__(name, connect, dice, self._told)
        self._told.surprises = history.surprises
        self.groups = history

    def said(self, begun: float, code: int | None, group: str) -> dict[str, Any]:
        return {
            "group": group,
            "client": self.name,
            "member_id": "",
            "generation": -1,
            "begun": begun,
            "ended": trio.current_time(),
            "code": code,
        }


class Supplier(_Bystander):
    """Writes records to all topics that stay, about as many as the members of a group can process."""

    async def run(self) -> None:
        while True:
            for topic, count in TOPICS.items():
                sizes = [self.dice.choice((1, 1, 3)) for _ in range(count)]
                await self.insist(partial(self._write, topic, sizes))
            await trio.sleep(self.dice.expovariate(1 / 0.5))

    async def _write(self, topic: str, sizes: Sequence[int]) -> bool | None:
        """What was not acknowledged is written again, and may be there twice: nobody reads it."""
        named = PRODUCE.Request.TopicData
        data = [
            named.PartitionData(index=number, records=build([RECORD] * size))
            for number, size in enumerate(sizes)
        ]
        request = PRODUCE.Request(
            acks=-1, timeout_ms=3000, topic_data=[named(name=topic, partition_data=data)]
        )
        answered = (await self.wire.ask(PRODUCE, BY_NAME, request)).responses[0].partition_responses
        for result in answered:
            if result.error_code == ErrorCode.NONE:
                tp = TopicPartition(topic, result.index)
                after = result.base_offset + sizes[result.index]
                self.groups.written[tp] = max(after, self.groups.written.get(tp, 0))
        return True if all(result.error_code == ErrorCode.NONE for result in answered) else None


class Observer(_Bystander):
    """Asks now and then who is in the groups, how far they have come, and where the logs end."""

    async def run(self, groups: Sequence[str]) -> None:
        while True:
            await trio.sleep(self.dice.expovariate(1 / 0.5))
            try:
                if self.dice.random() < 0.5:
                    await self._describe(groups)
                else:
                    await self.look_up(self.dice.choice(groups))
                    await self._ask_ends()
            except GONE:
                await self.wire.hang_up()

    async def audit(self, groups: Sequence[str]) -> None:
        """Look up every group's offsets and every log's end once more, until there is an answer."""
        for group in groups:
            await self.insist(partial(self.look_up, group))
        await self.insist(self._ask_ends)
        await self.wire.hang_up()

    async def look_up(self, group: str) -> bool | None:
        """What is committed of all topics that stay."""
        version = self.dice.choice(range(1, 10))
        everything = version >= wires.FETCH_ALL_SINCE and self.dice.random() < 0.5
        asked = None if everything else {name: list(range(count)) for name, count in TOPICS.items()}
        begun = trio.current_time()
        reply = await self.wire.ask(OFFSET_FETCH, version, wires.fetch(version, group, asked))
        code, found = wires.found(version, reply)
        if code:
            return None
        values = {(one.topic, one.partition): (one.offset, one.mark) for one in found}
        for topic, count in TOPICS.items():
            for partition in range(count):
                offset, mark = values.get((topic, partition), (-1, ""))
                said = self.said(begun, 0, group)
                place = Place(topic, partition)
                self.groups.fetches.append(Fetched(**said, place=place, offset=offset, mark=mark))
        return True

    async def _ask_ends(self) -> bool | None:
        asked = LIST_OFFSETS.Request.Topics
        topics = [
            asked(
                name=name,
                partitions=[asked.Partitions(partition_index=n, timestamp=-1) for n in range(count)],
            )
            for name, count in TOPICS.items()
        ]
        begun = trio.current_time()
        request = LIST_OFFSETS.Request(replica_id=-1, topics=topics)
        reply = await self.wire.ask(LIST_OFFSETS, self.dice.choice(LIST_OFFSETS.versions), request)
        found = [(topic.name, one) for topic in reply.topics for one in topic.partitions]
        if any(one.error_code for _, one in found):
            return None
        for name, one in found:
            place = Place(name, one.partition_index)
            ended = trio.current_time()
            self.groups.ends.append(LogEnd(place=place, begun=begun, ended=ended, offset=one.offset))
        return True

    async def _describe(self, groups: Sequence[str]) -> None:
        version = self.dice.choice(DESCRIBE_GROUPS.versions)
        begun = trio.current_time()
        request = DESCRIBE_GROUPS.Request(groups=list(groups))
        for group in (await self.wire.ask(DESCRIBE_GROUPS, version, request)).groups:
            if group.error_code == 0:
                self.groups.told.append(
                    Told(
                        group=group.group_id,
                        begun=begun,
                        ended=trio.current_time(),
                        state=group.group_state,
                        members=tuple(member.member_id for member in group.members),
                    )
                )


class SimpleCommitter(_Bystander):
    """Commits in the name of a group that nobody has joined, to a topic that is not always the same."""

    _marks = 0

    async def run(self, groups: Sequence[str]) -> None:
        topic = await create_topic(self, TOPIC, PARTITIONS)
        while True:
            for _ in range(self.dice.randint(1, 6)):
                await trio.sleep(self.dice.uniform(0.05, 1))
                await self._commit(topic)
                await self._fetch(topic)
            if self.dice.random() < 0.5:
                await self._delete(topic)
                await self._fetch(None)
                topic = await create_topic(self, TOPIC, PARTITIONS)
                await self._fetch(topic)

    async def commit_once(self, group: str, place: Place) -> None:
        """Commit offset 0 to a topic that stays, until it is taken."""
        value = (place, 0, f"{self.name}/0")

        async def ask() -> bool | None:
            code = (await self._commit_values(group, 9, [value]))[place.partition]
            return True if code == 0 else None

        await self.insist(ask)

    async def _commit(self, topic: Topic) -> None:
        values = []
        for partition in self.dice.sample(range(PARTITIONS), self.dice.randint(1, PARTITIONS)):
            self._marks += 1
            place = Place(TOPIC, partition, topic.topic_id.hex())
            values.append((place, self.dice.randint(0, 1000), f"{self.name}/{self._marks}"))
        codes = await self._commit_values(GROUP, wires.COMMIT_BY_ID, values)
        for code in codes.values():
            if code and not CODES[code].retriable:
                self.astonished(f"{CODES[code].name} for a commit to a topic that is there")

    async def _commit_values(
        self, group: str, version: int, values: Sequence[tuple[Place, int, str]]
    ) -> dict[int, int | None]:
        begun = trio.current_time()
        codes: dict[int, int | None] = {place.partition: None for place, _, _ in values}
        try:
            reply = await self.wire.ask(OFFSET_COMMIT, version, wires.commit(version, Who(group), values))
            codes = {
                one.partition_index: one.error_code for asked in reply.topics for one in asked.partitions
            }
        except GONE:
            await self.wire.hang_up()
        for place, offset, mark in values:
            said = self.said(begun, codes[place.partition], group)
            self.groups.commits.append(Committed(**said, place=place, offset=offset, mark=mark))
        return codes

    async def _fetch(self, topic: Topic | None) -> None:
        """By name, or all there is. Without a topic: when it is surely gone."""
        version = self.dice.choice(range(1, 10))
        everything = version >= wires.FETCH_ALL_SINCE and self.dice.random() < 0.5
        asked = None if everything else {TOPIC: list(range(PARTITIONS))}
        begun = trio.current_time()
        try:
            reply = await self.wire.ask(OFFSET_FETCH, version, wires.fetch(version, GROUP, asked))
        except GONE:
            await self.wire.hang_up()
            return
        code, found = wires.found(version, reply)
        if code:
            return
        values = {one.partition: one for one in found}
        for partition in range(PARTITIONS) if topic else sorted(values):
            one = values.get(partition)
            place = Place(TOPIC, partition, topic.topic_id.hex() if topic else "")
            offset, mark = (one.offset, one.mark) if one else (-1, "")
            said = self.said(begun, 0, GROUP)
            self.groups.fetches.append(Fetched(**said, place=place, offset=offset, mark=mark))

    async def _delete(self, topic: Topic) -> None:
        named = DELETE_TOPICS.Request.Topics(name=None, topic_id=topic.topic_id)
        request = DELETE_TOPICS.Request(topics=[named], timeout_ms=3000)

        async def ask() -> TopicId | None:
            (result,) = (await self.wire.ask(DELETE_TOPICS, BY_ID_SINCE, request)).responses
            gone = result.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID)
            return topic.topic_id if gone else None

        await self.insist(ask)
        self.groups.deleted[topic.topic_id.hex()] = trio.current_time()
