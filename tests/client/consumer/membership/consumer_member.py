"""One member of a KIP-848 group, driven by hand: what it asks is looked at, and answered as a test wants it."""

from typing import TypeVar

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.actions import Action, Send
from odradek.client.consumer.membership.consumer_membership import ConsumerMembership
from odradek.client.consumer.membership.consumer_states import State
from odradek.client.consumer.membership.requests import (
    Answer,
    AssignmentByTopicId,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    CoordinatorFound,
    Request,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from tests.client.consumer.assignment.groups import parts

A = TypeVar("A", bound=Action)
IDS = {"a": b"a" * 16, "b": b"b" * 16}
LAYOUT = {topic: TopicLayout(4, topic_id=topic_id) for topic, topic_id in IDS.items()}


def target(text: str) -> AssignmentByTopicId:
    found: dict[bytes, frozenset[int]] = {}
    for topic, number in parts(text):
        found[IDS[topic]] = found.get(IDS[topic], frozenset()) | {number}
    return found


class Driven:
    def __init__(self, instance_id: str | None = None) -> None:
        self.now = 1_000.0
        made = MembershipSettings("billing", instance_id, "rack1", max_poll_interval_ms=60_000, server_assignor="range")
        self.member = ConsumerMembership(made, "me", Backoff(100, 1_000, lambda: 0.5))
        self.member.topics_changed(LAYOUT, self.now)
        self.asked: list[Request] = []
        self.said: list[Action] = []

    def take(self) -> None:
        for action in self.member.take_actions():
            if isinstance(action, Send):
                self.asked.append(action.request)
            else:
                self.said.append(action)

    def says(self, kind: type[A]) -> A:
        said, self.said = self.said, []
        (action,) = said
        assert isinstance(action, kind), action
        return action

    def beat(self) -> ConsumerHeartbeat:
        """The heartbeat under way."""
        (request,) = self.asked
        assert isinstance(request, ConsumerHeartbeat), request
        return request

    def answer(self, answer: Answer) -> None:
        request = self.asked.pop(0)
        self.member.answered(request, answer, self.now)
        self.take()

    def accept(self, epoch: int, assigned: str | None = None) -> None:
        assignment = None if assigned is None else target(assigned)
        self.answer(ConsumerHeartbeatAnswer(epoch, 5_000, "me", assignment))

    def wait(self, ms: float) -> None:
        self.now += ms
        self.member.polled(self.now)
        self.take()

    def release(self) -> None:
        self.member.revoked(self.member.owned, self.now)
        self.take()

    def joining(self) -> "Driven":
        self.member.subscribe(["b", "a"], self.now)
        self.take()
        self.answer(CoordinatorFound(7))
        return self

    def stable(self, owned: str = "a0 b0") -> "Driven":
        self.joining()
        self.accept(3, owned)
        if owned:
            self.accept(3)
        self.said.clear()
        assert self.member.state is State.STABLE and self.asked == []
        return self
