"""Every partition of a transaction is told how it ends, however often that takes; what needs no marker is left out."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from odradek.broker.membership.peers import PeerLost
from odradek.broker.txn.marker_sender import LAST_RETRY_MS, MarkerSender
from odradek.broker.txn.marker_writer import MarkerOrder, Written
from odradek.broker.txn.requests import Ending
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment

pytestmark = pytest.mark.virtual_time

HERE = 0
A, B, C = ("a", 0), ("b", 1), ("c", 2)
PRODUCER = ProducerIdentity(7, 3)


class Cluster:
    """Partitions with their leaders (-1: none), and what they answer a marker."""

    def __init__(self, leaders: Mapping[TopicPartition, int]) -> None:
        self.leaders = dict(leaders)
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.unreachable: set[int] = set()
        self.orders: list[tuple[int, MarkerOrder]] = []
        self.coordinates = True
        self.before: Callable[[], None] = lambda: None
        environment = Environment(asyncio.get_running_loop())
        self.sender = MarkerSender(HERE, cast("Any", self), cast("Any", self), cast("Any", self), environment)

    @property
    def image(self) -> "Cluster":
        return self

    def partition(self, *place: Any) -> Any:
        leader = self.leaders.get(place)
        return None if leader is None else SimpleNamespace(leader=leader)

    async def write(self, order: MarkerOrder) -> Written:
        return await self.ask(HERE, order)

    async def ask(self, broker_id: int, order: MarkerOrder) -> Written:
        self.before()
        self.orders.append((broker_id, order))
        await asyncio.sleep(0.001)
        if broker_id in self.unreachable:
            raise PeerLost(f"broker {broker_id}")
        return {place: KafkaError(self.errors[place]) if place in self.errors else None for place in order.partitions}

    async def send(self, *partitions: TopicPartition, is_commit: bool = True) -> bool:
        ending = Ending("id", PRODUCER, is_commit, frozenset(partitions), 2)
        return await asyncio.wait_for(self.sender.send(ending, 5, lambda: self.coordinates), 60)

    @property
    def asked(self) -> list[tuple[int, list[TopicPartition]]]:
        return [(broker_id, list(order.partitions)) for broker_id, order in self.orders]


@pytest.mark.parametrize("is_commit", [True, False])
async def test_each_leader_is_told_once_of_all_its_partitions(is_commit: bool) -> None:
    cluster = Cluster({A: HERE, B: 1, C: 1})
    assert await cluster.send(A, B, C, is_commit=is_commit)
    assert sorted(cluster.asked) == [(HERE, [A]), (1, [B, C])]
    for _, order in cluster.orders:
        assert order[:3] == (PRODUCER, is_commit, 5)
        assert order.transaction_version == 2


async def test_a_transaction_without_partitions_needs_no_marker() -> None:
    cluster = Cluster({})
    assert await cluster.send()
    assert cluster.orders == []


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
async def test_a_partition_that_refuses_is_told_again_and_the_others_are_not(code: ErrorCode) -> None:
    cluster = Cluster({A: HERE, B: 1})
    cluster.errors = {B: code}

    def relents() -> None:
        if len(cluster.orders) == 4:
            cluster.errors = {}

    cluster.before = relents
    assert await cluster.send(A, B)
    assert cluster.asked == [(HERE, [A]), (1, [B]), (1, [B]), (1, [B]), (1, [B])]


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED])
async def test_a_partition_that_knows_something_newer_needs_no_marker(code: ErrorCode) -> None:
    cluster = Cluster({A: HERE, B: HERE})
    cluster.errors = {B: code}
    assert await cluster.send(A, B)
    assert cluster.asked == [(HERE, [A, B])]


async def test_a_partition_that_moves_is_told_where_it_is() -> None:
    cluster = Cluster({A: 1})
    cluster.unreachable = {1}

    def moves() -> None:
        if len(cluster.orders) == 2:
            cluster.leaders[A] = 2

    cluster.before = moves
    assert await cluster.send(A)
    assert cluster.asked == [(1, [A]), (1, [A]), (1, [A]), (2, [A])]


async def test_a_partition_without_a_leader_is_waited_for() -> None:
    cluster = Cluster({A: -1})
    task = asyncio.ensure_future(cluster.send(A))
    await asyncio.sleep(5)
    assert not task.done()
    assert cluster.orders == []
    cluster.leaders[A] = HERE
    assert await task
    assert cluster.asked == [(HERE, [A])]


async def test_a_topic_that_is_deleted_does_not_hold_up_the_others() -> None:
    cluster = Cluster({A: HERE, B: -1})
    task = asyncio.ensure_future(cluster.send(A, B))
    await asyncio.sleep(1)
    assert not task.done()
    del cluster.leaders[B]
    assert await task


async def test_who_coordinates_no_more_stops() -> None:
    cluster = Cluster({A: -1})
    task = asyncio.ensure_future(cluster.send(A))
    await asyncio.sleep(1)
    cluster.coordinates = False
    await asyncio.sleep(2 * LAST_RETRY_MS / 1000)
    assert task.done()
    assert task.result() is False


async def test_who_lost_the_lead_while_the_last_was_told_does_not_say_that_all_are() -> None:
    cluster = Cluster({A: HERE})

    def loses() -> None:
        cluster.coordinates = False

    cluster.before = loses
    assert await cluster.send(A) is False
