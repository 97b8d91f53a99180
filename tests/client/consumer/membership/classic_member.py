"""One member of a classic group, driven by hand: what it asks is looked at, and answered as a test wants it."""

from collections.abc import Sequence
from typing import TypeVar

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.assignment.built_in import assignors
from odradek.client.consumer.membership.actions import Action, Assigned, Failed, Lost, Noted, Revoke, Send
from odradek.client.consumer.membership.classic import ClassicMembership
from odradek.client.consumer.membership.classic_states import State
from odradek.client.consumer.membership.requests import (
    Answer,
    CoordinatorFound,
    DescribeTopics,
    FindCoordinator,
    Heartbeat,
    Join,
    Joined,
    JoinedMember,
    Refused,
    Request,
    Sync,
    Synced,
    TopicsDescribed,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from odradek.protocol.consumer_protocol import Assignment, encode_assignment
from odradek.protocol.errors import ErrorCode
from tests.client.consumer.assignment.groups import parts

A = TypeVar("A", bound=Action)
R = TypeVar("R", bound=Request)
NODE = 7
LAYOUT = {"a": TopicLayout(2), "b": TopicLayout(1)}


def assignment(text: str) -> bytes:
    partitions: dict[str, list[int]] = {}
    for topic, number in parts(text):
        partitions.setdefault(topic, []).append(number)
    return encode_assignment(Assignment(partitions))


class Driven:
    """`now` is set by tests. Requests are kept until they are answered."""

    def __init__(
        self, names: Sequence[str] = ("range",), instance_id: str | None = None, rack: str | None = None
    ) -> None:
        self.now = 1_000.0
        made = MembershipSettings(
            "billing",
            instance_id,
            rack,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=3_000,
            max_poll_interval_ms=60_000,
        )
        self.member = ClassicMembership(made, assignors(names), Backoff(100, 1_000, lambda: 0.5))
        self.asked: list[Request] = []
        self.said: list[Action] = []

    # --------------------------------------------------------------------------------------------------------- looking
    def take(self) -> None:
        for action in self.member.take_actions():
            if isinstance(action, Send):
                self.asked.append(action.request)
            else:
                self.said.append(action)

    def asks(self, kind: type[R]) -> R:
        """The only request that is open."""
        (request,) = self.asked
        assert isinstance(request, kind), request
        return request

    def says(self, kind: type[A]) -> A:
        """The only thing that was said since the last call."""
        said, self.said = self.said, []
        (action,) = said
        assert isinstance(action, kind), action
        return action

    # --------------------------------------------------------------------------------------------------------- driving
    def answer(self, answer: Answer, request: Request | None = None) -> None:
        if request is None:
            (request,) = self.asked
        self.asked.remove(request)
        self.member.answered(request, answer, self.now)
        self.take()

    def refuse(self, code: ErrorCode, member_id: str = "") -> None:
        self.answer(Refused(code, member_id=member_id))

    def wait(self, ms: float) -> None:
        self.now += ms
        self.member.polled(self.now)
        self.take()

    def subscribe(self, topics: str = "a b") -> None:
        self.member.subscribe(topics.split(), self.now)
        self.take()

    def release(self) -> None:
        self.member.revoked(self.member.owned, self.now)
        self.take()

    def find(self) -> None:
        self.asks(FindCoordinator)
        self.answer(CoordinatorFound(NODE))

    def joined(self, generation: int, *, leads: bool = False, member_id: str = "me") -> None:
        """The group has gathered: alone, where the member leads."""
        join = self.asks(Join)
        name, metadata = join.protocols[0]
        members = (JoinedMember(member_id, join.group_instance_id, metadata),) if leads else ()
        self.answer(Joined(member_id, generation, name, member_id if leads else "other", members, "consumer"))
        if leads:
            self.asks(DescribeTopics)
            self.answer(TopicsDescribed(LAYOUT))

    def stable(self, owned: str = "a0 b0", generation: int = 5) -> "Driven":
        """From the start until it has this assignment."""
        self.subscribe()
        self.find()
        self.joined(generation)
        self.synced(owned)
        self.said.clear()
        assert self.member.state is State.STABLE
        return self

    def synced(self, owned: str) -> None:
        self.asks(Sync)
        self.answer(Synced(assignment(owned), "consumer", None))

    def beats(self, code: ErrorCode) -> None:
        """The next heartbeat is answered with this error."""
        self.wait(3_000)
        self.asks(Heartbeat)
        self.refuse(code)


__all__ = ["LAYOUT", "NODE", "Assigned", "Driven", "Failed", "Lost", "Noted", "Revoke", "assignment"]
