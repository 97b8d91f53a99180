"""Transactions on a scripted cluster when something fails: what aborts them, what ends the producer, what passes."""

import asyncio

import pytest

from odradek.client.errors.broker_errors import AuthorizationError, BrokerError, ProducerFenced
from odradek.client.errors.client_errors import BatchError, UnsupportedVersion
from odradek.client.errors.transaction_errors import (
    TransactionFailed,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.broker_faults import disconnect_after, disconnect_before, late
from tests.client.coordinator_handlers import coordinated, until_sent
from tests.client.producing import TOPIC, producing, turns
from tests.client.transaction_driver import Member

pytestmark = pytest.mark.virtual_time

ID = "payments"
INPUT = TopicPartition("input", 0)
both_versions = pytest.mark.parametrize("uses_v2", [False, True], ids=["v1", "v2"])


# ----------------------------------------------------------------------------------------------------------- what fails
@both_versions
async def test_a_record_that_fails_makes_the_commit_an_abort(uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            with pytest.raises(TransactionFailed, match="INVALID_RECORD") as caught:
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"bad")
            assert caught.value.cause is not None
            assert (caught.value.cause.code, caught.value.retriable) == (ErrorCode.INVALID_RECORD, True)
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"good")
        assert coordinator.visible(TOPIC) == [b"good"]
        assert coordinator.model.decisions == ([True] if uses_v2 else [False, True])
        asked = cluster.requests(InitProducerIdRequest)
        identities = [(each.producer_id, each.producer_epoch) for each in asked]
        assert identities == [(-1, -1)] if uses_v2 else [(-1, -1), (1_000, 0)]
        assert [(each.producer_epoch, each.base_sequence) for each in cluster.batches(TOPIC)] == [(1, 0)]


async def test_what_waits_to_be_sent_fails_with_the_transaction_and_at_once() -> None:
    with coordinated(partitions=2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, linger_ms=60_000) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            cluster.on(ProduceRequest, late(100))
            began_ms = cluster.now_ms()
            with pytest.raises(TransactionFailed, match="TOPIC_AUTHORIZATION_FAILED"):
                async with producer.transaction() as txn:
                    bad = await txn.send(TOPIC, bytes(20_000), partition=0)
                    await until_sent(cluster)
                    other = await txn.send(TOPIC, b"lingers", partition=1)
                    found = await producer.gather([bad, other], return_exceptions=True)
                    assert [type(each) for each in found] == [AuthorizationError, TransactionFailed]
                    assert cluster.now_ms() - began_ms < 1_000


async def test_a_transaction_that_has_failed_accepts_nothing_more() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            with pytest.raises(TransactionFailed, match="INVALID_RECORD"):
                async with producer.transaction() as txn:
                    bad = await txn.send(TOPIC, b"bad")
                    await producer.gather([bad], return_exceptions=True)
                    await turns(2)
                    with pytest.raises(TransactionFailed, match="INVALID_RECORD"):
                        await txn.send(TOPIC, b"1")
                    with pytest.raises(TransactionFailed, match="INVALID_RECORD"):
                        txn.send_nowait(TOPIC, b"1")
                    with pytest.raises(BatchError) as caught:
                        await txn.send_batch(TOPIC, [b"1"])
                    assert isinstance(caught.value.stopped_by, TransactionFailed)
        assert cluster.count(ProduceRequest) == 1


async def test_failures_within_a_transaction_are_not_told_again_at_the_close() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            with pytest.raises(TransactionFailed):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"bad")
            await producer.flush()


@both_versions
async def test_who_is_fenced_can_only_close(uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as first, producing(cluster, transactional_id=ID) as second:
            for _ in range(2):
                with pytest.raises(ProducerFenced, match="PRODUCER_FENCED"):
                    async with first.transaction() as txn:
                        await txn.send(TOPIC, b"zombie")
            async with second.transaction() as txn:
                await txn.send(TOPIC, b"alive")
        assert coordinator.visible(TOPIC) == [b"alive"]


async def test_a_second_producer_ends_what_the_first_had_begun() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as first:
            txn = await first.transaction().begin()
            await (await txn.send(TOPIC, b"half"))
            async with producing(cluster, transactional_id=ID):
                assert coordinator.model.decisions == [False]
            with pytest.raises(ProducerFenced):
                await txn.commit()


@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_TXN_STATE])
async def test_an_end_that_nothing_can_cure_is_fatal(code: ErrorCode) -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(EndTxnRequest, code)
            for _ in range(2):
                with pytest.raises((BrokerError, TransactionFailed), match=code.name) as caught:
                    async with producer.transaction() as txn:
                        await txn.send(TOPIC, b"1")
                assert caught.value.fatal


