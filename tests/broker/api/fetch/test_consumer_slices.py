"""When an answer holds slices of files, and when somebody has to look at the batches instead."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.disk.disk_page_cache import PageCache
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.file_slice import SLICE_BYTES_MIN, FileSlice
from odradek.broker.handling.context import Caller, Context
from odradek.broker.log.producers import AbortedTxn
from odradek.protocol.messages.fetch import FetchRequest, PartitionData
from tests.broker.api.fetching import BY_ID, BY_NAME, request, told, wanted
from tests.broker.support import DATA_DIR, append, batch, call, make_topic, running_broker

COUNT = 10
VALUE_BYTES = 100_000
SIZE = len(batch(bytes(VALUE_BYTES)))


@pytest.fixture(autouse=True)
def everything_is_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As far as the kernel tells, whichever it is; and the data directory is a real one."""

    def is_cached(_: PageCache, _descriptor: int, _position: int, _size_bytes: int) -> bool:
        return True

    monkeypatch.setattr(PageCache, "is_cached", is_cached)
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def running() -> AsyncGenerator[Context]:
    async with running_broker(disk=FileDisk()) as context:
        await make_topic(context, "orders", 2)
        for index in range(2):
            for _ in range(COUNT):
                append(context.partitions.leader("orders", index), batch(bytes(VALUE_BYTES)))
        yield context


def caller(*, takes_slices: bool = True) -> Caller:
    who = Caller("EXTERNAL")
    who.takes_slices = takes_slices
    return who


async def answers(
    context: Context, sent: FetchRequest, version: int = BY_NAME, *, takes_slices: bool = True
) -> list[PartitionData]:
    """As the handler gives them to the encoder."""
    api = context.served[FetchRequest.api_key]
    return told(await api.handle(context, call(caller(takes_slices=takes_slices), version), sent))


def kinds(found: list[PartitionData]) -> list[tuple[bool, int]]:
    """Whether it is a slice, and how many whole batches it has."""
    return [(isinstance(each.records, FileSlice), len(each.records or b"") // SIZE) for each in found]


@pytest.mark.parametrize(("max_bytes", "count"), [(SLICE_BYTES_MIN, 2), (500_000, 4), (1 << 20, 10), (1 << 30, 10)])
async def test_whole_batches_are_answered_in_slices(max_bytes: int, count: int) -> None:
    async with running() as context:
        is_slice = count * SIZE >= SLICE_BYTES_MIN
        assert kinds(await answers(context, request(wanted(max_bytes=max_bytes)))) == [(is_slice, count)]


async def test_the_limit_of_the_answer_counts_slices_too() -> None:
    async with running() as context:
        both = request(wanted(0), wanted(1), max_bytes=COUNT * SIZE + 3 * SIZE)
        assert kinds(await answers(context, both)) == [(True, COUNT), (True, 3)]
        both = request(wanted(0), wanted(1), max_bytes=COUNT * SIZE + 1)
        assert kinds(await answers(context, both)) == [(True, COUNT), (False, 0)]


async def test_a_slice_is_enough_for_whoever_waits_for_bytes() -> None:
    async with running() as context:
        sent = request(wanted(), min_bytes=500_000, max_wait_ms=60_000)
        assert kinds(await answers(context, sent)) == [(True, COUNT)]


async def test_nothing_behind_the_high_watermark_is_in_a_slice() -> None:
    async with running() as context:
        context.partitions.leader("orders", 0).high_watermark.restart(7)
        assert kinds(await answers(context, request(wanted()))) == [(True, 7)]
        assert kinds(await answers(context, request(wanted(offset=7)))) == [(False, 0)]


@pytest.mark.parametrize("version", [4, 9, BY_NAME])
async def test_every_version_gets_slices(version: int) -> None:
    async with running() as context:
        assert kinds(await answers(context, request(wanted()), version)) == [(True, COUNT)]


async def test_a_slice_that_a_limit_cut_is_answered_at_once() -> None:
    async with running() as context:
        sent = request(wanted(max_bytes=5 * SIZE), min_bytes=2_000_000, max_bytes=2_000_000, max_wait_ms=60_000)
        assert kinds(await asyncio.wait_for(answers(context, sent), 5)) == [(True, 5)]


async def test_a_slice_of_an_older_segment_is_answered_at_once() -> None:
    async with running() as context:
        context.partitions.leader("orders", 0).log.roll(0)
        sent = request(wanted(), min_bytes=2_000_000, max_bytes=2_000_000, max_wait_ms=60_000)
        assert kinds(await asyncio.wait_for(answers(context, sent), 5)) == [(True, COUNT)]


async def test_versions_with_topic_ids_get_slices() -> None:
    async with running() as context:
        topic_id = context.partitions.leader("orders", 0).topic_id
        assert kinds(await answers(context, request(wanted(), topic_id=topic_id), BY_ID)) == [(True, COUNT)]


async def test_connections_that_do_not_take_them_get_none() -> None:
    async with running() as context:
        assert kinds(await answers(context, request(wanted()), takes_slices=False)) == [(False, COUNT)]


async def test_what_is_not_cached_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def refusing(_: PageCache, _descriptor: int, position: int, size_bytes: int) -> bool:
        asked.append((position, size_bytes))
        return False

    async with running() as context:
        monkeypatch.setattr(PageCache, "is_cached", refusing)
        assert kinds(await answers(context, request(wanted(offset=2, max_bytes=700_000)))) == [(False, 6)]
        assert asked == [(2 * SIZE, 6 * SIZE)]


async def test_where_transactions_were_aborted_the_batches_are_looked_at() -> None:
    async with running() as context:
        committed = request(wanted(), isolation_level=1)
        [answer] = await answers(context, committed)
        assert isinstance(answer.records, FileSlice)
        assert answer.aborted_transactions == []
        segment = context.partitions.leader("orders", 0).log.segments.active
        segment.txn_index.append(AbortedTxn(7, 2, 4, 5))
        [answer] = await answers(context, committed)
        assert not isinstance(answer.records, FileSlice)
        assert answer.aborted_transactions is not None
        assert [(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions] == [(7, 2)]


async def test_an_error_of_the_file_is_told_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as context:

        def failing(*_: object) -> bool:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(PageCache, "is_cached", failing)
        assert kinds(await answers(context, request(wanted()))) == [(False, COUNT)]
    assert Path(DATA_DIR).is_dir()
