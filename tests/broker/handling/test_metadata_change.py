"""`MetadataChange`: whole whatever becomes of the client and its time, and visible before the answer."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Change, Conflict, LeaseLost, StoreClosed, TooLarge, Txn
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.support import call, running_broker

LONG_MS = 10_000


class Gated(MemoryStore):
    """Its followers see no change until `gate` opens."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        async for change in super().watch(prefix, after):
            await self.gate.wait()
            yield change


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_change_is_made_when_the_image_shows_it() -> None:
    store = Gated()
    async with running_broker(store=store) as context:
        changes = MetadataChange(context, call(), LONG_MS)
        task = asyncio.ensure_future(changes.apply(lambda: store.commit(Txn(put={"/foreign": b"1"}))))
        await settle()
        assert "/foreign" in (await store.read("/foreign")).entries
        assert not task.done()
        store.gate.set()
        await asyncio.wait_for(task, 5)


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_without_time_a_change_is_begun_and_not_waited_for(timeout_ms: int) -> None:
    begun: list[bool] = []

    async def commit() -> int:
        begun.append(True)
        return 0

    async with running_broker() as context:
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
            await MetadataChange(context, call(), timeout_ms).apply(commit)
        await settle()
    assert begun == [True]


async def test_the_deadline_is_one_for_all_changes_of_a_request() -> None:
    async def commit() -> int:
        await asyncio.sleep(0.03)  # what is measured: a change that takes a part of the time given
        return 0

    async with running_broker() as context:
        changes = MetadataChange(context, call(), 50)
        await changes.apply(commit)
        with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
            await changes.apply(commit)
            await changes.apply(commit)


@pytest.mark.parametrize("by", ["deadline", "client"])
async def test_a_change_goes_on_when_nobody_waits_for_it_any_more(by: str) -> None:
    gate, ended = asyncio.Event(), asyncio.Event()

    async def commit() -> int:
        await gate.wait()
        ended.set()
        return 0

    async with running_broker() as context:
        task = asyncio.ensure_future(MetadataChange(context, call(), 20 if by == "deadline" else LONG_MS).apply(commit))
        await settle()
        if by == "client":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
                await asyncio.wait_for(task, 5)
        assert not ended.is_set()
        gate.set()
        await asyncio.wait_for(ended.wait(), 5)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, "it is there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (Conflict("others"), ErrorCode.NOT_CONTROLLER),
        (LeaseLost("gone"), ErrorCode.NOT_CONTROLLER),
        (TooLarge("2 MB"), ErrorCode.INVALID_REQUEST),
        (StoreClosed("closed"), ErrorCode.BROKER_NOT_AVAILABLE),
        (OSError(28, "no room"), ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
async def test_what_the_store_raises_becomes_an_error_of_kafka_and_no_log_entry(
    failure: Exception, code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    async def commit() -> int:
        raise failure

    async with running_broker() as context:
        with pytest.raises(KafkaError) as raised:
            await MetadataChange(context, call(), LONG_MS).apply(commit)
    assert raised.value.code == code
    assert raised.value.message
    assert caplog.records == []
