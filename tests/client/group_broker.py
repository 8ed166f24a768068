"""A scripted broker that coordinates one group, as simply as can be.

A rebalance begins when somebody joins, comes again or leaves, and ends when every member has come.
It has no clock: sessions never end by themselves. A test that wants a member gone removes it; what
it wants refused it plants, by the name of the API.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import attrs
import trio

from rafka.client import TopicPartition
from rafka.client.assignors import read_subscription
from rafka.errors import ErrorCode
from rafka.wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.sync_group import SYNC_GROUP

from .scripted import ScriptedBroker


@attrs.define(eq=False)
class Seat:
    """One member."""

    protocols: dict[str, bytes]
    instance_id: str | None = None
    joined: bool = True
    assignment: bytes = b""


@attrs.define(eq=False)
class GroupBroker(ScriptedBroker):
    seats: dict[str, Seat] = attrs.field(factory=dict)
    generation: int = 0
    leader_id: str = ""
    protocol: str = ""
    offsets: dict[TopicPartition, int] = attrs.field(factory=dict)
    planted: dict[str, deque[ErrorCode]] = attrs.field(factory=lambda: defaultdict(deque))
    commits: list[dict[TopicPartition, int]] = attrs.field(factory=list)
    formed: trio.Event | None = None  # a rebalance is under way
    synced: trio.Event | None = None  # the leader has not shared yet
    named: int = 0
    parked: set[int] = attrs.field(factory=set)  # the ids of requests to join that wait

    # --- for tests -----------------------------------------------------------------

    def plant(self, api: str, *codes: ErrorCode) -> None:
        self.planted[api].extend(codes)

    def remove(self, member_id: str) -> None:
        """As if its session had ended."""
        del self.seats[member_id]
        self._rebalance()
        self._form_if_whole()

    def told(self, member_id: str) -> Any:
        """The subscription that a member sent last."""
        return read_subscription(self.seats[member_id].protocols[self.protocol])

    # --- administration ----------------------------------------------------------------

    def on_ConsumerGroupDescribe(self, request: Any, version: int) -> Any:
        """It has none of the next generation."""
        response: Any = CONSUMER_GROUP_DESCRIBE.Response
        return response(groups=[response.Groups(group_id=name, error_code=69) for name in request.group_ids])

    # --- membership ------------------------------------------------------------------

    def on_FindCoordinator(self, request: Any, version: int) -> Any:
        code = int(self._planted("FindCoordinator"))
        response: Any = FIND_COORDINATOR.Response
        at = self.nodes[self.node_id]
        if version < 4:
            return response(node_id=self.node_id, host=at.host, port=at.port, error_code=code)
        found = [
            response.Coordinators(key=key, node_id=self.node_id, host=at.host, port=at.port, error_code=code)
            for key in request.coordinator_keys
        ]
        return response(coordinators=found)

    def on_JoinGroup(self, request: Any, version: int) -> Any:
        response: Any = JOIN_GROUP.Response
        if id(request) in self.parked:
            self.parked.remove(id(request))
            return self._joined(request.member_id)
        if code := self._planted("JoinGroup"):
            return response(error_code=int(code), member_id=request.member_id)
        if not request.member_id and request.group_instance_id is None:
            self.named += 1
            return response(error_code=int(ErrorCode.MEMBER_ID_REQUIRED), member_id=f"m{self.named}")
        member_id = request.member_id or f"{request.group_instance_id}-1"
        request.member_id = member_id
        protocols = {one.name: bytes(one.metadata) for one in request.protocols}
        self._rebalance()
        self.seats[member_id] = Seat(protocols, request.group_instance_id)
        self.parked.add(id(request))
        formed = self.formed
        self._form_if_whole()
        return formed

    def on_SyncGroup(self, request: Any, version: int) -> Any:
        response: Any = SYNC_GROUP.Response
        if code := self._planted("SyncGroup") or self._stranger(request.member_id, request.generation_id):
            return response(error_code=int(code))
        if self.formed is not None:
            return response(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS))
        if request.member_id == self.leader_id and self.synced is not None:
            for one in request.assignments:
                self.seats[one.member_id].assignment = bytes(one.assignment)
            self.synced.set()
            self.synced = None
        if self.synced is not None:
            return self.synced
        return response(assignment=self.seats[request.member_id].assignment)

    def on_Heartbeat(self, request: Any, version: int) -> Any:
        code = self._planted("Heartbeat") or self._stranger(request.member_id, request.generation_id)
        if not code and self.formed is not None:
            code = ErrorCode.REBALANCE_IN_PROGRESS
        return HEARTBEAT.Response(error_code=int(code))

    def on_LeaveGroup(self, request: Any, version: int) -> Any:
        for one in request.members:
            if one.member_id in self.seats:
                self.remove(one.member_id)
        return LEAVE_GROUP.Response()

    def _stranger(self, member_id: str, generation: int) -> ErrorCode:
        if member_id not in self.seats:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _planted(self, api: str) -> ErrorCode:
        return self.planted[api].popleft() if self.planted[api] else ErrorCode.NONE

    def _rebalance(self) -> None:
        if self.formed is None:
            self.formed = trio.Event()
            if self.synced is not None:
                self.synced.set()
            self.synced = None
            for seat in self.seats.values():
                seat.joined = False

    def _form_if_whole(self) -> None:
        if self.formed is None or not all(seat.joined for seat in self.seats.values()):
            return
        self.generation += 1
        if self.leader_id not in self.seats:
            self.leader_id = next(iter(self.seats), "")
        common = [set(seat.protocols) for seat in self.seats.values()]
        offered = self.seats[self.leader_id].protocols if self.seats else {}
        self.protocol = next((name for name in offered if all(name in one for one in common)), "")
        self.formed.set()
        self.formed, self.synced = None, trio.Event()

    def _joined(self, member_id: str) -> Any:
        response: Any = JOIN_GROUP.Response
        roll = self.seats.items() if member_id == self.leader_id else ()
        return response(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self.protocol,
            leader=self.leader_id,
            member_id=member_id,
            members=[
                response.Members(
                    member_id=name,
                    group_instance_id=seat.instance_id,
                    metadata=seat.protocols[self.protocol],
                )
                for name, seat in roll
            ],
        )

    # --- offsets -----------------------------------------------------------------------

    def on_OffsetCommit(self, request: Any, version: int) -> Any:
        response: Any = OFFSET_COMMIT.Response
        code = self._planted("OffsetCommit")
        if not code and request.member_id:
            code = self._stranger(request.member_id, request.generation_id_or_member_epoch)
        committed = {
            TopicPartition(topic.name, one.partition_index): one.committed_offset
            for topic in request.topics
            for one in topic.partitions
        }
        if not code:
            self.offsets |= committed
            self.commits.append(committed)
        topics = [
            response.Topics(
                name=topic.name,
                partitions=[
                    response.Topics.Partitions(partition_index=one.partition_index, error_code=int(code))
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return response(topics=topics)

    def on_OffsetFetch(self, request: Any, version: int) -> Any:
        response: Any = OFFSET_FETCH.Response
        code = int(self._planted("OffsetFetch"))
        if version < 8:
            return response(topics=self._stored(response.Topics, request.topics), error_code=code)
        [group] = request.groups
        topics = self._stored(response.Groups.Topics, group.topics)
        return response(groups=[response.Groups(group_id=group.group_id, topics=topics, error_code=code)])

    def _stored(self, entry: Any, wanted: Any) -> Any:
        if wanted is None:
            asked = [(target.topic, [target.partition]) for target in self.offsets]
        else:
            asked = [(topic.name, topic.partition_indexes) for topic in wanted]
        return [
            entry(
                name=name,
                partitions=[
                    entry.Partitions(
                        partition_index=number,
                        committed_offset=self.offsets.get(TopicPartition(name, number), -1),
                    )
                    for number in numbers
                ],
            )
            for name, numbers in asked
        ]
