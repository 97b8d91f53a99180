"""TLS between the socket of a client and its connection: a handshake first, then records to bytes (tls_reader.py) and
bytes to records (tls_writer.py).

The loops have TLS of their own. This one gives each connection the newest context (listener_tls.py), holds little for
clients that are strangers, and says in the log what they did wrong:

- Until the hello has come in full, a client costs its connection and the bytes that it has sent (handshake_gate.py).
  Bytes before the end of the handshake are in no budget that connections share.
- Renegotiation is refused (contexts.py). A session that goes on by a ticket is refused when its certificate has ended.

`Connection` hears of the socket at once, so that it is counted; of bytes when TLS stands, and who sends them
(`secured`).
"""

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum, auto
from typing import Final, Protocol, cast

from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.network.tls_reader import READ_BYTES_MAX, TlsReader
from odradek.broker.network.tls_transport import TlsTransport
from odradek.broker.network.tls_writer import TlsWriter
from odradek.broker.tls.client_hello import NoHello
from odradek.broker.tls.handshake_gate import HandshakeGate
from odradek.broker.tls.handshake_words import handshake_words
from odradek.broker.tls.listener_tls import ListenerTls
from odradek.broker.tls.record_counter import RecordCounter
from odradek.broker.tls.tls_error import TlsError
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment

LANDING_BYTES: Final = READ_BYTES_MAX
"""All sockets of a loop are read into one buffer of this size."""
HANDSHAKE_READ_BYTES: Final = 4 * 1024


