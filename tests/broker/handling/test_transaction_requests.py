"""How handlers ask the coordinator of a transaction, and which clients know PRODUCER_FENCED."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.handling.transaction_requests import ask_coordinator, known_to, require_write
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.transaction import Transaction
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.support import call, running_broker
from tests.broker.transactions import PAYMENTS, Denying, Producer, running_transactions

pytestmark = pytest.mark.virtual_time


def describing(machine: TransactionMachine, waiting: Waiting[Transaction], now: Now) -> None:
    machine.describe(PAYMENTS, waiting, now)


async def test_the_machine_of_the_ids_shard_answers() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        found = await ask_coordinator(context, call(), PAYMENTS, describing)
        assert found.identity == (producer.producer_id, producer.epoch)


async def test_without_an_id_or_a_coordinator_nobody_is_asked() -> None:
    async with running_broker() as context:
        for transactional_id, code in (("", ErrorCode.INVALID_REQUEST), (PAYMENTS, ErrorCode.NOT_COORDINATOR)):
            with pytest.raises(KafkaError) as raised:
                await ask_coordinator(context, call(), transactional_id, describing)
            assert raised.value.code is code


async def test_whoever_writes_with_an_id_has_to_be_allowed_to() -> None:
    async with running_broker(access=Denying((Operation.WRITE, of_transactional_id("secret")))) as context:
        require_write(context, call(), PAYMENTS)
        with pytest.raises(KafkaError) as raised:
            require_write(context, call(), "secret")
        assert raised.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "since", "known"), [(1, 2, False), (2, 2, True), (3, 4, False), (4, 4, True)])
async def test_old_clients_know_an_invalid_epoch_only(version: int, since: int, known: bool) -> None:
    fenced = KafkaError(ErrorCode.PRODUCER_FENCED, "because")
    told = known_to(call(version=version), fenced, PAYMENTS, fenced_since=since)
    assert told.code is (ErrorCode.PRODUCER_FENCED if known else ErrorCode.INVALID_PRODUCER_EPOCH)
    assert "because" in told.message
    other = KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, "because")
    assert known_to(call(version=version), other, PAYMENTS, fenced_since=since) is other
