"""A `TlsLayer` without a network: a client of Python's own TLS on one side, a connection that notes everything on the
other, and between them bytes that the test hands over as it likes."""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

from odradek.broker.access.principal import Principal
from odradek.broker.network.tls_layer import LANDING_BYTES, TlsLayer
from odradek.broker.tls.listener_tls import ListenerTls, load
from odradek.broker.tls.tls_settings import TlsSettings
from odradek.protocol.frames import FrameReader
from odradek.runtime.environment import Environment
from tests.broker.tls.authority import Authority, Issued, tls_settings

FRAMES_BYTES_MAX = 100 * 1024 * 1024


def nothing(path: str) -> bytes:
    raise FileNotFoundError(path)


def settings(issued: Issued, trusted: Authority | None = None, **values: Any) -> TlsSettings:
    return tls_settings(**(issued.as_values() | ({} if trusted is None else trusted.as_trusted()) | values))


def listener(issued: Issued, trusted: Authority | None = None, **values: Any) -> ListenerTls:
    return load(settings(issued, trusted, **values), nothing, is_inter_broker=False)


class SocketTransport(asyncio.Transport):
    """Keeps what is written, and says when it has enough."""

    def __init__(self, layer: TlsLayer) -> None:
        super().__init__({"peername": ("192.0.2.1", 4711)})
        self.layer = layer
        self.written = bytearray()
        self.held_bytes = 0
        """What the socket has not taken."""
        self.high_bytes: int | None = None
        self.is_paused = self.is_closed = self.is_aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.is_closed
        self.written += data
        if self.high_bytes is not None:
            was_over = self.held_bytes > self.high_bytes
            self.held_bytes += len(data)
            if self.held_bytes > self.high_bytes and not was_over:
                self.layer.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def drain(self) -> None:
        """The socket takes everything."""
        was_over = self.high_bytes is not None and self.held_bytes > self.high_bytes
        self.held_bytes = 0
        if was_over:
            self.layer.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.held_bytes

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True


class Noting:
    """The connection above TLS."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.reader = FrameReader(FRAMES_BYTES_MAX)
        self.frames: list[bytes] = []
        self.principal: Principal | None = None
        self.failure: str | None = None
        self.is_lost = self.is_writing_paused = False
        self.pauses_after: int | None = None
        """It wants no more than so many frames."""
        self.updates = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        assert self.principal is not None, "nothing before TLS stands"
        self.updates += 1
        self.reader.buffer_updated(nbytes)
        while (frame := self.reader.next_frame()) is not None:
            self.frames.append(bytes(frame))
        if self.pauses_after is not None and len(self.frames) >= self.pauses_after:
            self.pauses_after = None
            self.transport.pause_reading()

    def pause_writing(self) -> None:
        assert not self.is_writing_paused
        self.is_writing_paused = True

    def resume_writing(self) -> None:
        assert self.is_writing_paused
        self.is_writing_paused = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True

    def secured(self, principal: Principal) -> None:
        assert self.principal is None
        self.principal = principal

    def tls_failed(self, reason: str) -> None:
        self.failure = reason
        self.transport.close()


class TlsPair:
    """Client and layer. Needs a running loop."""

    def __init__(
        self, tls: ListenerTls, client: ssl.SSLContext, name: str = "localhost", session: ssl.SSLSession | None = None
    ) -> None:
        self.noting = Noting()
        self.layer = TlsLayer(self.noting, tls, Environment(), memoryview(bytearray(LANDING_BYTES)))
        self.socket = SocketTransport(self.layer)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client.wrap_bio(self.incoming, self.outgoing, server_hostname=name, session=session)
        self.error: ssl.SSLError | None = None
        """The client's."""
        self.is_shaken = False
        self.layer.connection_made(self.socket)

    def receive(self, data: bytes | bytearray) -> None:
        """The layer's socket has brought this, as often as it takes. Nothing more once the socket is closed."""
        rest = memoryview(data)
        while rest and not self.socket.is_closed:
            with self.layer.get_buffer(-1) as room:
                count = min(len(room), len(rest))
                room[:count] = rest[:count]
            self.layer.buffer_updated(count)
            rest = rest[count:]

    def to_client(self) -> None:
        if self.socket.written:
            self.incoming.write(bytes(self.socket.written))
            self.socket.written.clear()

    def said(self) -> bytes:
        """What the client has to send, after a step of its handshake."""
        self.to_client()
        if not self.is_shaken and self.error is None:
            try:
                self.client.do_handshake()
                self.is_shaken = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self.error = error
        return self.outgoing.read()

    def shake_hands(self, portion: int = 1 << 20) -> None:
        """As far as both come."""
        for _ in range(10):
            data = self.said()
            for start in range(0, len(data), portion):
                self.receive(data[start : start + portion])
        self.to_client()

    def send(self, data: bytes | memoryview) -> bytes:
        """The records that hold this, not yet received."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.client.write(rest) :]
        return self.outgoing.read()

    def read(self) -> bytes:
        """What the client is sent."""
        self.to_client()
        found = bytearray()
        try:
            while data := self.client.read(1 << 16):
                found += data
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return bytes(found)


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def turns(count: int = 20) -> None:
    """The loop goes on."""
    for _ in range(count):
        await asyncio.sleep(0)