async def test_offsets_that_the_group_refuses_abort_the_transaction() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(TxnOffsetCommitRequest, ErrorCode.ILLEGAL_GENERATION)
            with pytest.raises(TransactionFailed, match="ILLEGAL_GENERATION"):
                async with producer.transaction() as txn:
                    await (await txn.send(TOPIC, b"1"))
                    with pytest.raises(TransactionFailed):
                        await txn.send_offsets({INPUT: 7}, Member())
                    with pytest.raises(TransactionFailed):
                        await txn.send_offsets({INPUT: 8}, Member())
        assert coordinator.model.decisions == [False]


async def test_a_broker_too_old_for_the_next_epoch_is_told_by_name() -> None:
    with coordinated(uses_v2=False) as (cluster, coordinator):
        cluster.brokers[0].versions[InitProducerIdRequest] = (0, 1)
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            with pytest.raises(UnsupportedVersion, match="InitProducerId") as caught:
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"bad")
            assert isinstance(caught.value.__cause__, TransactionFailed)
            with pytest.raises(UnsupportedVersion, match="InitProducerId"):
                await producer.transaction().begin()


# ---------------------------------------------------------------------------------------------------------- what passes
@both_versions
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    ],
    ids=lambda code: code.name,
)
async def test_what_passes_is_waited_for_everywhere(code: ErrorCode, uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        coordinator.refuses(FindCoordinatorRequest, code)
        for kind in (InitProducerIdRequest, AddPartitionsToTxnRequest, AddOffsetsToTxnRequest, TxnOffsetCommitRequest):
            coordinator.refuses(kind, code, 2)
        coordinator.refuses(EndTxnRequest, code, 2)
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction() as txn:
            await txn.send(TOPIC, b"1")
            await txn.send_offsets({INPUT: 7}, "billing")
        assert coordinator.visible(TOPIC) == [b"1"]
        assert coordinator.visible("billing") == [("input", 0, 7)]


@both_versions
@pytest.mark.parametrize("fault", [disconnect_before(), disconnect_after()], ids=["before", "after"])
@pytest.mark.parametrize(
    "kind",
    [
        FindCoordinatorRequest,
        InitProducerIdRequest,
        AddPartitionsToTxnRequest,
        ProduceRequest,
        AddOffsetsToTxnRequest,
        TxnOffsetCommitRequest,
        EndTxnRequest,
    ],
    ids=lambda kind: kind.__name__,
)
async def test_a_lost_connection_loses_and_doubles_nothing(kind: type, fault: object, uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        cluster.on(kind, fault)  # type: ignore[arg-type]
        async with producing(cluster, transactional_id=ID) as producer:
            for number in range(2):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"%d" % number)
                    await txn.send_offsets({INPUT: number}, "billing")
        assert coordinator.visible(TOPIC) == [b"0", b"1"]
        assert set(coordinator.visible("billing")) == {("input", 0, 0), ("input", 0, 1)}
        assert coordinator.model.decisions == [True, True]


async def test_a_batch_that_comes_before_the_last_markers_waits_a_moment() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, linger_ms=0) as producer:
            coordinator.refuses(ProduceRequest, ErrorCode.CONCURRENT_TRANSACTIONS)
            began_ms = cluster.now_ms()
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"1")
            assert 10 < cluster.now_ms() - began_ms < 50


async def test_a_broker_that_comes_back_in_the_middle_is_gone_on_with() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction() as txn:
            await (await txn.send(TOPIC, b"1"))
            cluster.brokers[0].stop()
            second = await txn.send(TOPIC, b"2")
            await asyncio.sleep(5)
            cluster.brokers[0].start()
            await second
        assert coordinator.visible(TOPIC) == [b"1", b"2"]
