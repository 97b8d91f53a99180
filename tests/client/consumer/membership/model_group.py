"""A coordinator's classic group, for tests of members: join and sync barriers, sessions, time-outs, failover. Pure.

It keeps to the rules that members rely on, and leaves out what spares rebalances: every JoinGroup begins one. What it
has at the end of a rebalance survives a failover, as with Kafka's records; of what happened since it knows only who has
gone. (Kafka may forget that, too, and then fences a static member that came back meanwhile.)
"""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum

from odradek.client.consumer.membership.requests import (
    Answer,
    Heartbeat,
    HeartbeatTaken,
    Join,
    Joined,
    JoinedMember,
    Leave,
    Left,
    Refused,
    Request,
    Sync,
    Synced,
)
from odradek.protocol.errors import ErrorCode


class GroupState(Enum):
    EMPTY = "empty"
    PREPARING = "preparing"
    COMPLETING = "completing"
    STABLE = "stable"


@dataclass
class ModelMember:
    instance_id: str | None
    protocols: dict[str, bytes]
    session_timeout_ms: float
    rebalance_timeout_ms: float
    deadline_ms: float
    assignment: bytes = b""
    join: Join | None = None
    sync: Sync | None = None


@dataclass
class Stored:
    """What survives a failover."""

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    members: dict[str, ModelMember] = field(default_factory=dict[str, ModelMember])


