"""What the supervisor and its processes tell each other, over a pair of sockets: JSON objects, one a line.

    to a process       {"begin": {…}}            what it is to be; first, and once
                       {"do": "quiesce"}, …      an order, of ORDERS; the page's process has {"brokers": {…}}
    from a process     {"ready": {…}}            where it listens
                       {"done": "quiesce"}       the order is carried out
                       {"failed": "…"}           why it ends, in a sentence

The pair is the process's lifeline, too: when the supervisor is gone, however it ended, the kernel closes its end, and
the process reads the end of the stream. (A signal at the parent's death would come when the thread that forked ends.)
"""

import asyncio
import json
import signal
import socket
from collections.abc import Callable
from typing import Any, Final, cast

QUIESCE: Final = "quiesce"
"""Decide nothing any more, and write no in-sync sets: the whole cluster stops."""
DRAIN: Final = "drain"
"""No new requests of clients; those that run are answered, while followers fetch on."""
STOP: Final = "stop"
"""End, as one of a cluster that stops."""
LEAVE: Final = "leave"
"""End, and give what others can lead to them before."""

RECEIVED_BYTES: Final = 65_536

Message = dict[str, Any]


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Cuts what comes into messages."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Those that are whole now. The other end is ours: what is no JSON is a mistake, and raises ValueError."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [cast(Message, json.loads(line)) for line in whole]


def receive_first(sock: socket.socket) -> tuple[Message, list[Message]]:
    """The first message on a socket that blocks, and what came with it. Raises EOFError."""
    lines, found = Lines(), list[Message]()
    while not found:
        data = sock.recv(RECEIVED_BYTES)
        if not data:
            raise EOFError("the supervisor is gone")
        found = lines.feed(data)
    # The supervisor sends whole lines, one a call, and a second one only after an answer or to a process that it
    # stops: half of one is not here.
    return found[0], found[1:]


def ignore_terminal() -> None:
    """What a terminal signals is for the supervisor. A process that stands still when its supervisor dies is hung up on
    and woken by the kernel, for its group has no parent any more; it ends by its lifeline, as all others."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Control(asyncio.Protocol):
    """One end of the pair, within a loop."""

    def __init__(self, on_message: Callable[[Message], None], on_end: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._lines = Lines()
        self._transport: asyncio.Transport | None = None

    def tell(self, message: Message) -> None:
        """What cannot arrive any more is not sent: the other end is gone, which `on_end` says."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(encode(message))

    def close(self) -> None:
        """What was told before still arrives."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for message in self._lines.feed(data):
            self._on_message(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


async def control_of(sock: socket.socket, on_message: Callable[[Message], None], on_end: Callable[[], None]) -> Control:
    """The end that this socket is, which must not block. `on_end` is called once, also after `close`."""
    loop = asyncio.get_running_loop()
    _, control = await loop.create_unix_connection(lambda: Control(on_message, on_end), sock=sock)
    return control