class Secured(Protocol):
    """The connection above TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def get_buffer(self, sizehint: int) -> memoryview: ...

    def buffer_updated(self, nbytes: int) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def secured(self, principal: Principal) -> None:
        """TLS stands, and its certificate says that the client is this one."""
        ...

    def tls_failed(self, reason: str) -> None:
        """Says so in the log, and closes the transport."""
        ...


class _State(Enum):
    HANDSHAKE = auto()
    OPEN = auto()
    CLOSING = auto()
    """What was written is still sent. What comes is dropped."""
    LOST = auto()


class TlsLayer(asyncio.BufferedProtocol):
    """The protocol of a socket's transport. `connection` has a transport of its own from it."""

    def __init__(self, connection: Secured, tls: ListenerTls, environment: Environment, landing: memoryview) -> None:
        """`landing`: where the sockets of one loop are read into, `LANDING_BYTES` that no one keeps."""
        self._connection = connection
        self._tls = tls
        self._environment = environment
        self._landing = landing
        self._state = _State.HANDSHAKE
        self._gate = HandshakeGate()
        self._counter = RecordCounter()
        self._object: ssl.SSLObject | None = None
        self._incoming = self._outgoing = NO_BIO
        self._reader: TlsReader | None = None
        self._writer: TlsWriter | None = None
        self._socket: asyncio.Transport | None = None

    # -- the event loop calls these ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._connection.connection_made(TlsTransport(self, cast(asyncio.BaseProtocol, self._connection)))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._landing[: HANDSHAKE_READ_BYTES if self._reader is None else self._reader.read_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        with self._landing[:nbytes] as data:
            if self._state is _State.HANDSHAKE:
                self._shake_hands(data)
            elif self._state is _State.OPEN and self._reader is not None:
                self._reader.receive(data)

    def eof_received(self) -> bool:
        if self._state is _State.HANDSHAKE:
            if self._gate.received_bytes:
                self._connection.tls_failed("the client has left in the middle of the TLS handshake")
            return False
        self.close()
        return True  # the socket closes when what was written is sent

    def pause_writing(self) -> None:
        if self._writer is not None:  # before, the connection has nothing to write
            self._writer.pause()

    def resume_writing(self) -> None:
        if self._writer is not None:
            self._writer.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._state = _State.LOST
        if self._reader is not None and self._writer is not None:
            self._reader.stop()
            self._writer.drop()
        self._reader = self._writer = None  # they know the connection, and this
        self._connection.connection_lost(exc)

    # -- the handshake ----------------------------------------------------------------------------------------------

    def _shake_hands(self, data: memoryview) -> None:
        try:
            ready = self._gate.feed(data)
        except NoHello as error:
            self._connection.tls_failed(str(error))
            return
        if not ready:
            return
        if self._object is None:
            self._begin()
        assert self._object is not None
        self._hand_on(ready)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            self._answer()
            return
        except ssl.SSLError as error:
            self._answer()  # the alert, which says to the client what the log says here
            self._connection.tls_failed(f"the TLS handshake has failed: {handshake_words(error)}")
            return
        self._answer()
        self._hand_on(self._gate.rest())
        self._open(self._object)

    def _hand_on(self, data: bytes) -> None:
        self._counter.feed(memoryview(data), len(data))
        self._incoming.write(data)

    def _begin(self) -> None:
        """OpenSSL's own state, for a client whose hello has come."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = self._tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def _answer(self) -> None:
        if self._outgoing.pending and not self.socket_transport.is_closing():
            flight = self._outgoing.read()
            self._gate.answered(flight)
            self.socket_transport.write(flight)

    def _open(self, tls_object: ssl.SSLObject) -> None:
        der = tls_object.getpeercert(binary_form=True)
        try:
            principal = self._tls.principal_of(der, self._environment.now_ms()) if der else ANONYMOUS
        except TlsError as error:
            self._connection.tls_failed(str(error))
            return
        loop, connection = self._environment.loop, self._connection
        self._state = _State.OPEN
        self._writer = TlsWriter(loop, self.socket_transport, tls_object, self._outgoing, connection, self.broken)
        self._reader = reader = TlsReader(
            loop, self.socket_transport, tls_object, self._incoming, self._counter, connection, self
        )
        connection.secured(principal)
        reader.go_on()  # a client may have sent its first request together with the end of its handshake

    # -- its reader calls these (`Owner`) -----------------------------------------------------------------------------

    def flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()

    def goodbye(self) -> None:
        self.close()

    def idle(self) -> None:
        self._connection.tls_failed("it sends records of TLS without data, again and again")

    def broken(self, error: ssl.SSLError) -> None:
        """What is read cannot be decrypted, or what is written not encrypted."""
        if self._state is _State.OPEN:
            self.flush()  # the alert
            self._connection.tls_failed(f"TLS has failed: {handshake_words(error)}")

    # -- the connection's transport calls these -----------------------------------------------------------------------

    @property
    def socket_transport(self) -> asyncio.Transport:
        assert self._socket is not None
        return self._socket

    @property
    def unsent_bytes(self) -> int:
        waiting_bytes = 0 if self._writer is None else self._writer.size_bytes
        return waiting_bytes + self.socket_transport.get_write_buffer_size()

    @property
    def is_closing(self) -> bool:
        return self._state in (_State.CLOSING, _State.LOST) or self.socket_transport.is_closing()

    def extra_info(self, name: str, default: object) -> object:
        """Of the socket; and `sslcontext` and `ssl_object`, by which it is known that this is TLS."""
        if name == "sslcontext":
            return self._tls.context if self._object is None else self._object.context
        if name == "ssl_object":
            return self._object
        return self.socket_transport.get_extra_info(name, default)

    def send(self, parts: Iterable[Buffer]) -> None:
        """Before TLS stands nobody has anything to send, and while it closes nobody takes it."""
        if self._state is _State.OPEN and self._writer is not None:
            self._writer.write(parts)

    def pause(self) -> None:
        """The connection does not want more; before TLS stands: not even a handshake."""
        if self._reader is not None:
            self._reader.pause()
        elif not self.is_closing:
            self.socket_transport.pause_reading()

    def resume(self) -> None:
        if self._reader is not None:
            self._reader.resume()
        elif not self.is_closing:
            self.socket_transport.resume_reading()

    def close(self) -> None:
        """What was written is sent, and then that nothing follows."""
        if self._state in (_State.CLOSING, _State.LOST):
            return
        self._state = _State.CLOSING
        if self._reader is None or self._writer is None:
            self.socket_transport.close()
            return
        self._reader.stop()
        self._writer.when_empty(self._say_goodbye)

    def _say_goodbye(self) -> None:
        assert self._object is not None
        with suppress(ssl.SSLError):  # the client's own goodbye is not waited for
            self._object.unwrap()
        self.flush()
        self.socket_transport.close()


NO_BIO: Final = ssl.MemoryBIO()
"""In place of those of a connection without a hello."""
