"""Produce with acks=all: the answer waits for every replica in sync, and no longer than it must."""

import asyncio

import pytest

from odradek.broker.cluster.topics import delete_topic
from odradek.broker.handling.context import Context
from odradek.broker.replica.append_ticket import AppendTicket
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceResponse
from tests.broker.api.producing import Sent, end_of, idempotent, produced
from tests.broker.support import batch, make_topic, running_broker


async def follower_at(partition: Partition, offset: int) -> None:
    """Broker 1 has everything before `offset`."""
    log_end = partition.log.log_end_offset
    partition.replicas.followers[1].fetched(offset, partition.host.environment.monotonic_ms(), log_end)
    partition.acknowledgements.update()


async def replicated(context: Context, *, configs: dict[str, str] | None = None) -> Partition:
    """A partition led here, with broker 1 in sync."""
    await make_topic(context, "orders", configs=configs or {})
    partition = context.partitions.leader("orders", 0)
    partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
    return partition


async def started(
    context: Context, *sent: Sent, timeout_ms: int = 10_000
) -> asyncio.Task[list[PartitionProduceResponse]]:
    """A Produce with acks=all that has come as far as it can."""
    task = asyncio.ensure_future(produced(context, *sent, timeout_ms=timeout_ms))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_the_answer_waits_for_every_replica_in_sync() -> None:
    async with running_broker() as context:
        partition = await replicated(context)
        task = await started(context, (0, batch(b"a", b"b")))
        assert not task.done()
        await follower_at(partition, 1)
        await asyncio.sleep(0)
        assert not task.done()
        await follower_at(partition, 2)
        (answer,) = await asyncio.wait_for(task, 5)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


async def test_acks_1_does_not_wait_for_the_follower() -> None:
    async with running_broker() as context:
        await replicated(context)
        (answer,) = await asyncio.wait_for(produced(context, (0, batch(b"a")), acks=1), 5)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


async def test_a_duplicate_waits_for_replication_too() -> None:
    async with running_broker() as context:
        partition = await replicated(context)
        first = await started(context, (0, idempotent(0)))
        again = await started(context, (0, idempotent(0)))
        assert not first.done()
        assert not again.done()
        await follower_at(partition, 1)
        told = [await asyncio.wait_for(task, 5) for task in (first, again)]
    assert [(answer.error_code, answer.base_offset) for (answer,) in told] == [(ErrorCode.NONE, 0)] * 2


async def test_the_deadline_is_one_for_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledged = AppendTicket.acknowledged
    given_ms: list[float] = []

    async def watched(self: AppendTicket, timeout_ms: float) -> None:
        given_ms.append(timeout_ms)
        await acknowledged(self, timeout_ms)

    monkeypatch.setattr(AppendTicket, "acknowledged", watched)
    async with running_broker() as context:
        await make_topic(context, "orders", 3)
        for index in (0, 1):
            context.partitions.leader("orders", index).become_leader(1, Replicas(0, (0, 1), (0, 1)))
        task = await started(context, *((index, batch(b"a")) for index in range(3)), timeout_ms=50)
        told = await asyncio.wait_for(task, 5)
        assert end_of(context, 0) == 1
    assert [answer.error_code for answer in told] == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, 0]
    assert given_ms[0] > 40
    assert given_ms[1:] == [0.0], "the third one has nothing to wait for"


async def test_too_few_replicas_before_the_append_append_nothing() -> None:
    async with running_broker() as context:
        partition = await replicated(context, configs={"min.insync.replicas": "2"})
        partition.become_leader(2, Replicas(0, (0, 1), (0,)))
        (all_acks,) = await produced(context, (0, batch(b"a")))
        assert end_of(context) == 0
        (leader_only,) = await produced(context, (0, batch(b"b")), acks=1)
        assert end_of(context) == 1
        assert partition.high_watermark.value == 0
    assert all_acks.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert leader_only.error_code == ErrorCode.NONE


async def test_one_replica_is_enough_where_there_is_only_one() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", configs={"min.insync.replicas": "2"})
        (answer,) = await produced(context, (0, batch(b"a")))
    assert answer.error_code == ErrorCode.NONE


async def test_too_few_replicas_after_the_append_say_so_and_the_records_stay() -> None:
    async with running_broker() as context:
        partition = await replicated(context, configs={"min.insync.replicas": "2"})
        task = await started(context, (0, batch(b"a")))
        await follower_at(partition, 1)
        partition.replicas.isr = (0,)  # the follower leaves between its fetch and the answer
        (answer,) = await asyncio.wait_for(task, 5)
        assert end_of(context) == 1
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


async def test_lost_leadership_wakes_whoever_waits() -> None:
    async with running_broker() as context:
        partition = await replicated(context)
        tasks = [await started(context, (0, batch(b"a"))) for _ in range(3)]
        partition.resign()
        told = [await asyncio.wait_for(task, 5) for task in tasks]
    assert [answer.error_code for (answer,) in told] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3


async def test_a_deleted_topic_wakes_whoever_waits() -> None:
    async with running_broker() as context:
        await replicated(context)
        task = await started(context, (0, batch(b"a")))
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        (answer,) = await asyncio.wait_for(task, 5)
    assert answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_what_another_leader_may_have_replaced_is_not_acknowledged() -> None:
    """While the first partition of a request waits, the second one is lost to another leader, who cuts off what was
    appended and writes something else there, and comes back. Its high watermark says nothing about this request."""
    async with running_broker() as context:
        await make_topic(context, "orders", 2)
        first, second = (context.partitions.leader("orders", index) for index in (0, 1))
        for partition in (first, second):
            partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        task = await started(context, (0, batch(b"a")), (1, batch(b"b")))
        second.become_follower(1, 2)
        second.log.truncate_to(0)
        second.truncated()
        second.become_leader(3, Replicas(0, (0, 1), (0, 1)))
        await produced(context, (1, batch(b"another")), acks=1)
        await follower_at(second, 1)
        assert second.high_watermark.value == 1
        await follower_at(first, 1)
        told = await asyncio.wait_for(task, 5)
    assert [answer.error_code for answer in told] == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER]
