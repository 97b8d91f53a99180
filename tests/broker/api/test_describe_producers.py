"""DescribeProducers: the producers that a replica of a partition knows, and their open transactions."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)
from tests.broker.api.producing import idempotent, produced
from tests.broker.support import ask, make_topic
from tests.broker.transactions import Denying, Producer, completed, running_transactions

pytestmark = pytest.mark.virtual_time
NOBODY = -1


async def told(context: Context, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[*indexes])])
    [answer] = (await ask(context, request, 0)).topics
    assert answer.name == topic
    assert [each.partition_index for each in answer.partitions] == [*indexes]
    return answer.partitions


async def test_it_tells_of_open_transactions_and_of_their_end() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        await producer.send(b"b", b"c")
        sent_ms = context.environment.now_ms()
        [first, second] = await told(context, "orders", 0, 1)
        assert second == PartitionResponse(partition_index=1)
        assert first.active_producers == [
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=0,
                last_sequence=2,
                last_timestamp=sent_ms,
                coordinator_epoch=NOBODY,
                current_txn_start_offset=0,
            )
        ]
        coordinator_epoch = context.transactions.shards.of(producer.transactional_id).leader_epoch
        await producer.end(commit=True)
        await completed(context)
        [first] = await told(context, "orders", 0)
        [state] = first.active_producers
        assert (state.producer_epoch, state.coordinator_epoch) == (1, coordinator_epoch)
        assert (state.current_txn_start_offset, state.last_sequence) == (-1, -1)


async def test_producers_without_transactions_are_told_too() -> None:
    async with running_transactions() as context:
        await produced(context, (0, idempotent(0, 3, producer_id=77)))
        [first] = await told(context, "orders", 0)
        [state] = first.active_producers
        assert (state.producer_id, state.last_sequence, state.current_txn_start_offset) == (77, 2, -1)
        assert state.coordinator_epoch == NOBODY


async def test_each_partition_has_its_own_error() -> None:
    async with running_transactions(access=Denying((Operation.READ, of_topic("secret")))) as context:
        await make_topic(context, "secret")
        await make_topic(context, "away", replicas=(1,), leader=1)
        await make_topic(context, "follows", replicas=(1, 0), leader=1)
        for topic, index, code in (
            ("orders", 0, ErrorCode.NONE),
            ("orders", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("secret", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            ("away", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            ("follows", 0, ErrorCode.NONE),
        ):
            [answer] = await told(context, topic, index)
            assert (answer.error_code, bool(answer.error_message)) == (code, code is not ErrorCode.NONE)
            assert answer.active_producers == []
