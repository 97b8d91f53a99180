"""Produces of one connection with acks=all do not wait for one another's replicas, nor commits for one another; all
else waits, and order stays."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.coordinator_topics import OF_GROUPS, ensure_coordinator_topic
from odradek.broker.handling.large_requests import LARGE_BYTES
from odradek.broker.internal_topic_names import OFFSETS_TOPIC
from odradek.broker.network.connection import READ_AHEAD_REQUESTS
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.broker.server import Broker
from odradek.protocol.codec.codec import encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import FRAME_PREFIX_BYTES, RequestHeader, request_frame
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.produce import PartitionProduceResponse
from tests.broker.coordinator.test_shard import batches
from tests.broker.groups import SETTINGS, loaded
from tests.broker.network.test_connection import connections, written_by
from tests.broker.transactions import Denying
from tests.broker.wire import RawClient, batch, connected, create_topic, produce, running_broker

pytestmark = pytest.mark.both_loops

LEADER = 0
GROUP = "billing"


@asynccontextmanager
async def led(name: str = "orders") -> AsyncGenerator[tuple[Broker, RawClient, Partition], None]:
    """A broker, a client, and a partition that has a follower, broker 1, in sync."""
    async with running_broker() as broker, connected(broker) as client:
        await create_topic(client, name)
        partition = broker.context.partitions.leader(name, 0)
        partition.become_leader(1, Replicas(LEADER, (LEADER, 1), (LEADER, 1)))
        yield broker, client, partition


def follow(partition: Partition, offset: int) -> None:
    """Broker 1 has everything before `offset`."""
    partition.replicas.followers[1].fetched(
        offset, partition.host.environment.monotonic_ms(), partition.log.log_end_offset
    )
    partition.acknowledgements.update()


def has_beyond(partition: Partition, offset: int) -> bool:
    return partition.log.log_end_offset > offset


def send(client: RawClient, count: int, acks: int = -1, timeout_ms: int = 10_000) -> list[int]:
    return [client.send(produce("orders", batch(b"x"), acks=acks, timeout_ms=timeout_ms), 9) for _ in range(count)]


async def answered(client: RawClient) -> tuple[int, PartitionProduceResponse]:
    """The next answer: its correlation id, and what it says of the partition."""
    correlation_id, answer = await client.receive(produce("orders", None), 9)
    return correlation_id, answer.responses[0].partition_responses[0]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what is waited for is the broker's inner state, which tells nobody
            await asyncio.sleep(0.005)


async def test_produces_are_appended_while_those_before_wait_and_answered_in_order() -> None:
    async with led() as (_, client, partition):
        sent = send(client, 5)
        await until(lambda: partition.log.log_end_offset == 5)
        assert partition.high_watermark.waiting == 5
        follow(partition, 2)
        told = [await answered(client) for _ in range(2)]
        follow(partition, 5)
        told += [await answered(client) for _ in range(3)]
    assert [correlation_id for correlation_id, _ in told] == sent
    assert [(answer.error_code, answer.base_offset) for _, answer in told] == [(0, offset) for offset in range(5)]


async def test_one_that_is_done_sooner_waits_for_its_turn() -> None:
    """acks=1 has nothing to wait for but the answers before it."""
    async with led() as (_, client, partition):
        first, last = send(client, 1) + send(client, 1, acks=1)
        await until(lambda: partition.log.log_end_offset == 2)
        follow(partition, 1)
        assert [(await answered(client))[0] for _ in range(2)] == [first, last]


async def test_a_reply_that_waited_for_its_turn_goes_by_the_rights_of_then() -> None:
    async with led() as (broker, client, partition):
        access = Denying()
        broker.context.access = access
        await create_topic(client, "bills")
        send(client, 1)
        client.send(produce("bills", batch(b"x"), acks=1), 9)
        await until(lambda: broker.context.partitions.leader("bills", 0).log.log_end_offset == 1)
        access.revoke((Operation.WRITE, of_topic("bills")))
        follow(partition, 1)
        assert [(await answered(client))[1].error_code for _ in range(2)] == [
            ErrorCode.NONE,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ]


async def test_any_other_request_waits_until_all_produces_are_answered() -> None:
    async with led() as (broker, client, partition):
        send(client, 2)
        client.send(MetadataRequest(topics=[]), 8)
        await until(lambda: partition.log.log_end_offset == 2)
        follow(partition, 1)
        await answered(client)
        assert "Metadata" not in broker.context.metrics.apis
        follow(partition, 2)
        await answered(client)
        await client.receive(MetadataRequest(topics=[]), 8)
        send(client, 1)
        await until(lambda: partition.log.log_end_offset == 3)
        follow(partition, 3)
        assert (await answered(client))[1].base_offset == 2


async def test_each_has_its_own_deadline() -> None:
    async with led() as (_, client, partition):
        send(client, 1, timeout_ms=50)
        send(client, 1)
        assert (await answered(client))[1].error_code == ErrorCode.REQUEST_TIMED_OUT
        follow(partition, 2)
        assert (await answered(client))[1].error_code == ErrorCode.NONE


async def test_all_that_wait_are_told_when_leadership_is_lost_even_if_it_comes_back() -> None:
    async with led() as (_, client, partition):
        send(client, 3)
        await until(lambda: partition.high_watermark.waiting == 3)
        partition.become_follower(1, 2)
        partition.log.truncate_to(0)
        partition.truncated()
        partition.become_leader(3, Replicas(LEADER, (LEADER,), (LEADER,)))
        told = [(await answered(client))[1].error_code for _ in range(3)]
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3


async def test_reading_pauses_when_many_wait() -> None:
    async with led() as (broker, client, partition):
        send(client, 100)
        (connection,) = connections(broker)
        await until(lambda: connection.is_reading_paused)
        assert partition.high_watermark.waiting >= READ_AHEAD_REQUESTS
        for number in range(100):
            await until(partial(has_beyond, partition, number))
            follow(partition, partition.log.log_end_offset)
            assert (await answered(client))[1].base_offset == number
        await until(lambda: broker.memory.held_bytes == 0)


async def test_a_client_that_vanishes_leaves_nothing_behind() -> None:
    async with led() as (broker, _, partition):
        async with connected(broker) as other:
            send(other, 3)
            await until(lambda: partition.high_watermark.waiting == 3)
        await until(lambda: partition.high_watermark.waiting == 0)
        await until(lambda: len(connections(broker)) == 1)
        await until(lambda: broker.memory.held_bytes == 0)


async def test_a_stop_lets_those_that_wait_be_answered() -> None:
    async with led() as (broker, client, partition):
        send(client, 2)
        await until(lambda: partition.high_watermark.waiting == 2)
        draining = asyncio.ensure_future(broker.connections.drain(10))
        broker.context.stopping = True
        for _ in range(50):
            await asyncio.sleep(0)
        assert not draining.done()
        follow(partition, 2)
        assert [(await answered(client))[1].base_offset for _ in range(2)] == [0, 1]
        await draining


async def test_answers_that_come_together_are_written_together() -> None:
    async with led() as (broker, client, partition):
        (connection,) = connections(broker)
        send(client, 5)
        await until(lambda: partition.high_watermark.waiting == 5)
        with written_by(connection) as writes:
            follow(partition, 5)
            for _ in range(5):
                await answered(client)
    assert len(writes) == 1


def commit(offset: int) -> OffsetCommitRequest:
    """Of no member."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP, topics=[topic])


