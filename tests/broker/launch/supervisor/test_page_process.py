"""The merged page over HTTP: brokers that answer, one that answers nonsense, one that is silent, and none."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.launch.supervisor import page_process
from odradek.broker.launch.supervisor.page_process import NOT_FOUND, Page, page_at

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def serving(answer: Answer) -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def answering(head: bytes, body: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n" + body)
        writer.close()

    return answer


async def asked(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_the_page_is_that_of_all_brokers_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_process, "ANSWER_S", 0.2)
    good, good_port = await serving(answering(b"HTTP/1.0 200 OK", b"# TYPE a gauge\na 1.0\n"))
    bad, bad_port = await serving(answering(b"HTTP/1.0 500 Oh", b"a 2.0\n"))
    released = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    silence, silent_port = await serving(silent)
    page = Page()
    page.ports = {"1": good_port, "2": bad_port, "3": silent_port, "4": 0}
    server, port = await serving(page.answer)
    head, _, body = (await asked(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert [line for line in body.decode().splitlines() if not line.startswith("#")] == [
        'odradek_up{broker="1"} 1',
        'odradek_up{broker="2"} 0',
        'odradek_up{broker="3"} 0',
        'odradek_up{broker="4"} 0',
        'a{broker="1"} 1.0',
    ]
    assert await asked(port, b"HEAD / HTTP/1.0\r\n\r\n") == head + b"\r\n\r\n"
    assert await asked(port, b"GET /secret HTTP/1.0\r\n\r\n") == NOT_FOUND
    released.set()
    for each in (good, bad, silence, server):
        each.close()


async def test_where_nobody_listens_there_is_no_page() -> None:
    server, port = await serving(answering(b"", b""))
    server.close()
    await server.wait_closed()
    assert await page_at(port) is None


async def test_who_asks_for_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_process, "REQUEST_S", 0.05)
    server, port = await serving(Page().answer)
    assert await asked(port, b"GET ") == b""
    server.close()
