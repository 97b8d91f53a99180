"""Who is told of leadership: once for each epoch, in order, before anything that depends on it, whatever happens."""

import asyncio
from collections.abc import Sequence

import pytest

from odradek.broker.cluster.keys import PartitionState, partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.broker.replica.leadership import Leadership
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.test_partition import partition_with
from tests.broker.support import append, batch, make_topic, running_broker, stored_partition

Told = tuple[str, str, int]


class Subscriber:
    """Keeps what it was told, in a list that it may share, and what could be done with the partition then."""

    def __init__(self, name: str = "", told: list[Told] | None = None) -> None:
        self.name = name
        self.told: list[Told] = [] if told is None else told
        self.appended: list[bool] = []

    def leads(self, partition: Partition, leader_epoch: int) -> None:
        self.told.append((f"{self.name}leads", partition.name, leader_epoch))
        append(partition, batch(b"its log is open"))

    def leads_no_longer(self, partition: Partition, leader_epoch: int) -> None:
        self.told.append((f"{self.name}leads no longer", partition.name, leader_epoch))


class Failing(Subscriber):
    def leads(self, partition: Partition, leader_epoch: int) -> None:
        raise RuntimeError("no room")

    leads_no_longer = leads


async def decide(context: Context, leader: int, epoch: int, replicas: Sequence[int] = (0, 1)) -> None:
    """Another broker decides who leads."""
    before = await stored_partition(context.metadata.store)
    state = PartitionState(before.topic_id, tuple(replicas), tuple(replicas), leader, epoch, epoch)
    key = partition_key("orders", 0)
    revision = await context.metadata.store.commit(Txn(put={key: state.encode()}))
    await asyncio.wait_for(context.metadata.applied(revision), 5)


async def test_each_epoch_is_told_once_and_its_end_before_the_next() -> None:
    subscriber = Subscriber()
    async with running_broker(subscribers=[subscriber]) as context:
        await make_topic(context, "orders", replicas=(0, 1))
        await decide(context, leader=0, epoch=1)  # it goes on
        await decide(context, leader=1, epoch=2)
        await decide(context, leader=1, epoch=3)
        await decide(context, leader=0, epoch=4)
        await decide(context, leader=0, epoch=4)  # nothing new
    assert subscriber.told == [
        ("leads", "orders-0", 0),
        ("leads no longer", "orders-0", 0),
        ("leads", "orders-0", 1),
        ("leads no longer", "orders-0", 1),
        ("leads", "orders-0", 4),
        ("leads no longer", "orders-0", 4),
    ]


async def test_what_ends_a_partition_ends_its_leadership_once() -> None:
    partition = partition_with()
    subscriber = Subscriber()
    leadership = Leadership([subscriber])
    partition.listener = Listening(leadership)
    partition.become_leader(1, Replicas(0, (0,), (0,)))
    partition.resign(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the directory has failed"))
    partition.close()
    leadership.ended(partition)
    assert subscriber.told == [("leads", "orders-0", 1), ("leads no longer", "orders-0", 1)]


async def test_subscribers_are_told_in_their_order_and_of_the_end_in_the_reverse() -> None:
    told: list[Told] = []
    subscribers = [Subscriber("first ", told), Subscriber("second ", told)]
    async with running_broker(subscribers=subscribers) as context:
        await make_topic(context, "orders", replicas=(0, 1))
        await decide(context, leader=1, epoch=1)
    assert [what for what, _, _ in told] == [
        "first leads",
        "second leads",
        "second leads no longer",
        "first leads no longer",
    ]


async def test_one_that_fails_is_logged_and_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    last = Subscriber()
    async with running_broker(subscribers=[Failing(), last]) as context:
        await make_topic(context, "orders", replicas=(0, 1))
        assert context.partitions.leader("orders", 0).log.log_end_offset == 1
        await decide(context, leader=1, epoch=1)
    assert [what for what, _, _ in last.told] == ["leads", "leads no longer"]
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True, True]


class Listening:
    """A partition's listener that hears of leadership alone."""

    def __init__(self, leadership: Leadership) -> None:
        self.leadership_began = leadership.began
        self.leadership_ended = leadership.ended

    def truncated(self, partition: Partition) -> None: ...

    def log_start_followed(self, partition: Partition, log_start_offset: int) -> None: ...

    def isr_outdated(self, partition: Partition) -> None: ...

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        return True

    def live_replicas(self, partition: Partition) -> tuple[int, ...]:
        return ()
