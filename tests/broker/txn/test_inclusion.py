"""Whoever coordinates a transaction is asked, here or on another broker; that nobody does is said so that it is tried
again."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.cluster.keys import NO_LEADER
from odradek.broker.membership.peers import PeerLost
from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.broker.txn.requests import AddPartitions, Verify
from odradek.broker.txn.transaction import ProducerIdentity
from odradek.protocol.errors import ErrorCode, KafkaError

HERE = 0
A = ("orders", 3)
PRODUCER = ProducerIdentity(7, 3)


class Coordinator:
    """Stands for all around: the metadata, this broker's shards and machine, and the other brokers."""

    def __init__(self, leader: int = HERE) -> None:
        self.leader = leader
        self.has_topic = True
        self.topic = "__transaction_state"
        self.asked: list[Any] = []
        self.answer: Included = {A: ErrorCode.TRANSACTION_ABORTABLE}
        self.is_lost = False
        self.inclusions = Inclusions(HERE, cast("Any", self), cast("Any", self), cast("Any", self))

    @property
    def image(self) -> "Coordinator":
        return self

    def partition(self, topic: str, index: int) -> Any:
        assert (topic, index) == (self.topic, 4)
        return SimpleNamespace(leader=self.leader)

    def index_of(self, key: str) -> int | None:
        assert key == "id"
        return 4 if self.has_topic else None

    def of(self, key: str) -> Any:
        assert key == "id"
        return SimpleNamespace(ask=self._ask_machine)

    async def _ask_machine(self, operation: Any) -> Any:
        operation(self, None, None)
        return self.answer

    def verify(self, request: Verify, waiting: Any, now: Any) -> None:
        self.asked.append(request)

    def add_partitions(self, request: AddPartitions, waiting: Any, now: Any) -> None:
        self.asked.append(request)

    async def ask(self, broker_id: int, question: Inclusion) -> Included:
        self.asked.append((broker_id, question))
        await asyncio.sleep(0)
        if self.is_lost:
            raise PeerLost("it is gone")
        return self.answer


def question(*, adds: bool) -> Inclusion:
    return Inclusion("id", PRODUCER, frozenset({A}), adds)


async def test_the_own_machine_verifies() -> None:
    coordinator = Coordinator()
    assert await coordinator.inclusions.ask(question(adds=False)) == {A: ErrorCode.TRANSACTION_ABORTABLE}
    assert coordinator.asked == [Verify("id", PRODUCER, frozenset({A}))]


async def test_the_own_machine_adds_for_the_version_that_has_producers_leave_it_out() -> None:
    coordinator = Coordinator()
    assert await coordinator.inclusions.ask(question(adds=True)) == {A: ErrorCode.NONE}
    assert coordinator.asked == [AddPartitions("id", PRODUCER, frozenset({A}), 2)]


@pytest.mark.parametrize("adds", [True, False])
async def test_another_broker_is_asked_where_it_coordinates(adds: bool) -> None:
    coordinator = Coordinator(leader=2)
    assert await coordinator.inclusions.ask(question(adds=adds)) == {A: ErrorCode.TRANSACTION_ABORTABLE}
    assert coordinator.asked == [(2, question(adds=adds))]


@pytest.mark.parametrize("how", ["no topic", "no leader", "lost"])
async def test_that_nobody_answers_for_it_is_not_available(how: str) -> None:
    coordinator = Coordinator(NO_LEADER if how == "no leader" else 2)
    coordinator.has_topic = how != "no topic"
    coordinator.is_lost = True
    with pytest.raises(KafkaError) as raised:
        await coordinator.inclusions.ask(question(adds=True))
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(coordinator.asked) == (how == "lost")
