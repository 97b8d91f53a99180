"""InitProducerId with a transactional id: the same producer id each time, with a higher epoch (KIP-98, KIP-360)."""

import asyncio

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.txn.marker_writer import MarkerOrder, MarkerWriter, Written
from odradek.protocol.errors import ErrorCode
from tests.broker.support import running_broker
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    completed,
    described,
    running_transactions,
    state_of,
    use_up_epochs,
)

pytestmark = pytest.mark.virtual_time
VERSIONS = range(6)


@pytest.mark.parametrize("version", VERSIONS)
async def test_each_request_gets_the_same_id_with_the_next_epoch(version: int) -> None:
    async with running_transactions() as context:
        answers = [await Producer(context).ask_init(version=version) for _ in range(3)]
        assert [each.error_code for each in answers] == [ErrorCode.NONE] * 3
        assert [each.producer_epoch for each in answers] == [0, 1, 2]
        assert len({each.producer_id for each in answers}) == 1
        other = await Producer(context, "refunds").ask_init(version=version)
        assert (other.producer_id != answers[0].producer_id, other.producer_epoch) == (True, 0)
        assert await state_of(context) == "Empty"


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_producer_that_brings_its_epoch_may_ask_again(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        first = await producer.ask_init(version=version, brings=True)
        assert (first.producer_id, first.producer_epoch) == (producer.producer_id, 1)
        assert await producer.ask_init(version=version, brings=True) == first, "the answer was lost"


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_producer_that_was_replaced_is_told_so_as_its_version_knows_it(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await Producer(context).init()
        answer = await producer.ask_init(version=version, brings=True)
        fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (fenced, -1, -1)


async def test_used_up_epochs_give_another_id() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        use_up_epochs(context)
        answer = await producer.ask_init()
        assert (answer.producer_id != producer.producer_id, answer.producer_epoch) == (True, 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_time_out_that_may_not_be_is_refused(version: int, timeout_ms: int) -> None:
    async with running_transactions() as context:
        code = await Producer(context).init(version=version, timeout_ms=timeout_ms)
        assert code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (await described(context)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_answer_waits_for_the_end_of_what_was_begun_before(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """For a second; then the client asks again."""
    write, may_go_on = MarkerWriter.write, asyncio.Event()

    async def hold(writer: MarkerWriter, order: MarkerOrder) -> Written:
        await may_go_on.wait()
        return await write(writer, order)

    async with running_transactions() as context:
        first = Producer(context)
        await first.init()
        await first.send(b"a")
        monkeypatch.setattr(MarkerWriter, "write", hold)
        assert await Producer(context).init(version=version) is ErrorCode.CONCURRENT_TRANSACTIONS
        assert await state_of(context) == "PrepareAbort"
        waiting = asyncio.ensure_future(Producer(context).ask_init(version=version))
        await asyncio.sleep(0.5)
        assert not waiting.done()
        may_go_on.set()
        answer = await waiting
        assert answer.error_code == ErrorCode.NONE
        assert answer.producer_epoch > first.epoch + 1, "the abort has an epoch, too"
        assert await state_of(context) == "Empty"


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_may_not_use_the_id_gets_none(version: int) -> None:
    access = Denying((Operation.WRITE, of_transactional_id(PAYMENTS)))
    async with running_transactions(access=access) as context:
        refused = await Producer(context).init(version=version)
        assert refused is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await Producer(context, "refunds").init(version=version) is ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_empty_id_is_refused(version: int) -> None:
    async with running_transactions() as context:
        assert await Producer(context, "").init(version=version) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS)
async def test_before_somebody_has_looked_for_it_there_is_no_coordinator(version: int) -> None:
    async with running_broker() as context:
        answer = await Producer(context).ask_init(version=version)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.NOT_COORDINATOR, -1, -1)


async def test_an_id_that_has_expired_begins_again() -> None:
    settings = {
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    async with running_transactions(settings) as context:
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        await producer.end(commit=True)
        await completed(context)
        await asyncio.sleep(2)
        assert await producer.end(commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await producer.send(b"b") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        answer = await producer.ask_init(brings=True)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
        assert answer.producer_id != producer.producer_id
