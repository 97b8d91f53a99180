"""Members of one group and what is between them and their coordinator: requests and answers that are late or lost.

Single steps, chosen by a test: so every order of things is possible. What a member is told to give up is given up by a
step of its own. `settle` ends all faults and lets time pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.actions import Assigned, Failed, Lost, Noted, Revoke, Send
from odradek.client.consumer.membership.membership import Membership
from odradek.client.consumer.membership.requests import (
    Answer,
    CoordinatorFound,
    DescribeTopics,
    FindCoordinator,
    NoAnswer,
    Request,
    TopicsDescribed,
)
from odradek.client.topic_partition import TopicPartition

CALM_MS = 20_000
"""More than a session and two heartbeats: whoever is to be missed has been missed, and others have heard of it."""
STEP_MAX_MS = 1_000
TURNS_MAX = 3_000
"""Of events while settling, in vain."""


class Coordinator(Protocol):
    node_id: int
    answers: list[tuple[Request, Answer]]

    @property
    def member_ids(self) -> frozenset[str]: ...
    def handle(self, request: Request, node_id: int | None, now_ms: float) -> None: ...
    def tick(self, now_ms: float) -> None: ...
    def fail_over(self, now_ms: float) -> list[Request]: ...


@dataclass(eq=False)
class Node:
    """One member with its connection, and with the user who reads what it is given."""

    membership: Membership
    is_polled: bool = True
    on_the_way: list[tuple[Request, int | None]] = field(default_factory=list[tuple[Request, int | None]])
    held: list[Request] = field(default_factory=list[Request])
    answers: list[tuple[Request, Answer]] = field(default_factory=list[tuple[Request, Answer]])
    reading: set[TopicPartition] = field(default_factory=set[TopicPartition])
    to_release: set[TopicPartition] = field(default_factory=set[TopicPartition])
    failures: list[Failed] = field(default_factory=list[Failed])
    notes: list[Noted] = field(default_factory=list[Noted])


class World:
    def __init__(self, coordinator: Coordinator, topics: dict[str, TopicLayout]) -> None:
        self.now_ms = 0.0
        self.coordinator = coordinator
        self.topics = topics
        self.nodes: list[Node] = []

    def add(self, membership: Membership, *topics: str) -> Node:
        node = Node(membership)
        self.nodes.append(node)
        membership.subscribe(topics, self.now_ms)
        self._take(node)
        return node

    def do(self, node: Node, deed: Callable[[Membership], None]) -> None:
        deed(node.membership)
        self._take(node)

    # ----------------------------------------------------------------------------------------------------------- steps
    def deliver(self, node: Node) -> None:
        """The first request on the way reaches the coordinator, which may hold it."""
        if not node.on_the_way:
            return
        request, node_id = node.on_the_way.pop(0)
        match request:
            case FindCoordinator():
                node.answers.append((request, CoordinatorFound(self.coordinator.node_id)))
            case DescribeTopics():
                node.answers.append((request, TopicsDescribed(self.topics)))
            case _:
                node.held.append(request)
                self.coordinator.handle(request, node_id, self.now_ms)
                self._hand_out()

    def receive(self, node: Node, index: int = 0) -> None:
        if node.answers:
            request, answer = node.answers.pop(index % len(node.answers))
            self.do(node, lambda member: member.answered(request, answer, self.now_ms))

    def lose_request(self, node: Node) -> None:
        if node.on_the_way:
            request, _ = node.on_the_way.pop(0)
            node.answers.append((request, NoAnswer("lost on the way")))

    def lose_answer(self, node: Node) -> None:
        """The coordinator has done what it was asked, and nobody hears of it."""
        if node.answers:
            request, _ = node.answers.pop(0)
            node.answers.append((request, NoAnswer("lost on the way back")))

    def disconnect(self, node: Node) -> None:
        """What the coordinator holds of this member is not answered; it has been heard nevertheless."""
        for request in node.held:
            node.answers.append((request, NoAnswer("disconnected")))
        node.held.clear()

    def fail_over(self) -> None:
        self.coordinator.fail_over(self.now_ms)
        self.coordinator.answers.clear()
        for node in self.nodes:
            self.disconnect(node)

    def release(self, node: Node, count: int | None = None) -> None:
        """The first `count` of what is to be given up; None: all of it."""
        if released := frozenset(sorted(node.to_release)[:count]):
            node.reading -= released
            node.to_release -= released
            self.do(node, lambda member: member.revoked(released, self.now_ms))

    def pass_time(self, ms: float) -> None:
        self.now_ms += ms
        for node in self.nodes:
            if node.is_polled:
                self.do(node, lambda member: member.polled(self.now_ms))
            self.do(node, lambda member: member.advance(self.now_ms))
        self.coordinator.tick(self.now_ms)
        self._hand_out()

    def settle(self, duration_ms: float) -> None:
        """No more faults: whatever can be done is done at once, and time passes from deadline to deadline.

        It ends before `duration_ms` have passed if everybody has been stable for a while.
        """
        end_ms = self.now_ms + duration_ms
        changed_ms = self.now_ms
        while self.now_ms < min(end_ms, changed_ms + CALM_MS):
            if not all(node.membership.is_stable or node.membership.has_ended for node in self.nodes):
                changed_ms = self.now_ms
            for _ in range(TURNS_MAX):
                if not any(self._work(node) for node in self.nodes):
                    break
            else:
                raise AssertionError("they ask and answer without end")
            due_ms = min((node.membership.next_deadline_ms for node in self.nodes), default=inf)
            self.pass_time(min(max(due_ms - self.now_ms, 1), STEP_MAX_MS))

    def _work(self, node: Node) -> bool:
        has_work = bool(node.on_the_way or node.answers or node.to_release)
        self.release(node)
        self.deliver(node)
        self.receive(node)
        self.check()
        return has_work

    # ---------------------------------------------------------------------------------------------------------- checks
    def check(self) -> None:
        """A partition is read by one member at most, of those that the coordinator has not expelled."""
        readers: dict[TopicPartition, str] = {}
        for node in self.nodes:
            assert node.reading == node.membership.owned
            member_id = node.membership.identity.member_id
            if member_id in self.coordinator.member_ids:
                for partition in node.reading:
                    assert partition not in readers, (partition, readers[partition], member_id)
                    readers[partition] = member_id

    def check_settled(self) -> None:
        """Everybody who is in the group is stable, and every partition has its reader."""
        members = [node for node in self.nodes if not node.membership.has_ended]
        for node in members:
            assert node.membership.is_stable, (node.membership.identity, node)
        read = sorted(partition for node in members for partition in node.reading)
        wanted = [
            TopicPartition(topic, number)
            for topic in sorted(frozenset[str]().union(*(node.membership.watched_topics for node in members)))
            for number in range(self.topics[topic].partition_count)
        ]
        if members:
            assert read == wanted

    # --------------------------------------------------------------------------------------------------------- actions
    def _take(self, node: Node) -> None:
        for action in node.membership.take_actions():
            match action:
                case Send():
                    node.on_the_way.append((action.request, action.node_id))
                case Assigned():
                    assert not action.partitions & node.reading
                    node.reading |= action.partitions
                case Revoke() | Lost():
                    assert action.partitions <= node.reading
                    node.to_release |= action.partitions
                case Failed():
                    node.failures.append(action)
                case Noted():
                    node.notes.append(action)

    def _hand_out(self) -> None:
        for request, answer in self.coordinator.answers:
            for node in self.nodes:
                if request in node.held:
                    node.held.remove(request)
                    node.answers.append((request, answer))
        self.coordinator.answers.clear()
