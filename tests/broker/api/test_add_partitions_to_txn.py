"""AddPartitionsToTxn: all partitions or none for a producer; several transactions, each by itself, for brokers."""

import asyncio
from collections.abc import Mapping

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_topic, of_transactional_id
from odradek.broker.handling.context import Context
from odradek.broker.txn.marker_writer import MarkerOrder, MarkerWriter, Written
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.broker.support import LISTENER, ask, make_topic, running_broker
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Place,
    Producer,
    machine,
    running_transactions,
    state_of,
)

pytestmark = pytest.mark.virtual_time
OF_PRODUCERS, OF_BROKERS = range(4), range(4, 6)
FIRST, SECOND, UNKNOWN, NOWHERE = ("orders", 0), ("orders", 1), ("orders", 3), ("nowhere", 0)


async def new_producer(context: Context, transactional_id: str = PAYMENTS) -> Producer:
    producer = Producer(context, transactional_id, is_new=False)
    assert await producer.init() is ErrorCode.NONE
    return producer


def included(context: Context, transactional_id: str = PAYMENTS) -> set[Place]:
    return {*dict(machine(context, transactional_id).transactions)[transactional_id].partitions}


# -- producers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_partitions_are_added_to_those_before(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await producer.add(FIRST, version=version) == {FIRST: ErrorCode.NONE}
        assert await state_of(context) == "Ongoing"
        added = await producer.add(SECOND, FIRST, version=version)
        assert added == {SECOND: ErrorCode.NONE, FIRST: ErrorCode.NONE}
        assert included(context) == {FIRST, SECOND}


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_where_one_is_refused_the_others_are_not_attempted(version: int) -> None:
    async with running_transactions(access=Denying((Operation.WRITE, of_topic("secret")))) as context:
        producer = await new_producer(context)
        secret = ("secret", 0)
        assert await producer.add(FIRST, UNKNOWN, NOWHERE, secret, SECOND, version=version) == {
            FIRST: ErrorCode.OPERATION_NOT_ATTEMPTED,
            UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            NOWHERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            secret: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            SECOND: ErrorCode.OPERATION_NOT_ATTEMPTED,
        }
        assert await state_of(context) == "Empty"


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_a_partition_that_is_named_twice_is_answered_twice(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=PAYMENTS,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0, 1, 0])],
        )
        [topic] = (await ask(context, request, version)).results_by_topic_v3_and_below
        assert [(each.partition_index, each.partition_error_code) for each in topic.results_by_partition] == [
            (0, ErrorCode.NONE),
            (1, ErrorCode.NONE),
            (0, ErrorCode.NONE),
        ]


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_who_is_fenced_is_told_so_as_its_version_knows_it(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        await new_producer(context)
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert await producer.add(FIRST, SECOND, version=version) == {FIRST: fenced, SECOND: fenced}
        assert await state_of(context) == "Empty"


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_unknown_and_empty_ids_are_refused(version: int) -> None:
    async with running_transactions() as context:
        await new_producer(context)
        for transactional_id, producer_id, code in (
            ("unknown", 0, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            (PAYMENTS, 99, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            ("", 0, ErrorCode.INVALID_REQUEST),
        ):
            stranger = Producer(context, transactional_id)
            stranger.producer_id, stranger.epoch = producer_id, 0
            assert await stranger.add(FIRST, version=version) == {FIRST: code}


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_who_may_not_use_the_transactional_id_adds_nothing(version: int) -> None:
    access = Denying()
    async with running_transactions(access=access) as context:
        producer = await new_producer(context)
        access.denied = ((Operation.WRITE, of_transactional_id(PAYMENTS)),)
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await producer.add(FIRST, SECOND, version=version) == {FIRST: refused, SECOND: refused}


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_without_the_topic_of_transactions_there_is_no_coordinator(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        producer = Producer(context)
        producer.producer_id = producer.epoch = 0
        assert await producer.add(FIRST, version=version) == {FIRST: ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize("version", OF_PRODUCERS)
async def test_while_the_transaction_before_ends_the_answer_waits_a_second(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    write, may_go_on = MarkerWriter.write, asyncio.Event()

    async def hold(writer: MarkerWriter, order: MarkerOrder) -> Written:
        await may_go_on.wait()
        return await write(writer, order)

    async with running_transactions() as context:
        producer = await new_producer(context)
        await producer.add(FIRST)
        monkeypatch.setattr(MarkerWriter, "write", hold)
        await producer.end(commit=True)
        assert await producer.add(SECOND, version=version) == {SECOND: ErrorCode.CONCURRENT_TRANSACTIONS}
        adding = asyncio.ensure_future(producer.add(SECOND, version=version))
        await asyncio.sleep(0.5)
        assert not adding.done()
        may_go_on.set()
        assert await adding == {SECOND: ErrorCode.NONE}
        assert included(context) == {SECOND}


# -- brokers -------------------------------------------------------------------------------------------------------


def of(producer: Producer, *indexes: int, verify_only: bool) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name="orders", partitions=[*indexes])],
    )


async def answered(
    context: Context, *transactions: AddPartitionsToTxnTransaction, version: int, listener: str = LISTENER
) -> Mapping[str, list[ErrorCode]]:
    request = AddPartitionsToTxnRequest(transactions=[*transactions])
    answer = await ask(context, request, version, listener=listener)
    assert answer.error_code == ErrorCode.NONE
    return {
        result.transactional_id: [
            ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    }


@pytest.mark.parametrize("version", OF_BROKERS)
async def test_a_broker_hears_what_is_included(version: int) -> None:
    async with running_transactions() as context:
        first, second = await new_producer(context, "a"), await new_producer(context, "b")
        await first.add(FIRST)
        missing = ErrorCode.TRANSACTION_ABORTABLE if version >= 5 else ErrorCode.INVALID_TXN_STATE
        asked = of(first, 0, 1, verify_only=True), of(second, 0, verify_only=True)
        assert await answered(context, *asked, version=version) == {"a": [ErrorCode.NONE, missing], "b": [missing]}
        assert included(context, "a") == {FIRST}
        assert await state_of(context, "b") == "Empty"


@pytest.mark.parametrize("version", OF_BROKERS)
async def test_a_broker_has_partitions_included(version: int) -> None:
    async with running_transactions() as context:
        first, second = await new_producer(context, "a"), await new_producer(context, "b")
        await first.add(FIRST)
        asked = of(first, 1, 2, verify_only=False), of(second, 0, verify_only=True)
        missing = ErrorCode.TRANSACTION_ABORTABLE if version >= 5 else ErrorCode.INVALID_TXN_STATE
        assert await answered(context, *asked, version=version) == {"a": [ErrorCode.NONE] * 2, "b": [missing]}
        assert included(context, "a") == {FIRST, SECOND, ("orders", 2)}


@pytest.mark.parametrize("version", OF_BROKERS)
@pytest.mark.parametrize("verify_only", [True, False])
async def test_the_errors_of_a_transaction_are_those_of_its_partitions(version: int, verify_only: bool) -> None:
    async with running_transactions() as context:
        fenced, good, unknown = await new_producer(context, "a"), await new_producer(context, "b"), Producer(context)
        await new_producer(context, "a")
        await good.add(FIRST)
        asked = [of(each, 0, verify_only=verify_only) for each in (fenced, good, unknown)]
        assert await answered(context, *asked, version=version) == {
            "a": [ErrorCode.PRODUCER_FENCED],
            "b": [ErrorCode.NONE],
            PAYMENTS: [ErrorCode.INVALID_PRODUCER_ID_MAPPING],
        }


@pytest.mark.parametrize("version", OF_BROKERS)
async def test_nobody_but_brokers_asks_about_several(version: int) -> None:
    request = AddPartitionsToTxnRequest(transactions=[])
    async with running_broker() as context:
        answer = await ask(context, request, version, listener="EXTERNAL")
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    async with running_broker(access=Denying((Operation.CLUSTER_ACTION, CLUSTER))) as context:
        answer = await ask(context, request, version)
        assert (answer.error_code, answer.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