def commit_of_size(offset: int, size_bytes: int) -> OffsetCommitRequest:
    """Of so many bytes with its header and length, of which many hundred offsets are most."""

    def filled(metadata: str) -> OffsetCommitRequest:
        request = commit(offset)
        request.topics[0].partitions *= size_bytes // 18 - 100
        request.topics[0].partitions.append(
            OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
        )
        return request

    def size_of(request: OffsetCommitRequest) -> int:
        header = RequestHeader(request.api_key, 9, 0, "raw")
        return sum(map(len, request_frame(header, True, encode_parts(request, 9))))

    padded = filled("M" * 1000)
    exact = filled("M" * (1000 + size_bytes - size_of(padded)))
    assert size_of(exact) == size_bytes
    return exact


def fetch() -> OffsetFetchRequest:
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])


async def test_commits_that_arrive_together_are_written_together_and_answered_in_order() -> None:
    """What follows them waits, and sees all of them."""
    async with running_broker({**SETTINGS, "offsets.topic.num.partitions": "1"}) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await ensure_coordinator_topic(broker.context, OF_GROUPS)
        await loaded(broker.context)
        sent = [client.send(commit(offset), 9) for offset in range(5)]
        client.send(fetch(), 9)
        answers = [await client.receive(commit(0), 9) for _ in sent]
        _, fetched = await client.receive(fetch(), 9)
        written = batches(broker.context.partitions.leader(OFFSETS_TOPIC, 0))
    assert [correlation_id for correlation_id, _ in answers] == sent
    assert [answer.topics[0].partitions[0].error_code for _, answer in answers] == [ErrorCode.NONE] * 5
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 4
    assert written == [5]


@pytest.mark.parametrize("more_bytes", [0, 1, FRAME_PREFIX_BYTES, FRAME_PREFIX_BYTES + 1])
async def test_no_commit_overtakes_one_that_is_just_large_or_nearly(more_bytes: int) -> None:
    """A large one gives the loop a turn before it is applied."""
    async with running_broker({**SETTINGS, "offsets.topic.num.partitions": "1"}) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        await ensure_coordinator_topic(broker.context, OF_GROUPS)
        await loaded(broker.context)
        client.send(commit_of_size(1, LARGE_BYTES + more_bytes), 9)
        client.send(commit(2), 9)
        client.send(fetch(), 9)
        for _ in range(2):
            await client.receive(commit(0), 9)
        _, fetched = await client.receive(fetch(), 9)
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 2
