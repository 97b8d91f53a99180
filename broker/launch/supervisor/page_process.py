"""The metrics page of a cluster of processes, in a process of its own: to read and merge the pages of many partitions
takes longer than a supervisor may stand still.

It asks each broker's page, on loopback, when it is asked itself. It ends with the supervisor.
"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

from odradek.broker.config.listeners import Listener
from odradek.broker.launch.supervisor.control import Control, Message, control_of, ignore_terminal, receive_first
from odradek.broker.launch.supervisor.merged_page import merged
from odradek.broker.startup_errors import StartRefused, refusing_address

ANSWER_S: Final = 2.0
"""How long a broker may take for its page."""
REQUEST_S: Final = 5.0
HEAD_BYTES_MAX: Final = 8192
NOT_FOUND: Final = b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Page:
    """Answers with the merged page; `ports` are those of the brokers' own, on loopback, by id."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            with suppress(TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(REQUEST_S):
                    request = await reader.readuntil(b"\r\n\r\n")
                method, _, rest = request.partition(b" ")
                path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
                if method in (b"GET", b"HEAD") and path in (b"/metrics", b"/"):
                    page = (await self._merged()).encode()
                    head = f"HTTP/1.0 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(page)}\r\n\r\n"
                    writer.write(head.encode() + (b"" if method == b"HEAD" else page))
                else:
                    writer.write(NOT_FOUND)
                await writer.drain()
        finally:
            writer.close()

    async def _merged(self) -> str:
        pages = await asyncio.gather(*(page_at(port) for port in self.ports.values()))
        return merged(dict(zip(self.ports, pages, strict=True)))


async def page_at(port: int) -> str | None:
    """The page of a broker; None when there is none in time."""
    if not port:
        return None
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
                head, _, page = (await reader.read(-1)).partition(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    return page.decode() if b" 200 " in head.split(b"\r\n", 1)[0] else None


async def _run(begin: Message, sock: socket.socket, more: list[Message]) -> int:
    page, ended = Page(), asyncio.Event()

    def told(message: Message) -> None:
        if "brokers" in message:
            page.ports = message["brokers"]
        else:
            ended.set()

    for message in more:
        told(message)
    control: Control = await control_of(sock, told, ended.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    address = Listener("PLAINTEXT", *begin["listen"])
    try:
        with refusing_address(address, "serve metrics"):
            host = None if address.host in ("", "*") else address.host
            server = await asyncio.start_server(page.answer, host, address.port, limit=HEAD_BYTES_MAX)
    except StartRefused as error:
        control.tell({"failed": str(error)})
        control.close()
        return 1
    control.tell({"ready": {"port": server.sockets[0].getsockname()[1]}})
    await ended.wait()
    server.close()
    return 0


def main() -> None:
    """`sys.argv[1]` is the descriptor of the lifeline."""
    ignore_terminal()
    sock = socket.socket(fileno=int(sys.argv[1]))
    try:
        message, more = receive_first(sock)
    except EOFError:
        sys.exit(0)
    sock.setblocking(False)
    with asyncio.Runner() as runner:
        sys.exit(runner.run(_run(message["begin"], sock, more)))
