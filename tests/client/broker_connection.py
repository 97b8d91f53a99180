"""A connection at the scripted broker: bytes to requests, one at a time, and each through its faults to an answer.

No tasks: what has to wait sets a timer. A request that was begun takes effect even if its client has gone meanwhile, as
in a real broker, whose handlers do not look; one that still waited behind it is forgotten with the connection.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol, cast

from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import FrameReader, peek_request, read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.client.broker_faults import Ending, Exchange, Fault

REQUEST_BYTES_MAX = 100 * 1024 * 1024

Decoded = tuple[Request[Any] | None, int]


class Broker(Protocol):
    """What a connection asks of its broker."""

    node_id: int

    def after(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Runs the action so much later, unless the broker stops before; at once for 0."""
        ...

    def request_type(self, connection: "BrokerConnection", api_key: int, version: int) -> type[Request[Any]] | None:
        """The request to be read, or None where a broker closes the connection."""
        ...

    def serves(self, cls: type[Request[Any]], version: int) -> bool: ...

    def arrived(self, exchange: Exchange) -> tuple[Fault, ...]:
        """Notes the request; returns what happens to it beside the plain answer."""
        ...

    def apply(self, connection: "BrokerConnection", exchange: Exchange, faults: tuple[Fault, ...]) -> Response | None:
        """Lets the request take effect."""
        ...

    def violated(self, what: str) -> None:
        """The client did what none may do."""
        ...

    def lost(self, connection: "BrokerConnection") -> None: ...


class BrokerConnection(asyncio.BufferedProtocol):
    """See the module. `state` is for what a handler keeps about a connection, such as its authentication."""

    transport: asyncio.Transport

    def __init__(self, broker: Broker, number: int, now_ms: Callable[[], float]) -> None:
        self.number = number
        self.state: dict[str, Any] = {}
        self.waiting_max: Counter[int] = Counter()
        """By API key, the most requests that were here at once without an answer."""
        self._broker = broker
        self._now_ms = now_ms
        self._reader = FrameReader(REQUEST_BYTES_MAX)
        self._frames: deque[tuple[memoryview, float]] = deque()  # with the time of arrival
        self._waiting: Counter[int] = Counter()
        self._is_busy = False
        self._is_lost = False

    # -- the transport tells ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.buffer_updated(nbytes)
        try:
            while (frame := self._reader.next_frame()) is not None:
                self._frames.append((frame, self._now_ms()))
                self._waiting[int.from_bytes(frame[:2], "big")] += 1
        except MalformedMessage as error:
            self._refuse(str(error))
            return
        self.waiting_max |= self._waiting
        self._next()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._broker.lost(self)

    # -- one request after the other -------------------------------------------------------------------------------

    def _next(self) -> None:
        # For a transport that closes, nothing more is begun, though what was written before is still sent.
        while self._frames and not self._is_busy and not self._is_lost and not self.transport.is_closing():
            self._is_busy = True
            self._begin(*self._frames.popleft())

    def _begin(self, frame: memoryview, at_ms: float) -> None:
        try:
            exchange = self._read(frame, at_ms)
        except MalformedMessage as error:
            self._refuse(str(error))
            return
        if exchange is None:
            return
        faults = self._broker.arrived(exchange)
        delay_ms = sum(fault.delay_before_ms for fault in faults)
        self._broker.after(delay_ms, lambda: self._apply(exchange, faults))

    def _read(self, frame: memoryview, at_ms: float) -> Exchange | None:
        api_key, version, correlation_id = peek_request(frame)
        cls = self._broker.request_type(self, api_key, version)
        if cls is None:
            self._refuse(f"key {api_key} version {version} is not served")
            return None
        if not self._broker.serves(cls, version):
            # KIP-511: ApiVersions alone is answered at any version, without looking at more than the header.
            request: Request[Any] = ApiVersionsRequest()
            client_id = None
        else:
            header, position = read_request_header(frame, cls.is_flexible(version))
            client_id = header.client_id
            request = decode(cls, version, frame, position)
        return Exchange(self._broker.node_id, self.number, at_ms, request, version, correlation_id, client_id)

    def _apply(self, exchange: Exchange, faults: tuple[Fault, ...]) -> None:
        if all(fault.applies for fault in faults):
            exchange.response = self._broker.apply(self, exchange, faults)
            for fault in faults:
                if fault.edit is not None and exchange.response is not None:
                    fault.edit(exchange)
        delay_ms = sum(fault.delay_after_ms for fault in faults)
        self._broker.after(delay_ms, lambda: self._answer(exchange, faults))

    def _answer(self, exchange: Exchange, faults: tuple[Fault, ...]) -> None:
        self.write(exchange, [fault.wire for fault in faults if fault.wire is not None])
        for fault in faults:
            if fault.end is Ending.CLOSE:
                self.transport.close()
            elif fault.end is Ending.RESET:
                self.transport.abort()
        if any(fault.blocks for fault in faults):
            return
        self._waiting[exchange.request.api_key] -= 1
        self._broker.after(sum(fault.mute_ms for fault in faults), self._go_on)

    def _go_on(self) -> None:
        self._is_busy = False
        self._next()

    def write(self, exchange: Exchange, wires: list[Callable[[bytes], bytes]]) -> None:
        """Writes the answer of an exchange, if it has one, as these functions leave it."""
        response = exchange.response
        data = b"" if response is None else encoded_answer(exchange, response)
        exchange.answer_size = len(data)
        exchange.answered_at_ms = self._now_ms()
        for wire in wires:
            data = wire(data)
        if data and not self._is_lost and not self.transport.is_closing():
            self.transport.write(data)

    def _refuse(self, why: str) -> None:
        self._broker.violated(f"connection {self.number} to node {self._broker.node_id}: {why}")
        self._frames.clear()
        self.transport.close()


def encoded_answer(exchange: Exchange, response: Response) -> bytes:
    """The frame of a response. To an ApiVersions of unknown version it has version 0 (KIP-511)."""
    version = exchange.version if exchange.version <= response.max_version else 0
    if isinstance(exchange.request, ApiVersionsRequest):
        # The version that was not served may be a declared one; the error tells.
        version = 0 if getattr(response, "error_code", 0) == 35 else version
        flexible_header = False
    else:
        flexible_header = response.is_flexible(version)
    return b"".join(response_frame(exchange.correlation_id, flexible_header, encode_parts(response, version)))
