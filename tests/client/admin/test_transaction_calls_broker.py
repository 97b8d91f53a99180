"""Admin's calls about transactions against our own broker, with producers by raw messages."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.producer_states import ProducerState
from odradek.client.admin.transactions import TransactionListing, UnknownStates
from odradek.client.errors.client_errors import BrokerError, SequenceError
from odradek.client.fetching.list_offsets import LATEST
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.broker.wire import RawClient, connected, create_topic, running_broker
from tests.client.raw_producer import TIMESTAMP_MS, RawProducer

OPTIONS = {"transaction.state.log.num.partitions": "3", "transaction.partition.verification.enable": "false"}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Admin, RawClient]]:
    """An admin client of a broker with a topic, and a connection for a producer."""
    async with running_broker(OPTIONS) as broker, connected(broker) as client:
        await create_topic(client, "orders", 2)
        endpoint = next(iter(broker.bound.values()))
        async with Admin(f"{endpoint.host}:{endpoint.port}", default_api_timeout_ms=10_000) as admin:
            yield admin, client


async def producer_of(admin: Admin, client: RawClient, transactional_id: str) -> RawProducer:
    """A new one."""
    its = (await admin.fence_producers([transactional_id]))[transactional_id]
    return RawProducer(client, transactional_id, its.producer_id, its.producer_epoch)


async def stable_end(admin: Admin, partition: TopicPartition) -> int:
    return (await admin.list_offsets({partition: LATEST}, read_committed=True))[partition].offset


async def test_a_transaction_is_listed_described_and_aborted_with_its_producer() -> None:
    async with asking() as (admin, client):
        producer = await producer_of(admin, client, "payments")
        idle = await producer_of(admin, client, "refunds")
        for partition in (0, 1):
            await producer.send("orders", partition, b"a")
        assert await admin.list_transactions() == [
            TransactionListing("payments", producer.producer_id, "Ongoing", 0),
            TransactionListing("refunds", idle.producer_id, "Empty", 0),
        ]
        assert [each.transactional_id for each in await admin.list_transactions(["Empty"])] == ["refunds"]
        for listed in (
            await admin.list_transactions(producer_ids=[producer.producer_id]),
            await admin.list_transactions(pattern="pay.*"),
            await admin.list_transactions(["Ongoing"], duration_ms=-1),
        ):
            assert [each.transactional_id for each in listed] == ["payments"]
        assert await admin.list_transactions(duration_ms=3_600_000) == []
        found = await admin.describe_transaction("payments")
        assert (found.state, found.coordinator_id, found.partitions) == ("Ongoing", 0, (P0, P1))
        assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.producer_epoch)
        assert found.started_ms is not None
        assert [await stable_end(admin, each) for each in (P0, P1)] == [0, 0]
        after = (await admin.fence_producers(["payments"]))["payments"]
        assert after.producer_id == producer.producer_id
        assert after.producer_epoch > producer.producer_epoch
        assert [await stable_end(admin, each) for each in (P0, P1)] == [2, 2], "behind the markers"
        ended = await admin.describe_transaction("payments")
        assert (ended.started_ms, ended.partitions) == (None, ())


async def test_a_transaction_that_no_coordinator_knows_is_ended_by_a_marker() -> None:
    async with asking() as (admin, client):
        producer = await producer_of(admin, client, "payments")
        await producer.send_unknown("orders", 1, b"a")
        state = ProducerState(producer.producer_id, producer.producer_epoch, 0, TIMESTAMP_MS, None, 0)
        assert await admin.describe_producers([P0, P1]) == {P0: (), P1: (state,)}
        assert (await admin.describe_transaction("payments")).partitions == ()
        assert await stable_end(admin, P1) == 0
        with pytest.raises(SequenceError):
            await admin.abort_transaction(P1, producer.producer_id, producer.producer_epoch - 1, 0)
        await admin.abort_transaction(P1, producer.producer_id, producer.producer_epoch, 5)
        (after,) = (await admin.describe_producers([P1]))[P1]
        assert (after.transaction_start_offset, after.coordinator_epoch) == (None, 5)
        assert await stable_end(admin, P1) == 2
        with pytest.raises(BrokerError) as caught:
            await admin.abort_transaction(P1, producer.producer_id, producer.producer_epoch, 4)
        assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert "describe its producers" in str(caught.value)


async def test_what_there_is_not_is_told() -> None:
    async with asking() as (admin, _):
        with pytest.raises(BrokerError) as absent:
            await admin.describe_transaction("typo")
        assert absent.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        with pytest.raises(ItemsFailed) as unknown:
            await admin.list_transactions(["ongoing"])
        assert isinstance(unknown.value.errors[0], UnknownStates)
        with pytest.raises(ItemsFailed) as bad:
            await admin.list_transactions(pattern="(")
        assert bad.value.errors[0].code is ErrorCode.INVALID_REGULAR_EXPRESSION
        with pytest.raises(ItemsFailed) as late:
            await admin.fence_producers([""])
        assert late.value.errors[""].code is ErrorCode.INVALID_REQUEST
