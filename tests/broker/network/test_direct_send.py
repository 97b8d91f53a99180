"""Replies that are sent past the transport: every byte in its order, on both loops, whatever the socket takes."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from odradek.broker.disk.disk_descriptors import Descriptor
from odradek.broker.disk.file_slice import SENDFILE_BYTES_MAX, FileSlice
from odradek.broker.network.direct_send import can_send_directly, send_directly
from odradek.protocol.primitives import Buffer

pytestmark = pytest.mark.both_loops

CONTENT = Random(8).randbytes(4 << 20)
SMALL = 64 * 1024


class Server(asyncio.Protocol):
    def __init__(self) -> None:
        self.accepted: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.accepted.set_result(cast(asyncio.Transport, transport))


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[asyncio.Transport, asyncio.StreamReader]]:
    """The server's transport, and who reads at the other end."""
    loop = asyncio.get_running_loop()
    protocol = Server()
    server = await loop.create_server(lambda: protocol, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    transport = await protocol.accepted
    try:
        yield transport, reader
    finally:
        writer.close()
        transport.close()
        server.close()
        await server.wait_closed()


def slice_of(tmp_path: Path, position: int, size_bytes: int) -> FileSlice:
    path = tmp_path / "f"
    if not path.exists():
        path.write_bytes(CONTENT)
    return FileSlice(Descriptor(os.open(path, os.O_RDONLY)), str(path), position, size_bytes)


def sendfile_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sendfile, calls = os.sendfile, list[int]()

    def watched(*arguments: Any) -> int:
        calls.append(sendfile(*arguments))
        return calls[-1]

    monkeypatch.setattr(os, "sendfile", watched)
    return calls


async def test_what_the_socket_takes_at_once_is_sent_in_order_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = sendfile_calls(monkeypatch)
    async with connected() as (transport, reader):
        assert can_send_directly(transport)
        parts: list[Buffer | FileSlice] = [b"head"]
        parts += [slice_of(tmp_path, 10, 300_000), memoryview(b"between"), slice_of(tmp_path, 0, 5), b"tail"]
        rest = send_directly(transport, parts)
        transport.writelines(rest)
        expected = b"head" + CONTENT[10:300_010] + b"between" + CONTENT[:5] + b"tail"
        assert await reader.readexactly(len(expected)) == expected
        assert sum(map(len, rest)) + sum(calls) <= len(expected)
        assert calls, "the kernel sent it"
        transport.write(b"and the transport goes on")
        assert await reader.readexactly(25) == b"and the transport goes on"


async def test_what_is_much_goes_through_the_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = sendfile_calls(monkeypatch)
    async with connected() as (transport, reader):
        transport.writelines(send_directly(transport, [b"x", slice_of(tmp_path, 0, SENDFILE_BYTES_MAX + 1)]))
        assert await reader.readexactly(SENDFILE_BYTES_MAX + 2) == b"x" + CONTENT[: SENDFILE_BYTES_MAX + 1]
    assert calls == []


@pytest.mark.parametrize("size_bytes", [1 << 20, 4 << 20])
async def test_a_full_socket_leaves_the_rest_to_the_transport(size_bytes: int, tmp_path: Path) -> None:
    async with connected() as (transport, reader):
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        rest = send_directly(transport, [b"head", slice_of(tmp_path, 0, size_bytes), b"tail"])
        left = sum(map(len, rest))
        assert 0 < left < size_bytes + 8
        assert not any(isinstance(part, FileSlice) for part in rest)
        transport.writelines(rest)
        assert await reader.readexactly(size_bytes + 8) == b"head" + CONTENT[:size_bytes] + b"tail"


async def test_a_head_that_is_taken_in_part_only_is_completed_by_the_transport(tmp_path: Path) -> None:
    async with connected() as (transport, reader):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        head = CONTENT[: 3 << 20]
        rest = send_directly(transport, [head, slice_of(tmp_path, 0, 1000)])
        assert len(rest) == 2
        assert len(rest[0]) < len(head)
        transport.writelines(rest)
        assert await reader.readexactly(len(head) + 1000) == head + CONTENT[:1000]


async def test_behind_what_the_transport_has_to_write_nothing_is_sent_past_it(tmp_path: Path) -> None:
    async with connected() as (transport, reader):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        before = CONTENT * 2
        transport.write(before)
        assert transport.get_write_buffer_size() > 0
        rest: list[Buffer] = send_directly(transport, [b"head", slice_of(tmp_path, 5, 300_000)])
        assert [bytes(part) for part in rest] == [b"head", CONTENT[5:300_005]]
        transport.writelines(rest)
        expected = before + b"head" + CONTENT[5:300_005]
        assert await reader.readexactly(len(expected)) == expected


async def test_a_file_that_has_lost_its_end_is_an_error(tmp_path: Path) -> None:
    async with connected() as (transport, _):
        part = slice_of(tmp_path, 0, 300_000)
        os.truncate(tmp_path / "f", 1000)
        with pytest.raises(OSError, match="has lost its end"):
            send_directly(transport, [b"head", part])


async def test_the_socket_stays_the_transports(tmp_path: Path) -> None:
    async with connected() as (transport, reader):
        for _ in range(3):
            transport.writelines(send_directly(transport, [slice_of(tmp_path, 0, 1000)]))
        assert await reader.readexactly(3000) == CONTENT[:1000] * 3
        transport.close()
        assert await reader.read() == b"", "the connection is closed when the transport closes it"


def test_over_tls_and_without_a_socket_nothing_is_sent_past_the_transport() -> None:
    class Transport(asyncio.Transport):
        pass

    assert not can_send_directly(Transport())
    assert not can_send_directly(Transport({"socket": object(), "sslcontext": object()}))
    assert can_send_directly(Transport({"socket": object()}))
