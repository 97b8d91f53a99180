"""DescribeTransactions: where each of the transactional ids asked for stands, at its coordinator."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic, of_transactional_id
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, TopicData
from tests.broker.support import ask, make_topic, running_broker
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    completed,
    described,
    lead,
    running_transactions,
)

pytestmark = pytest.mark.virtual_time


async def test_it_tells_of_each_state() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init(timeout_ms=12_345)
        told = await described(context)
        assert (told.transaction_state, told.transaction_timeout_ms, told.topics) == ("Empty", 12_345, [])
        assert (told.producer_id, told.producer_epoch) == (producer.producer_id, producer.epoch)
        assert told.transaction_start_time_ms == -1
        begun_ms = context.environment.now_ms()
        for index in (2, 0):
            await producer.send(b"a", index=index)
        told = await described(context)
        assert (told.transaction_state, told.transaction_start_time_ms) == ("Ongoing", begun_ms)
        assert told.topics == [TopicData(topic="orders", partitions=[0, 2])]
        await producer.end(commit=True)
        assert await completed(context) == "CompleteCommit"
        told = await described(context)
        assert (told.producer_epoch, told.topics) == (producer.epoch, [])


async def test_ids_are_answered_in_order_each_with_its_error() -> None:
    access = Denying((Operation.DESCRIBE, of_transactional_id("secret")))
    async with running_transactions(access=access) as context:
        for transactional_id in (PAYMENTS, "secret"):
            await Producer(context, transactional_id).init()
        index = context.transactions.shards.index_of(PAYMENTS) or 0
        away = next(name for name in map(str, range(99)) if context.transactions.shards.index_of(name) != index)
        await lead(context, "__transaction_state", 1 - index, 1)
        asked = ["unknown-0", PAYMENTS, "secret", "", away]
        asked[0] = next(name for name in map(str, range(99)) if context.transactions.shards.index_of(name) == index)
        request = DescribeTransactionsRequest(transactional_ids=asked)
        states = (await ask(context, request, 0)).transaction_states
        assert [(each.transactional_id, each.error_code) for each in states] == [
            (asked[0], ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
            (PAYMENTS, ErrorCode.NONE),
            ("secret", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            ("", ErrorCode.INVALID_REQUEST),
            (away, ErrorCode.NOT_COORDINATOR),
        ]


async def test_topics_that_the_caller_may_not_see_are_left_out() -> None:
    access = Denying((Operation.DESCRIBE, of_topic("secret")))
    async with running_transactions(access=access) as context:
        await make_topic(context, "secret")
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        await producer.send(b"b", topic="secret")
        assert (await described(context)).topics == [TopicData(topic="orders", partitions=[0])]


async def test_without_the_topic_of_transactions_there_is_no_coordinator() -> None:
    async with running_broker() as context:
        assert (await described(context)).error_code == ErrorCode.NOT_COORDINATOR
