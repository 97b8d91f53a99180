"""A TCP relay between a client and etcd, which can swallow what comes back, or cut all connections, or leave them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Relay:
    """Bytes go through as they come. `drops_answers`: those of the server vanish. `answers_dropped` is set then."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self.drops_answers = False
        self.answers_dropped = asyncio.Event()
        self._target = port
        self._writers: dict[asyncio.StreamWriter, None] = {}
        self._left: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer: None, back: None}
        try:
            await asyncio.gather(self._pump(reader, back, is_answer=False), self._pump(there, writer, is_answer=True))
        finally:
            for each in (writer, back):
                self._writers.pop(each, None)
                self._left.pop(each, None)
                each.transport.abort()

    def cut(self) -> None:
        """Every connection is reset."""
        for writer in list(self._writers):
            writer.transport.abort()

    def leave(self) -> None:
        """Nothing goes through the connections that there are, and nobody is told."""
        self._left |= self._writers

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if is_answer and self.drops_answers:
                    self.answers_dropped.set()
                    continue
                if writer in self._left:
                    continue
                writer.write(data)
                await writer.drain()
        writer.transport.abort()  # one side is gone, so the other one goes


@asynccontextmanager
async def relay(port: int, host: str = "127.0.0.1") -> AsyncGenerator[Relay, None]:
    """A relay to a port of the loopback, at a free one."""
    made = Relay(port)
    server = await asyncio.start_server(made.serve, host, 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        made.cut()
        await server.wait_closed()
