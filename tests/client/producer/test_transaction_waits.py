"""How long transactions wait on a scripted cluster, in virtual time, and what becomes of those that are cut short."""

import asyncio

import pytest

from odradek.client.errors.broker_errors import BrokerError
from odradek.client.errors.client_errors import (
    DeliveryTimeout,
    ProducerClosed,
    RequestTimedOut,
)
from odradek.client.errors.transaction_errors import (
    CommitOutcomeUnknown,
    TransactionFailed,
    TransactionOpen,
)
from odradek.client.producer.producer import Producer
from odradek.client.producer.transaction import Transaction
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.broker_faults import late, never
from tests.client.coordinator_handlers import coordinated, until_sent
from tests.client.producing import TOPIC, begun, made, producing

pytestmark = pytest.mark.virtual_time

ID = "payments"
INPUT = TopicPartition("input", 0)


# ---------------------------------------------------------------------------------------------------- how long it waits
async def test_a_commit_without_an_answer_says_so_and_may_be_asked_again() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            rule = cluster.on(EndTxnRequest, never(), times=None)
            began_ms = cluster.now_ms()
            txn = producer.transaction()
            with pytest.raises(CommitOutcomeUnknown, match="may still commit"):
                async with txn:
                    await txn.send(TOPIC, b"1")
            assert cluster.now_ms() - began_ms == pytest.approx(5_000, abs=100)
            with pytest.raises(TransactionOpen, match="being committed"):
                await producer.transaction().begin()
            with pytest.raises(CommitOutcomeUnknown):
                await txn.commit()
            rule.cancel()
            await txn.commit()
            assert txn.is_over
        assert coordinator.visible(TOPIC) == [b"1"]
        assert coordinator.model.decisions == [True]


async def test_a_commit_that_nobody_could_be_asked_for_is_an_abort() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            with pytest.raises(TransactionFailed, match="EndTxn"):
                async with producer.transaction() as txn:
                    await (await txn.send(TOPIC, b"1"))
                    cluster.brokers[0].stop()
                    await asyncio.sleep(0.1)  # the end of the connection is noticed
            cluster.brokers[0].start()
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"2")
        assert coordinator.visible(TOPIC) == [b"2"]
        assert coordinator.model.decisions == [False, True]


async def test_an_abort_without_an_answer_is_what_the_next_transaction_begins_by() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            rule = cluster.on(EndTxnRequest, never(applies=False), times=None)
            txn = await producer.transaction().begin()
            await (await txn.send(TOPIC, b"1"))
            with pytest.raises(RequestTimedOut, match="EndTxn"):
                await txn.abort()
            with pytest.raises(RequestTimedOut):
                await producer.transaction().begin()
            rule.cancel()
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"2")
        assert coordinator.visible(TOPIC) == [b"2"]
        assert coordinator.model.decisions == [False, True]


async def test_offsets_without_an_answer_make_the_transaction_an_abort() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            cluster.on(TxnOffsetCommitRequest, never(), times=None)
            with pytest.raises(TransactionFailed, match="TxnOffsetCommit"):
                async with producer.transaction() as txn:
                    await txn.send_offsets({INPUT: 7}, "billing")
        assert coordinator.visible("billing") == []


async def test_a_record_that_is_not_acknowledged_in_time_aborts_with_a_new_epoch() -> None:
    with coordinated(uses_v2=False) as (cluster, coordinator):
        settings = {"delivery_timeout_ms": 3_000, "request_timeout_ms": 2_000}
        async with producing(cluster, transactional_id=ID, **settings) as producer:
            rule = cluster.on(ProduceRequest, never(applies=False), times=None)
            with pytest.raises(TransactionFailed) as caught:
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"1")
            assert isinstance(caught.value.cause, DeliveryTimeout)
            rule.cancel()
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"2")
        assert coordinator.visible(TOPIC) == [b"2"]
        assert [each.producer_epoch for each in cluster.batches(TOPIC)] == [1]


