"""Produce in transactions: the coordinator has to know of a transaction before its first batch is taken (KIP-890)."""

import asyncio

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic, of_transactional_id
from odradek.broker.handling.context import CloseConnection, Context
from odradek.broker.partitions.pending_opens import OPENED_AT_ONCE
from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.produce import ProduceRequest
from tests.broker.api.producing import answers, end_of, idempotent, request
from tests.broker.support import ask, ask_if_answered, make_topic
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    committed,
    completed,
    described,
    lead,
    running_transactions,
    stable_end,
    state_of,
)

pytestmark = pytest.mark.virtual_time
NEW, OLD = 12, (3, 7, 9, 10, 11)
FIRST = ("orders", 0)


async def new_producer(context: Context, transactional_id: str = PAYMENTS, *, is_new: bool = True) -> Producer:
    producer = Producer(context, transactional_id, is_new=is_new)
    assert await producer.init() is ErrorCode.NONE
    return producer


async def codes_of(context: Context, sent: ProduceRequest, version: int = NEW) -> list[ErrorCode]:
    return [ErrorCode(each.error_code) for each in answers(await ask(context, sent, version))]


# -- which versions need what --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OLD)
async def test_before_version_12_the_partition_has_to_be_added_first(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        unknown = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
        assert await producer.send(b"a", version=version) is unknown
        assert end_of(context) == 0
        await producer.add(("orders", 1))
        producer.sequences.clear()
        assert await producer.send(b"a", version=version) is unknown, "that is another partition"
        await producer.add(FIRST)
        producer.sequences.clear()
        assert await producer.send(b"a", version=version) is ErrorCode.NONE
        assert await producer.send(b"b", version=version) is ErrorCode.NONE
        assert end_of(context) == 2


@pytest.mark.parametrize("version", [12, 13])
async def test_from_version_12_on_the_batch_begins_the_transaction(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await state_of(context) == "Empty"
        assert await producer.send(b"a", topic="nothing", version=version) is (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version == 12 else ErrorCode.UNKNOWN_TOPIC_ID
        )
        assert await state_of(context) == "Empty"
        assert await producer.send(b"a", index=2, version=version) is ErrorCode.NONE
        told = await described(context)
        assert (told.transaction_state, told.topics[0].partitions) == ("Ongoing", [2])


async def test_without_verification_an_old_producer_needs_no_adding() -> None:
    async with running_transactions({"transaction.partition.verification.enable": "false"}) as context:
        producer = await new_producer(context, is_new=False)
        assert await producer.send(b"a") is ErrorCode.NONE
        assert await state_of(context) == "Empty"


async def test_a_batch_of_a_transaction_that_nobody_began_is_refused() -> None:
    async with running_transactions() as context:
        await new_producer(context, "another")
        sent = request((0, idempotent(0, txn=True)), transactional_id=PAYMENTS)
        for version in (OLD[-1], NEW):
            assert await codes_of(context, sent, version) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert end_of(context) == 0


async def test_a_partition_that_was_not_open_yet_is_included_with_its_first_batch() -> None:
    """Those of a new topic are opened a few at a time, or when they are asked for."""
    async with running_transactions() as context:
        producer = await new_producer(context)
        await make_topic(context, "many", 3 * OPENED_AT_ONCE)
        assert context.partitions.open_at("many", 3 * OPENED_AT_ONCE - 1) is None
        assert await producer.send(b"a", topic="many", index=3 * OPENED_AT_ONCE - 1) is ErrorCode.NONE


# -- who may -------------------------------------------------------------------------------------------------------


async def test_who_may_not_use_the_transactional_id_writes_nothing() -> None:
    access = Denying()
    async with running_transactions(access=access) as context:
        producer = await new_producer(context)
        access.denied = ((Operation.WRITE, of_transactional_id(PAYMENTS)),)
        assert await producer.send(b"a") is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert end_of(context) == 0


async def test_no_batch_joins_an_open_transaction_without_its_transactional_id() -> None:
    """It would go round the question whether the client may use that id."""
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await producer.send(b"a") is ErrorCode.NONE
        [code] = await codes_of(context, request((0, producer.batch(b"b"))))
        assert code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert end_of(context) == 1


async def test_a_topic_that_may_not_be_written_to_is_not_included() -> None:
    async with running_transactions(access=Denying((Operation.WRITE, of_topic("orders")))) as context:
        producer = await new_producer(context)
        assert await producer.send(b"a") is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await state_of(context) == "Empty"


async def test_a_topic_of_the_brokers_is_not_included() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await producer.send(b"a", topic="__consumer_offsets") is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await state_of(context) == "Empty"


async def test_an_unknown_partition_is_not_included() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await producer.send(b"a", index=3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await producer.send(b"a", topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await state_of(context) == "Empty"


# -- several batches -----------------------------------------------------------------------------------------------


async def test_two_producers_in_one_request_are_refused_as_in_kafka() -> None:
    async with running_transactions() as context:
        first, second = await new_producer(context, "a"), await new_producer(context, "b")
        sent = request((0, first.batch(b"a")), (1, second.batch(b"b", place=("orders", 1))), transactional_id="a")
        assert await codes_of(context, sent) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert [end_of(context, index) for index in (0, 1)] == [0, 0]
        assert await state_of(context, "a") == "Empty"


async def test_two_batches_for_one_partition_are_appended_in_order() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        sent = request((0, producer.batch(b"a")), (0, producer.batch(b"b")), transactional_id=PAYMENTS)
        assert await codes_of(context, sent) == [ErrorCode.NONE] * 2
        await producer.end(commit=True)
        await completed(context)
        assert await committed(context) == [b"a", b"b"]


async def test_partitions_that_fail_leave_the_others_alone() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        damaged = bytearray(producer.batch(b"b", place=("orders", 1)))
        damaged[-1] ^= 1
        sent = request((0, producer.batch(b"a")), (1, damaged), (2, None), (3, b"short"), transactional_id=PAYMENTS)
        assert await codes_of(context, sent) == [
            ErrorCode.NONE,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


async def test_batches_sent_one_behind_the_other_are_appended_in_order() -> None:
    """All of them ask the coordinator: none of them has been appended when the next one comes."""
    async with running_transactions() as context:
        producer = await new_producer(context)
        codes = await asyncio.gather(*(producer.send(b"%d" % number) for number in range(5)))
        assert codes == [ErrorCode.NONE] * 5
        await producer.end(commit=True)
        await completed(context)
        assert await committed(context) == [b"%d" % number for number in range(5)]


# -- acks ----------------------------------------------------------------------------------------------------------


async def test_acks_1_is_enough_for_a_transaction() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        assert await producer.send(b"a", acks=1) is ErrorCode.NONE
        await producer.end(commit=True)
        await completed(context)
        assert await committed(context) == [b"a"]


async def test_acks_0_is_appended_or_the_connection_is_closed() -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        sent = request((0, producer.batch(b"a")), acks=0, transactional_id=PAYMENTS)
        assert await ask_if_answered(context, sent, NEW) is None
        assert (end_of(context), await state_of(context)) == (1, "Ongoing")
        late = request((1, producer.batch(b"a", place=("orders", 1))), acks=0, transactional_id=PAYMENTS)
        with pytest.raises(CloseConnection, match="TRANSACTION_ABORTABLE"):
            await ask_if_answered(context, late, 11)


# -- the end -------------------------------------------------------------------------------------------------------


async def test_a_batch_that_races_with_the_end_is_not_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator has said yes, and the transaction ends before the partition hears of it."""
    asked = Inclusions.ask

    async with running_transactions() as context:
        producer = await new_producer(context, is_new=False)
        await producer.add(FIRST)

        async def ask_and_end(inclusions: Inclusions, question: Inclusion) -> Included:
            answer = await asked(inclusions, question)
            assert await producer.end(commit=False) is ErrorCode.NONE
            await completed(context)
            return answer

        monkeypatch.setattr(Inclusions, "ask", ask_and_end)
        assert await producer.send(b"a") is ErrorCode.INVALID_TXN_STATE
        assert await stable_end(context) == end_of(context) == 1, "the marker alone"


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.PRODUCER_FENCED, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 12, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
async def test_a_coordinators_refusal_is_told_as_producers_know_it(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, version: int, told: ErrorCode
) -> None:
    async def refuse(inclusions: Inclusions, question: Inclusion) -> Included:
        del inclusions, question
        raise KafkaError(code, "because")

    async with running_transactions() as context:
        producer = await new_producer(context)
        monkeypatch.setattr(Inclusions, "ask", refuse)
        assert await producer.send(b"a", version=version) is told
        assert end_of(context) == 0


async def test_a_coordinator_that_cannot_be_reached_is_asked_again_by_the_client() -> None:
    """Another broker leads the partition of `__transaction_state`, and it is not there."""
    async with running_transactions() as context:
        producer = await new_producer(context)
        index = context.transactions.shards.index_of(PAYMENTS)
        assert index is not None
        await lead(context, "__transaction_state", index, 1)
        assert await producer.send(b"a") is ErrorCode.NOT_ENOUGH_REPLICAS
        assert end_of(context) == 0
