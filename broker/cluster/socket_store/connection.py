"""A client's connection to the server of a store, from its greeting until it breaks."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final, cast

from odradek.broker.cluster.socket_store.address import connecting_socket
from odradek.broker.cluster.socket_store.messages import (
    VERSION,
    Kind,
    Welcome,
    decode_change,
    decode_error,
    decode_welcome,
    encode_hello,
)
from odradek.broker.cluster.socket_store.wire import (
    Frame,
    FrameSplitter,
    MalformedFrame,
    Packer,
    Unpacker,
    encode_frame,
)
from odradek.broker.cluster.store import Change, StoreRefused
from odradek.runtime.signal import Signal

WINDOW: Final = 64
"""So many changes a watch has here, or on their way, that nobody has taken."""


class ConnectionLost(Exception):
    """It broke, or was closed; what was asked for may have been done."""


class Feed:
    """The changes of one watch, on one connection."""

    def __init__(self, connection: "Connection", number: int) -> None:
        self._connection = connection
        self._number = number
        self._changes: deque[Change] = deque()
        self._taken = 0
        self._news = Signal()
        self._error: Exception | None = None

    async def take(self) -> Change:
        """The next change. Raises ConnectionLost, and what the server says, Compacted for one."""
        while not self._changes:
            if self._error is not None:
                raise self._error
            await self._news.after(self._news.count)
        self._taken += 1
        if self._taken == WINDOW // 2:
            self._connection.send(Kind.MORE, self._number, Packer().u32(self._taken).body())
            self._taken = 0
        return self._changes.popleft()

    def close(self) -> None:
        """Nothing more is sent for it."""
        if self._error is None:
            self._connection.forget(self._number)

    def tell(self, change: Change) -> None:
        """For the connection."""
        self._changes.append(change)
        self._news.give()

    def fail(self, error: Exception) -> None:
        """For the connection; the changes that have come are taken first."""
        self._error = error
        self._news.give()


class Connection(asyncio.Protocol):
    """Requests and watches over one socket."""

    def __init__(self) -> None:
        self._splitter = FrameSplitter()
        self._transport: asyncio.Transport | None = None
        self._answers: dict[int, asyncio.Future[Frame]] = {}
        self._feeds: dict[int, Feed] = {}
        self._lines: dict[int, asyncio.Queue[str | None]] = {}
        self._number = 0
        self._lost: ConnectionLost | None = None
        self.welcome = Welcome(0, "", 0)

    @property
    def is_lost(self) -> bool:
        return self._lost is not None

    def close(self) -> None:
        """Whoever waits is told ConnectionLost."""
        self._fail(ConnectionLost("the connection was closed"))
        if self._transport is not None:
            self._transport.abort()

    # -- what is asked --------------------------------------------------------------------------------------------

    async def greet(self) -> None:
        """Raises ConnectionLost, StoreRefused."""
        kind, _, body = await self._asked(Kind.HELLO, encode_hello())
        if kind == Kind.REFUSED:
            raise StoreRefused(Unpacker(body).text())
        self.welcome = decode_welcome(body)
        assert self.welcome.version == VERSION, "another one is refused"

    async def ask(self, kind: Kind, body: bytes) -> bytes:
        """The body of the answer. Raises ConnectionLost, and the error that the server answers."""
        return (await self._asked(kind, body)).body

    async def command(self, command: str) -> AsyncGenerator[str]:
        """Asks something of whoever runs the server, and tells what that one says, line by line, until it is done.
        Raises ConnectionLost, CommandRefused, OSError."""
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        number = self._next_number()
        self._lines[number] = lines
        answer = self._expect(number)
        answer.add_done_callback(lambda _: lines.put_nowait(None))
        try:
            self.send(Kind.COMMAND, number, Packer().text(command).body())
            while (line := await lines.get()) is not None:
                yield line
            await answer
        finally:
            del self._lines[number]
            self._answers.pop(number, None)

    def watch(self, prefix: str, after: int) -> Feed:
        """Raises ConnectionLost."""
        if self._lost is not None:
            raise self._lost
        number = self._next_number()
        self._feeds[number] = feed = Feed(self, number)
        self.send(Kind.WATCH, number, Packer().text(prefix).u64(after).u32(WINDOW).body())
        return feed

    async def _asked(self, kind: Kind, body: bytes) -> Frame:
        number = self._next_number()
        answer = self._expect(number)
        try:
            self.send(kind, number, body)
            return await answer
        finally:
            self._answers.pop(number, None)

    def _expect(self, number: int) -> "asyncio.Future[Frame]":
        """Raises ConnectionLost."""
        if self._lost is not None:
            raise self._lost
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        return answer

    def send(self, kind: Kind, number: int, body: bytes) -> None:
        """For feeds, too."""
        if self._transport is not None and self._lost is None:
            self._transport.write(encode_frame(kind, number, body))

    def forget(self, number: int) -> None:
        """For feeds."""
        if self._feeds.pop(number, None) is not None:
            self.send(Kind.UNWATCH, number, b"")

    def _next_number(self) -> int:
        self._number = self._number % 0xFFFFFFFF + 1
        return self._number

    # -- what comes -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost(f"the connection broke{'' if exc is None else f': {exc}'}"))

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._splitter.feed(data):
                self._take(frame)
        except MalformedFrame as error:
            self._fail(ConnectionLost(f"the server sent what cannot be read: {error}"))
            assert self._transport is not None
            self._transport.abort()

    def _take(self, frame: Frame) -> None:
        """Raises MalformedFrame. What nobody waits for any more is dropped."""
        kind, number, body = frame
        if (feed := self._feeds.get(number)) is not None:
            if kind == Kind.CHANGE:
                feed.tell(decode_change(body))
            else:
                del self._feeds[number]
                feed.fail(decode_error(body))
            return
        if kind == Kind.LINE:
            if (lines := self._lines.get(number)) is not None:
                lines.put_nowait(Unpacker(body).text())
            return
        future = self._answers.get(number)
        if future is None or future.done():
            return
        if kind == Kind.ERROR:
            future.set_exception(decode_error(body))
        else:
            future.set_result(frame)

    def _fail(self, error: ConnectionLost) -> None:
        if self._lost is not None:
            return
        self._lost = error
        for future in self._answers.values():
            if not future.done():
                future.set_exception(error)
        feeds, self._feeds = self._feeds, {}
        for feed in feeds.values():
            feed.fail(error)


async def connect(path: str, loop: asyncio.AbstractEventLoop) -> Connection:
    """A connection that was greeted. Raises OSError, StoreRefused, ConnectionLost."""
    sock = connecting_socket(path)
    _, connection = await loop.create_unix_connection(Connection, sock=sock)
    try:
        await connection.greet()
    except BaseException:
        connection.close()
        raise
    return connection