class ModelGroup:
    def __init__(self) -> None:
        self.node_id = 1
        self.now: Stored = Stored()
        self.answers: list[tuple[Request, Answer]] = []
        self._stored = Stored()
        self._pending: set[str] = set()
        """Ids that were given out, and have not joined yet."""
        self._deadline_ms = 0.0
        self._count = 0

    @property
    def member_ids(self) -> frozenset[str]:
        return frozenset(self.now.members)

    # -------------------------------------------------------------------------------------------------------- requests
    def handle(self, request: Request, node_id: int | None, now_ms: float) -> None:
        if node_id != self.node_id:
            self._answer(request, Refused(ErrorCode.NOT_COORDINATOR))
            return
        match request:
            case Join():
                self._join(request, now_ms)
            case Sync():
                self._sync(request)
            case Heartbeat():
                self._heartbeat(request, now_ms)
            case Leave():
                self.expel([request.member_id], now_ms)
                self._answer(request, Left())
            case _:
                raise AssertionError(request)

    def _join(self, request: Join, now_ms: float) -> None:
        member_id = request.member_id
        former = next(
            (
                key
                for key, each in self.now.members.items()
                if request.group_instance_id and each.instance_id == request.group_instance_id
            ),
            None,
        )
        if not member_id:
            self._count += 1
            member_id = f"id{self._count}"
            if request.group_instance_id is None:
                self._pending.add(member_id)
                self._answer(request, Refused(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
                return
            if former is not None:
                self._drop(former, ErrorCode.FENCED_INSTANCE_ID)
        elif former is not None and former != member_id:
            self._answer(request, Refused(ErrorCode.FENCED_INSTANCE_ID))
            return
        elif member_id not in self.now.members and member_id not in self._pending:
            self._answer(request, Refused(ErrorCode.UNKNOWN_MEMBER_ID))
            return
        self._pending.discard(member_id)
        member = self.now.members.get(member_id)
        if member is None:
            member = self.now.members[member_id] = ModelMember(
                request.group_instance_id,
                {},
                request.session_timeout_ms,
                request.rebalance_timeout_ms,
                now_ms + request.session_timeout_ms,
            )
        elif member.join is not None:
            self._answer(member.join, Refused(ErrorCode.REBALANCE_IN_PROGRESS))
        member.protocols = dict(request.protocols)
        member.join = request
        self._prepare(now_ms)

    def _prepare(self, now_ms: float) -> None:
        if self.now.state is GroupState.COMPLETING:
            for member in self.now.members.values():
                if member.sync is not None:
                    self._answer(member.sync, Refused(ErrorCode.REBALANCE_IN_PROGRESS))
                    member.sync = None
        if self.now.state is not GroupState.PREPARING:
            self.now.state = GroupState.PREPARING
            longest = max((member.rebalance_timeout_ms for member in self.now.members.values()), default=0)
            self._deadline_ms = now_ms + longest
        self._complete_if_all_joined(now_ms)

    def _complete_if_all_joined(self, now_ms: float) -> None:
        if all(member.join is not None for member in self.now.members.values()):
            self._complete(now_ms)

    def _complete(self, now_ms: float) -> None:
        for member_id in [key for key, member in self.now.members.items() if member.join is None]:
            del self.now.members[member_id]
        members = self.now.members
        self.now.generation += 1
        if not members:
            self.now.state = GroupState.EMPTY
            return
        self.now.state = GroupState.COMPLETING
        self._deadline_ms = now_ms + max(member.rebalance_timeout_ms for member in members.values())
        if self.now.leader not in members:
            self.now.leader = next(iter(members))
        first = members[self.now.leader].protocols
        self.now.protocol = next(name for name in first if all(name in each.protocols for each in members.values()))
        described = tuple(
            JoinedMember(key, each.instance_id, each.protocols[self.now.protocol]) for key, each in members.items()
        )
        for member_id, member in members.items():
            assert member.join is not None
            shown = described if member_id == self.now.leader else ()
            self._answer(
                member.join,
                Joined(member_id, self.now.generation, self.now.protocol, self.now.leader, shown, "consumer"),
            )
            member.join = None
            member.deadline_ms = now_ms + member.session_timeout_ms

    def _sync(self, request: Sync) -> None:
        member = self.now.members.get(request.member_id)
        if member is None:
            self._answer(request, Refused(ErrorCode.UNKNOWN_MEMBER_ID))
        elif request.generation != self.now.generation:
            self._answer(request, Refused(ErrorCode.ILLEGAL_GENERATION))
        elif self.now.state is GroupState.PREPARING:
            self._answer(request, Refused(ErrorCode.REBALANCE_IN_PROGRESS))
        elif self.now.state is GroupState.STABLE:
            self._answer(request, Synced(member.assignment, "consumer", self.now.protocol))
        else:
            member.sync = request
            if request.member_id == self.now.leader:
                for member_id, assignment in request.assignments:
                    self.now.members[member_id].assignment = assignment
                self.now.state = GroupState.STABLE
                self._answer_syncs()
                self._stored = deepcopy(self.now)

    def _answer_syncs(self) -> None:
        for member in self.now.members.values():
            if member.sync is not None:
                self._answer(member.sync, Synced(member.assignment, "consumer", self.now.protocol))
                member.sync = None

    def _heartbeat(self, request: Heartbeat, now_ms: float) -> None:
        member = self.now.members.get(request.member_id)
        if member is None:
            self._answer(request, Refused(ErrorCode.UNKNOWN_MEMBER_ID))
        elif request.generation != self.now.generation:
            self._answer(request, Refused(ErrorCode.ILLEGAL_GENERATION))
        else:
            member.deadline_ms = now_ms + member.session_timeout_ms
            is_preparing = self.now.state is GroupState.PREPARING
            self._answer(request, Refused(ErrorCode.REBALANCE_IN_PROGRESS) if is_preparing else HeartbeatTaken())

    # ------------------------------------------------------------------------------------------------------------ time
    def tick(self, now_ms: float) -> None:
        self.expel(
            [
                key
                for key, member in self.now.members.items()
                if member.join is None and member.sync is None and member.deadline_ms <= now_ms
            ],
            now_ms,
        )
        if self.now.state is GroupState.PREPARING and self._deadline_ms <= now_ms:
            self._complete(now_ms)
        elif self.now.state is GroupState.COMPLETING and self._deadline_ms <= now_ms:
            late = [key for key, member in self.now.members.items() if member.sync is None]
            self.expel(late, now_ms)

    def expel(self, member_ids: Iterable[str], now_ms: float) -> None:
        gone = [member_id for member_id in member_ids if member_id in self.now.members]
        for member_id in gone:
            self._drop(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if gone:
            self._prepare(now_ms)

    def fail_over(self, now_ms: float) -> list[Request]:
        """Another node takes over. Returns the requests that were held: their connections are lost."""
        held = [each for member in self.now.members.values() for each in (member.join, member.sync) if each is not None]
        self.node_id += 1
        self._pending.clear()
        self.now = deepcopy(self._stored)
        for member in self.now.members.values():
            member.deadline_ms = now_ms + member.session_timeout_ms
        return list(held)

    def _drop(self, member_id: str, code: ErrorCode) -> None:
        member = self.now.members.pop(member_id)
        self._stored.members.pop(member_id, None)
        for held in (member.join, member.sync):
            if held is not None:
                self._answer(held, Refused(code))

    def _answer(self, request: Request, answer: Answer) -> None:
        self.answers.append((request, answer))
