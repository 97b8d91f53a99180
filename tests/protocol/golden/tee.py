"""A proxy that stands between clients and one Kafka broker, and keeps every request with its response.

Answers to ApiVersions are narrowed on their way to the client to the versions that our own declarations have: a client
then picks what it would pick with Odradek. The answer that is kept is the broker's own. Everything else passes
unchanged, so the broker has to advertise the proxy's address. Between a broker of Kafka's and its controller, which
need APIs and versions that are not ours, the answers pass, too. Threads and blocking sockets: it serves a script.
"""

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from odradek.protocol.codec import codec
from odradek.protocol.codec.schema import Request
from odradek.protocol.declared import declared_messages
from odradek.protocol.frames import read_response_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.produce import ProduceRequest


class Exchange(NamedTuple):
    """A request and its response as frames without their lengths, and who sent the request."""

    source: str
    api_key: int
    api_version: int
    request: bytes
    response: bytes


def served_ranges() -> dict[int, tuple[int, int]]:
    """What Odradek lets clients choose from. Produce is advertised from 0 on, as Kafka does (KAFKA-18659)."""
    ranges = {
        cls.api_key: (cls.min_version, cls.max_version)
        for cls in declared_messages().values()
        if issubclass(cls, Request)
    }
    return ranges | {ProduceRequest.api_key: (0, ProduceRequest.max_version)}


class Tee:
    """The proxy. `source` names the client whose turn it is; `exchanges` is what was kept so far."""

    def __init__(self, *, narrows: bool = True) -> None:
        self.source = ""
        self._narrows = narrows
        self.exchanges: list[Exchange] = []
        self.upstream: tuple[str, int] | None = None
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._sockets: list[socket.socket] = [self._server]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def has_seen(self, cls: type[Request[Any]]) -> bool:
        """Whether such a request was answered, to whichever client."""
        return any(exchange.api_key == cls.api_key for exchange in self.exchanges)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in self._sockets:
            hang_up(sock)
            sock.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            assert self.upstream is not None
            try:
                broker = socket.create_connection(self.upstream)
            except ConnectionError:  # the broker is being restarted; clients come again
                client.close()
                continue
            self._sockets += (client, broker)
            waiting: deque[tuple[str, bytes]] = deque()
            threading.Thread(target=self._requests, args=(client, broker, waiting), daemon=True).start()
            threading.Thread(target=self._responses, args=(client, broker, waiting), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, waiting: deque[tuple[str, bytes]]) -> None:
        while (frame := receive_frame(client)) is not None:
            waiting.append((self.source, frame))
            if not send_frame(broker, frame):
                break
        hang_up(broker)

    def _responses(self, client: socket.socket, broker: socket.socket, waiting: deque[tuple[str, bytes]]) -> None:
        while (frame := receive_frame(broker)) is not None:
            # Kafka answers in order; acks=0, which it does not answer, is not used here.
            source, request = waiting.popleft()
            api_key, api_version = struct.unpack_from(">hh", request)
            self.exchanges.append(Exchange(source, api_key, api_version, request, frame))
            if api_key == ApiVersionsRequest.api_key and self._narrows:
                frame = narrowed(frame, api_version)
            if not send_frame(client, frame):
                break
        hang_up(client)


def narrowed(frame: bytes, version: int) -> bytes:
    """An answer to ApiVersions with our ranges, as far as the broker has them, and without APIs that we do not have."""
    if frame[4:6] != b"\x00\x00":
        return frame  # an error, in version 0 and with the range of this API alone
    ranges = served_ranges()
    correlation_id, position = read_response_header(frame, False)
    answer = codec.decode(ApiVersionsResponse, version, frame, position)
    answer.api_keys = [api for api in answer.api_keys if api.api_key in ranges]
    for api in answer.api_keys:
        first, last = ranges[api.api_key]
        api.min_version, api.max_version = first, min(last, api.max_version)  # some of ours are of a later release
    return b"".join(response_frame(correlation_id, False, codec.encode_parts(answer, version)))[4:]


def hang_up(sock: socket.socket) -> None:
    """Ends a connection also for the thread that waits at it, which closing the socket would not."""
    with suppress(OSError):  # it has ended already
        sock.shutdown(socket.SHUT_RDWR)


def receive_frame(sock: socket.socket) -> bytes | None:
    """The next frame without its length; None when the peer or this side is closed."""
    size = receive(sock, 4)
    return None if size is None else receive(sock, int.from_bytes(size))


def receive(sock: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            part = sock.recv(size - len(data))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)


def send_frame(sock: socket.socket, frame: bytes) -> bool:
    try:
        sock.sendall(len(frame).to_bytes(4) + frame)
    except OSError:
        return False
    return True
