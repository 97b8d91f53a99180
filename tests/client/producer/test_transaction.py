"""Transactions of a producer on a scripted cluster, in virtual time: what is sent, what is told, and when it ends.

What `visible` has is what a reader of committed records sees.
"""

from collections.abc import Mapping

import pytest

from odradek.client.errors.client_errors import BatchError, ClientError, WrongLoop, WrongUse
from odradek.client.errors.transaction_errors import (
    NoTransaction,
    NoTransactionalId,
    TransactionFailed,
    TransactionOpen,
    TransactionOver,
)
from odradek.client.offset_commit import Committed, OffsetsToCommit
from odradek.client.producer.results.delivery import Delivery
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.broker_faults import late
from tests.client.coordinator_handlers import coordinated
from tests.client.producing import TOPIC, begun, producing, turns
from tests.client.transaction_driver import Member, Offset

pytestmark = pytest.mark.virtual_time

ID = "payments"
INPUT = TopicPartition("input", 0)
both_versions = pytest.mark.parametrize("uses_v2", [False, True], ids=["v1", "v2"])


# -------------------------------------------------------------------------------------------------------------- the way
@both_versions
async def test_what_was_sent_in_the_block_is_committed_at_its_end(uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (_, coordinator):
        async with producing(_, transactional_id=ID) as producer:
            async with producer.transaction() as txn:
                delivery = await txn.send(TOPIC, b"1")
                txn.send_nowait(TOPIC, b"2")
                assert len(await txn.send_batch(TOPIC, [b"3", b"4"])) == 2
                assert coordinator.visible(TOPIC) == []
            assert coordinator.visible(TOPIC) == [b"1", b"2", b"3", b"4"]
            assert (await delivery).offset == 0
            assert txn.is_over


async def test_version_one_names_partitions_and_keeps_its_epoch() -> None:
    with coordinated(uses_v2=False) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            for number in range(3):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"%d" % number)
        assert len(coordinator.visible(TOPIC)) == 3
        assert cluster.count(InitProducerIdRequest) == 1
        assert coordinator.asked(AddPartitionsToTxnRequest) == [3, 3, 3]
        assert coordinator.asked(ProduceRequest) == [11, 11, 11]
        assert coordinator.asked(EndTxnRequest) == [4, 4, 4]
        batches = cluster.batches(TOPIC)
        assert [(each.producer_epoch, each.base_sequence) for each in batches] == [(0, 0), (0, 1), (0, 2)]


async def test_version_two_names_nothing_and_has_an_epoch_for_each() -> None:
    with coordinated(uses_v2=True) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            for number in range(3):
                async with producer.transaction() as txn:
                    await txn.send(TOPIC, b"%d" % number)
        assert len(coordinator.visible(TOPIC)) == 3
        assert cluster.count(AddPartitionsToTxnRequest) == 0
        assert coordinator.asked(ProduceRequest) == [12, 12, 12]
        assert coordinator.asked(EndTxnRequest) == [5, 5, 5]
        batches = cluster.batches(TOPIC)
        assert [(each.producer_epoch, each.base_sequence) for each in batches] == [(0, 0), (1, 0), (2, 0)]


async def test_a_transaction_ends_under_the_version_that_it_began_with() -> None:
    with coordinated(uses_v2=False) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            async with producer.transaction() as txn:
                await (await txn.send(TOPIC, b"1"))
                coordinator.upgrades()
                await txn.send(TOPIC, b"2")
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"3")
        assert coordinator.asked(ProduceRequest) == [11, 11, 12]
        assert coordinator.asked(EndTxnRequest) == [4, 5]
        assert coordinator.visible(TOPIC) == [b"1", b"2", b"3"]


@both_versions
async def test_an_exception_aborts_and_goes_on(uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            unsent: list[Delivery] = []
            with pytest.raises(KeyError):
                async with producer.transaction() as txn:
                    await (await txn.send(TOPIC, b"gone"))
                    unsent.append(await txn.send(TOPIC, b"never sent"))
                    raise KeyError("of the program")
            with pytest.raises(TransactionFailed, match="was aborted"):
                await unsent[0]
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"next")
        assert coordinator.visible(TOPIC) == [b"next"]
        assert coordinator.model.decisions == [False, True]


async def test_commit_and_abort_can_be_called_by_themselves() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = await producer.transaction().begin()
            await txn.send(TOPIC, b"1")
            await txn.commit()
            async with producer.transaction() as txn:
                await (await txn.send(TOPIC, b"2"))
                await txn.abort()
        assert coordinator.model.decisions == [True, False]
        assert coordinator.visible(TOPIC) == [b"1"]


@both_versions
async def test_offsets_are_committed_with_the_records(uses_v2: bool) -> None:
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction() as txn:
            await txn.send_offsets({INPUT: 7}, Member())
            await txn.send(TOPIC, b"1")
        assert coordinator.visible("billing") == [("input", 0, 7)]
        assert cluster.count(AddOffsetsToTxnRequest) == (0 if uses_v2 else 1)
        [request] = cluster.requests(TxnOffsetCommitRequest)
        assert (request.member_id, request.generation_id) == ("member-1", 4)


async def test_a_transaction_without_anything_asks_nothing() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer:
            async with producer.transaction():
                pass
            with pytest.raises(KeyError):
                async with producer.transaction():
                    raise KeyError
        assert cluster.count(EndTxnRequest) == 0


