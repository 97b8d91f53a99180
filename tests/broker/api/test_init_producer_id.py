"""InitProducerId gives each idempotent producer an id of its own, and is honest about failures."""

import errno

import pytest

from odradek.broker.cluster.keys import PRODUCER_IDS_KEY
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.support import ask, running_broker


def wanted(
    transactional_id: str | None = None, producer_id: int = -1, producer_epoch: int = -1
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


async def answered(request: InitProducerIdRequest, version: int = 5) -> InitProducerIdResponse:
    async with running_broker() as context:
        return await ask(context, request, version)


@pytest.mark.parametrize("version", range(6))
async def test_every_request_gets_a_fresh_id_with_epoch_0(version: int) -> None:
    async with running_broker() as context:
        answers = [await ask(context, wanted(), version) for _ in range(3)]
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE] * 3
    assert [answer.producer_epoch for answer in answers] == [0] * 3
    assert len({answer.producer_id for answer in answers}) == 3


async def test_ids_are_not_given_again_after_a_restart() -> None:
    store = MemoryStore()
    async with running_broker(store=store) as context:
        before = await ask(context, wanted(), 5)
        entry = (await store.read(PRODUCER_IDS_KEY)).entries[PRODUCER_IDS_KEY]
    successor = MemoryStore()
    await successor.commit(Txn(put={PRODUCER_IDS_KEY: entry.value}))
    async with running_broker(store=successor) as context:
        after = await ask(context, wanted(), 5)
    assert after.producer_id > before.producer_id


async def test_a_producer_that_brings_its_id_gets_another_one() -> None:
    async with running_broker() as context:
        first = await ask(context, wanted(), 4)
        second = await ask(context, wanted(producer_id=first.producer_id, producer_epoch=32_767), 4)
    assert second.error_code == ErrorCode.NONE
    assert second.producer_id != first.producer_id
    assert second.producer_epoch == 0


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(5, -1), (-1, 5)])
async def test_an_id_without_its_epoch_is_refused(producer_id: int, producer_epoch: int) -> None:
    answer = await answered(wanted(producer_id=producer_id, producer_epoch=producer_epoch))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (ErrorCode.INVALID_REQUEST, -1, -1)


async def test_a_block_that_cannot_be_stored_is_an_error_at_which_producers_ask_again() -> None:
    class FullStore(MemoryStore):
        async def commit(self, txn: Txn) -> int:
            if PRODUCER_IDS_KEY in txn.put:
                raise OSError(errno.ENOSPC, "no room")
            return await super().commit(txn)

    async with running_broker(store=FullStore()) as context:
        answer = await ask(context, wanted(), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ErrorCode(answer.error_code).retriable
