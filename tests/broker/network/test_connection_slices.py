"""Answers in slices of files: every byte in its order, whoever reads slowly, goes away, or asks for other things."""

import asyncio
import gc
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.file_slice import SENDFILE_BYTES_MAX, FileSlice
from odradek.broker.observability.request_times import FETCH_CONSUMER
from odradek.broker.server import Broker
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest
from tests.broker.wire import RawClient, batch, connected, create_topic, produced, running_broker
from tests.descriptors import open_below

pytestmark = pytest.mark.both_loops

VERSION = 11
BATCHES = [Random(number).randbytes(100_000) for number in range(60)]


def fetch(offset: int = 0, max_bytes: int = 1 << 20, index: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic="orders", partitions=[partition])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 26, topics=topics, forgotten_topics_data=[])


@asynccontextmanager
async def with_records(tmp_path: Path) -> AsyncGenerator[Broker]:
    """A broker on files, with sixty batches of 100 kB in one partition."""
    async with running_broker(disk=FileDisk(), data_dir=str(tmp_path)) as broker, connected(broker) as client:
        await create_topic(client, "orders")
        for value in BATCHES:
            assert (await produced(client, "orders", batch(value))).error_code == 0
        yield broker


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """How many bytes each slice had that was sent, and whether by sendfile. Skips where the kernel has no cachestat."""
    send, slices = FileSlice.send, list[tuple[int, bool]]()

    def watched(self: FileSlice, *arguments: Any, by_sendfile: bool) -> None:
        slices.append((len(self), by_sendfile))
        send(self, *arguments, by_sendfile=by_sendfile)

    monkeypatch.setattr(FileSlice, "send", watched)
    if not os.path.exists("/proc/sys") or tuple(map(int, os.uname().release.split(".")[:2])) < (6, 5):
        pytest.skip("this kernel has no cachestat")
    return slices


async def records_of(client: RawClient, asked: FetchRequest) -> bytes:
    _, answer = await client.receive(asked, VERSION)
    [told] = answer.responses[0].partitions
    assert told.error_code == 0
    return bytes(told.records or b"")


def check(records: bytes, offset: int, count: int) -> None:
    """The batches from `offset` on."""
    headers = list(iterate_batches(memoryview(records)))
    assert [header.base_offset for _, header in headers] == list(range(offset, offset + count))
    position = 0
    for value in BATCHES[offset : offset + count]:
        position = records.index(value, position) + len(value)


async def test_a_log_is_read_from_its_start_to_its_end(tmp_path: Path, sent: list[tuple[int, bool]]) -> None:
    async with with_records(tmp_path) as broker, connected(broker) as client:
        offset = 0
        while offset < len(BATCHES):
            asked = fetch(offset)
            client.send(asked, VERSION)
            client.send(MetadataRequest(topics=[]), 8)  # behind a slice that has to be sent before
            records = await records_of(client, asked)
            await client.receive(MetadataRequest(topics=[]), 8)
            count = min(10, len(BATCHES) - offset)
            check(records, offset, count)
            offset += count
    assert [by_sendfile for _, by_sendfile in sent] == [True] * 6


@pytest.mark.parametrize("max_bytes", [1 << 20, 1 << 23])
async def test_who_reads_slowly_gets_every_byte_right(
    max_bytes: int, tmp_path: Path, sent: list[tuple[int, bool]]
) -> None:
    """The socket is full again and again, and other requests wait behind."""
    async with with_records(tmp_path) as broker, connected(broker, limit=1 << 12) as slow, connected(broker) as other:
        asked = fetch(3, max_bytes)
        for _ in range(12):
            slow.send(asked, VERSION)
        await slow.writer.drain()
        for _ in range(50):
            await produced(other, "orders", batch(b"meanwhile"))
        for _ in range(12):
            check((await records_of(slow, asked))[: 10 * 100_100], 3, 10)
    assert {by_sendfile for _, by_sendfile in sent} == {max_bytes < SENDFILE_BYTES_MAX}


async def test_who_goes_away_in_the_middle_leaves_no_descriptor_behind(
    tmp_path: Path, sent: list[tuple[int, bool]]
) -> None:
    async with with_records(tmp_path) as broker:
        before_below, before = len(open_below(tmp_path)), len(os.listdir("/proc/self/fd"))
        for _ in range(10):
            async with connected(broker) as client:
                for _ in range(20):
                    client.send(fetch(0, 1 << 22), VERSION)
                await client.writer.drain()
                await client.reader.readexactly(100_000)
        async with connected(broker) as client:
            client.send(fetch(), VERSION)
            check(await records_of(client, fetch()), 0, 10)
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before + 4, "sockets, too; others may have closed theirs"
        assert len(open_below(tmp_path)) <= before_below
    assert len(sent) > 10


async def test_a_file_that_fails_amid_a_response_ends_the_connection_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sent: list[tuple[int, bool]]
) -> None:
    """The client was told the length already. Others go on, and the request is counted all the same."""
    async with with_records(tmp_path) as broker, connected(broker) as client:
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):

            def failing(*_: Any, **__: Any) -> None:
                raise OSError(5, "Input/output error", "orders.log")

            patch.setattr(FileSlice, "send", failing)
            client.send(fetch(), VERSION)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.receive_frame()
        assert "an answer cannot be completed: [Errno 5] Input/output error: 'orders.log'" in caplog.text
        async with connected(broker) as another:
            another.send(fetch(), VERSION)
            check(await records_of(another, fetch()), 0, 10)
        assert broker.context.metrics.apis[FETCH_CONSUMER].requests == 2
    assert sent