async def test_an_abort_waits_for_what_is_on_the_wire() -> None:
    with coordinated(uses_v2=False) as (cluster, _):
        async with producing(cluster, transactional_id=ID, linger_ms=0) as producer:
            cluster.on(ProduceRequest, late(1_000))
            with pytest.raises(KeyError):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"1")
                    await until_sent(cluster)
                    raise KeyError
        [sent], [end] = cluster.exchanges_of(ProduceRequest), cluster.exchanges_of(EndTxnRequest)
        assert cluster.exchanges.index(sent) < cluster.exchanges.index(end)
        assert end.at_ms - sent.at_ms >= 1_000


async def test_a_start_without_a_coordinator_ends_in_time_and_leaves_nothing() -> None:
    with coordinated() as (cluster, coordinator):
        coordinator.refuses(FindCoordinatorRequest, ErrorCode.COORDINATOR_NOT_AVAILABLE, 10_000)
        began_ms = cluster.now_ms()
        with pytest.raises(RequestTimedOut, match="InitProducerId") as caught:
            await made(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000).start()
        assert cluster.now_ms() - began_ms == pytest.approx(5_000, abs=100)
        assert isinstance(caught.value.__cause__, BrokerError)


async def test_a_start_that_is_refused_says_why_and_leaves_nothing() -> None:
    with coordinated() as (cluster, coordinator):
        coordinator.refuses(InitProducerIdRequest, ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        with pytest.raises(TransactionFailed, match="INVALID_TRANSACTION_TIMEOUT"):
            await made(cluster, transactional_id=ID).start()


# ---------------------------------------------------------------------------------------------------------- being ended
async def test_a_commit_that_is_cancelled_before_it_was_asked_for_aborts() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, linger_ms=0) as producer:
            cluster.on(ProduceRequest, late(1_000))
            txn = await producer.transaction().begin()
            await txn.send(TOPIC, b"1")
            committing = begun(txn.commit())
            await until_sent(cluster)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"2")
        assert coordinator.visible(TOPIC) == [b"2"]


async def test_a_commit_that_is_cancelled_after_it_was_asked_for_goes_on() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            cluster.on(EndTxnRequest, late(1_000))
            txn = await producer.transaction().begin()
            await txn.send(TOPIC, b"1")
            committing = begun(txn.commit())
            while not cluster.count(EndTxnRequest):  # noqa: ASYNC110 - time is virtual
                await asyncio.sleep(0.001)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            await txn.commit()
        assert coordinator.visible(TOPIC) == [b"1"]
        assert cluster.count(EndTxnRequest) == 1


async def test_closing_the_producer_aborts_what_is_open() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = await producer.transaction().begin()
            await (await txn.send(TOPIC, b"1"))
            await txn.send(TOPIC, b"unsent")
        assert coordinator.model.decisions == [False]
        with pytest.raises(ProducerClosed):
            await txn.send(TOPIC, b"2")
        with pytest.raises(ProducerClosed):
            await txn.commit()


async def test_a_block_that_the_producer_is_closed_in_says_so_at_its_end() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn: Transaction | None = None
            with pytest.raises(ProducerClosed):
                async with producer.transaction() as txn:
                    await (await txn.send(TOPIC, b"1"))
                    await producer.close()
        assert coordinator.visible(TOPIC) == []


async def test_a_transaction_shows_what_it_is() -> None:
    with coordinated() as (cluster, _):
        producer: Producer
        async with producing(cluster, transactional_id=ID) as producer:
            async with producer.transaction() as txn:
                assert repr(txn) == "<Transaction of payments: open>"
            assert repr(txn) == "<Transaction of payments: committed>"


async def test_a_begin_that_waits_ends_with_the_producer() -> None:
    with coordinated(uses_v2=False) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            coordinator.refuses(InitProducerIdRequest, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 10_000)
            with pytest.raises(TransactionFailed):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"bad")
            beginning = begun(producer.transaction().begin())
            await asyncio.sleep(1)
            began_ms = cluster.now_ms()
            await producer.close()
            with pytest.raises(ProducerClosed):
                await beginning
            assert cluster.now_ms() - began_ms < 1_000
