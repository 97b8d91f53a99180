"""EndTxn: a transaction is committed or aborted; since version 5 the answer says with what its producer goes on."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.txn.transaction import EPOCH_MAX
from odradek.protocol.errors import ErrorCode
from tests.broker.support import running_broker
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    completed,
    running_transactions,
    state_of,
    use_up_epochs,
)

pytestmark = pytest.mark.virtual_time
VERSIONS = pytest.mark.parametrize("version", range(6))
FIRST = ("orders", 0)


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
async def test_a_transaction_ends_as_its_producer_wants(version: int, commit: bool) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.add(FIRST)
        answer = await producer.ask_end(commit=commit, version=version)
        assert answer.error_code == ErrorCode.NONE
        goes_on_with = (producer.producer_id, 1) if version >= 5 else (-1, -1)
        assert (answer.producer_id, answer.producer_epoch) == goes_on_with
        assert await completed(context) == ("CompleteCommit" if commit else "CompleteAbort")


@VERSIONS
async def test_without_a_transaction_there_is_nothing_to_commit(version: int) -> None:
    """Nor to abort, before version 5: from then on an abort gives a new epoch, whatever was under way (KIP-890)."""
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        answer = await producer.ask_end(commit=True, version=version)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.INVALID_TXN_STATE, -1)
        answer = await producer.ask_end(commit=False, version=version)
        if version < 5:
            assert answer.error_code == ErrorCode.INVALID_TXN_STATE
        else:
            assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 1)


@VERSIONS
async def test_the_other_end_is_refused_once_it_is_decided(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.add(FIRST)
        await producer.ask_end(commit=True, version=version)
        assert (await producer.ask_end(commit=False, version=version)).error_code == ErrorCode.INVALID_TXN_STATE
        assert await completed(context) == "CompleteCommit"


async def test_used_up_epochs_give_another_id_with_the_end() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        use_up_epochs(context)
        producer.epoch = EPOCH_MAX
        assert await producer.send(b"a") is ErrorCode.NONE
        answer = await producer.ask_end(commit=True)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
        assert answer.producer_id != producer.producer_id
        assert await completed(context) == "CompleteCommit"
        assert await producer.ask_end(commit=True) == answer, "the answer was lost"


@VERSIONS
async def test_who_is_fenced_is_told_so_as_its_version_knows_it(version: int) -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        for _ in range(2):
            await Producer(context).init()
        answer = await producer.ask_end(commit=True, version=version)
        fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (fenced, -1, -1)


@VERSIONS
async def test_unknown_and_empty_ids_are_refused(version: int) -> None:
    async with running_transactions() as context:
        for transactional_id, code in (
            ("unknown", ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            ("", ErrorCode.INVALID_REQUEST),
        ):
            stranger = Producer(context, transactional_id)
            stranger.producer_id = stranger.epoch = 0
            assert await stranger.end(commit=True, version=version) is code


@VERSIONS
async def test_who_may_not_use_the_transactional_id_ends_nothing(version: int) -> None:
    access = Denying()
    async with running_transactions(access=access) as context:
        producer = Producer(context)
        await producer.init()
        await producer.add(FIRST)
        access.denied = ((Operation.WRITE, of_transactional_id(PAYMENTS)),)
        refused = await producer.end(commit=True, version=version)
        assert refused is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await state_of(context) == "Ongoing"


@VERSIONS
async def test_without_the_topic_of_transactions_there_is_no_coordinator(version: int) -> None:
    async with running_broker() as context:
        stranger = Producer(context)
        stranger.producer_id = stranger.epoch = 0
        assert await stranger.end(commit=True, version=version) is ErrorCode.NOT_COORDINATOR