# ------------------------------------------------------------------------------------------------------ what is refused
async def test_a_transactional_producer_sends_nothing_outside_of_a_transaction() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            await producer.prepare(TOPIC)
            async with producer.transaction():
                for send in (producer.send, producer.send_batch):
                    with pytest.raises(NoTransaction, match=r"txn\.send"):
                        await send(TOPIC, [b"1"])
                with pytest.raises(NoTransaction):
                    producer.send_nowait(TOPIC, b"1")
        assert cluster.count(ProduceRequest) == 0
        assert coordinator.model.decisions == []


async def test_a_producer_without_an_id_has_no_transactions() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster) as producer:
            with pytest.raises(NoTransactionalId):
                producer.transaction()


async def test_a_transaction_that_is_over_refuses_everything() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = producer.transaction()
            with pytest.raises(TransactionOver, match="not begun"):
                await txn.send(TOPIC, b"1")
            async with txn:
                await txn.send(TOPIC, b"1")
            async with producer.transaction():  # also while the next one is open
                for call in (txn.send(TOPIC), txn.send_batch(TOPIC, []), txn.send_offsets({}, "g"), txn.begin()):
                    with pytest.raises(TransactionOver, match="committed"):
                        await call
                for call in (txn.commit(), txn.abort()):
                    with pytest.raises(TransactionOver):
                        await call
                with pytest.raises(TransactionOver):
                    txn.send_nowait(TOPIC)


async def test_a_producer_has_one_transaction_at_a_time() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction():
            with pytest.raises(TransactionOpen):
                await producer.transaction().begin()


async def test_a_send_that_waits_while_its_transaction_ends_is_in_no_other() -> None:
    with coordinated() as (cluster, coordinator):
        settings = {"transactional_id": ID, "buffer_memory": 8_000, "linger_ms": 0}
        async with producing(cluster, **settings) as producer:
            async with producer.transaction() as txn:
                cluster.on(ProduceRequest, late(500))
                await txn.send(TOPIC, bytes(5_000))
                waiting = begun(txn.send(TOPIC, bytes(5_001)))
                bulk = begun(txn.send_batch(TOPIC, [bytes(5_002)] * 2))
                await turns(5)
                assert not waiting.done()
            with pytest.raises(TransactionOver):
                await waiting
            with pytest.raises(BatchError) as caught:
                await bulk
            assert isinstance(caught.value.stopped_by, TransactionOver)
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"next")
        assert coordinator.visible(TOPIC) == [bytes(5_000), b"next"]


async def test_offsets_need_a_group_and_are_whole_numbers() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction() as txn:
            with pytest.raises(TypeError, match="group"):
                await txn.send_offsets({INPUT: 7})  # type: ignore[call-overload]
            with pytest.raises(TypeError, match="what"):
                await txn.send_offsets("input")  # type: ignore[call-overload]
            with pytest.raises(ValueError, match="0 or more"):
                await txn.send_offsets({INPUT: -1}, "billing")


class Source:
    """A consumer that has been told to have these offsets, or why it has none."""

    def __init__(self, told: OffsetsToCommit | ClientError) -> None:
        self.told = told
        self.committed: list[dict[TopicPartition, int]] = []
        self.asked: list[object] = []

    def offsets_for_transaction(self, last: object | None = None) -> OffsetsToCommit:
        self.asked.append(last)
        if isinstance(self.told, ClientError):
            raise self.told
        return self.told

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        self.committed.append({partition: each.offset for partition, each in offsets.items()})


async def test_a_consumer_hears_of_its_offsets_once_they_are_committed() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            source = Source(OffsetsToCommit(Member(), {INPUT: Offset(7)}))
            async with producer.transaction() as txn:
                await txn.send_offsets(source)
                source.told = OffsetsToCommit(Member(), {INPUT: Offset(9)})
                await txn.send_offsets(source)
                assert source.committed == []
            assert source.committed == [{INPUT: 9}]
            with pytest.raises(KeyError):
                async with producer.transaction() as txn:
                    await txn.send_offsets(source)
                    raise KeyError
            assert len(source.committed) == 1
        assert coordinator.visible("billing") == [("input", 0, 7), ("input", 0, 9)]


async def test_a_consumer_is_asked_for_the_end_of_what_is_given_beside_it() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            source, record = Source(OffsetsToCommit(Member(), {INPUT: Offset(7)})), object()
            async with producer.transaction() as txn:
                await txn.send_offsets(record, source)
            assert (source.asked, source.committed) == ([record], [{INPUT: 7}])
        assert coordinator.visible("billing") == [("input", 0, 7)]


async def test_a_consumer_that_cannot_tell_its_offsets_makes_an_abort_of_it() -> None:
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = await producer.transaction().begin()
            await (await txn.send(TOPIC, b"1"))
            for call in (txn.send_offsets(Source(ClientError("taken away"))), txn.commit()):
                with pytest.raises(TransactionFailed, match="taken away"):
                    await call
            async with producer.transaction() as txn:
                await txn.send(TOPIC, b"2")
                with pytest.raises(WrongUse, match="auto-commit"):
                    await txn.send_offsets(Source(WrongUse("auto-commit")))
        assert coordinator.model.decisions == [False, True]


async def test_a_forked_child_is_refused() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction() as txn:
            before = producer._state, producer._own_thread_id, txn._thread_id  # pyright: ignore[reportPrivateUsage]
            producer.was_forked()
            with pytest.raises(WrongLoop, match="forked"):
                await txn.send(TOPIC, b"1")
            producer._state, producer._own_thread_id, txn._thread_id = before  # pyright: ignore[reportPrivateUsage]
