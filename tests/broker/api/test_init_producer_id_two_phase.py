"""InitProducerId 6 (KIP-939): transactions that another system ends, and successors that keep what is under way."""

import asyncio

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.handling.context import CloseConnection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.support import ask
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    committed,
    completed,
    described,
    markers,
    running_transactions,
    stable_end,
    state_of,
)

pytestmark = pytest.mark.virtual_time
ENABLED = {"transaction.two.phase.commit.enable": "true"}
HOUR_S = 3_600
NOBODY = (-1, -1)


async def test_without_its_option_the_version_is_not_served() -> None:
    async with running_transactions() as context:
        with pytest.raises(CloseConnection, match="InitProducerId version 6 is not served; served are 0 to 5"):
            await Producer(context).ask_init(version=6)


async def test_a_version_before_cannot_ask_for_it() -> None:
    async with running_transactions(ENABLED) as context:
        assert await Producer(context).init(version=5, timeout_ms=2**31 - 1) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_a_transaction_in_two_phases_outlives_every_timeout() -> None:
    async with running_transactions(ENABLED) as context:
        producer, other = Producer(context), Producer(context, "one phase")
        answer = await producer.init_two_phase()
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == NOBODY
        await other.init()
        await producer.send(b"a")
        await other.send(b"b", index=1)
        await asyncio.sleep(HOUR_S / 2)
        assert await completed(context, "one phase") == "CompleteAbort"
        found = await described(context)
        assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 2**31 - 1)
        listed = await ask(context, ListTransactionsRequest(duration_filter=HOUR_S * 400), 2)
        assert [each.transactional_id for each in listed.transaction_states] == [PAYMENTS]
        assert await stable_end(context) == 0
        assert await producer.end(commit=True) is ErrorCode.NONE
        await completed(context)
        assert await committed(context) == [b"a"]


@pytest.mark.parametrize("commit", [True, False])
async def test_a_successor_that_keeps_it_is_told_whose_it_is_and_ends_it(commit: bool) -> None:
    async with running_transactions(ENABLED) as context:
        gone, successor = Producer(context), Producer(context)
        await gone.init_two_phase()
        await gone.send(b"a")
        await gone.send(b"b", index=1)
        answer = await successor.init_two_phase(keeps=True)
        assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == (gone.producer_id, gone.epoch)
        assert (answer.producer_id, answer.producer_epoch) == (gone.producer_id, gone.epoch + 1)
        assert await state_of(context) == "Ongoing"
        assert await gone.end(commit=not commit) is ErrorCode.PRODUCER_FENCED
        assert await successor.end(commit=commit) is ErrorCode.NONE
        await completed(context)
        assert await committed(context) == ([b"a"] if commit else [])
        assert await committed(context, 1) == ([b"b"] if commit else [])
        assert await markers(context) == [(gone.producer_id, gone.epoch + 1, not commit)]
        assert await successor.send(b"c") is ErrorCode.NONE, "a transaction of its own"
        assert await successor.end(commit=True) is ErrorCode.NONE
        await completed(context)
        assert (await committed(context))[-1:] == [b"c"]


async def test_a_successor_writes_nothing_before_it_has_ended_what_it_keeps() -> None:
    async with running_transactions(ENABLED) as context:
        gone, successor = Producer(context), Producer(context)
        await gone.init_two_phase()
        await gone.send(b"a")
        await successor.init_two_phase(keeps=True)
        for index in (0, 1):
            assert await successor.send(b"b", index=index) is ErrorCode.INVALID_TXN_STATE
        assert await successor.add(("orders", 2)) == {("orders", 2): ErrorCode.INVALID_TXN_STATE}
        assert await successor.end(commit=True) is ErrorCode.NONE
        await completed(context)
        assert await committed(context) == [b"a"]
        assert await committed(context, 1) == []


async def test_where_nothing_is_under_way_a_successor_is_told_so() -> None:
    async with running_transactions(ENABLED) as context:
        producer = Producer(context)
        for epoch in range(2):
            answer = await producer.init_two_phase(keeps=True)
            assert answer.producer_epoch == epoch
            assert (answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch) == NOBODY


async def test_a_producer_of_one_phase_may_keep_what_it_finds() -> None:
    async with running_transactions(ENABLED) as context:
        gone, successor = Producer(context), Producer(context)
        await gone.init()
        await gone.send(b"a")
        answer = await successor.ask_init(version=6, keeps=True)
        assert answer.ongoing_txn_producer_epoch == gone.epoch
        assert (await described(context)).transaction_timeout_ms == 60_000


async def test_an_operator_ends_it_as_any_other() -> None:
    """`odradek transactions abort` asks for a producer id, as a successor does."""
    async with running_transactions(ENABLED) as context:
        producer = Producer(context)
        await producer.init_two_phase()
        await producer.send(b"a")
        assert await Producer(context).init() is ErrorCode.NONE
        assert await stable_end(context) == 2
        assert await committed(context) == []
        assert await producer.end(commit=True) is ErrorCode.PRODUCER_FENCED


async def test_it_takes_a_permission_of_its_own() -> None:
    denied = (Operation.TWO_PHASE_COMMIT, of_transactional_id(PAYMENTS))
    async with running_transactions(ENABLED, access=Denying(denied)) as context:
        answer = await Producer(context).ask_init(version=6, is_two_phase=True)
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await Producer(context).ask_init(version=6)).error_code == ErrorCode.NONE
        assert (await Producer(context).ask_init(version=6, keeps=True)).error_code == ErrorCode.NONE
