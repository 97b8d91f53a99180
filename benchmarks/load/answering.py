"""A server that is none: answers a few APIs from a table, a thread a connection. For what the Java tools need to meet.

ApiVersions follows from the table. An unknown request, or a malformed one, ends its connection.
"""

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import FrameReader, peek_request, read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

FRAME_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Served:
    """An API, the versions of it that are answered, and what answers."""

    request_type: type[Request[Any]]
    versions: tuple[int, int]
    answer: Callable[[Any, int], Response]


class Answering:
    """Answers connections until the process ends."""

    def __init__(self, served: Sequence[Served]) -> None:
        own = Served(ApiVersionsRequest, (0, 3), lambda request, version: self._api_versions(True))
        self._served = {each.request_type.api_key: each for each in (own, *served)}

    def run(self, server: socket.socket) -> None:
        """Takes connections for ever."""
        while True:
            connection, _ = server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        """Answers one connection until it is closed."""
        reader = FrameReader(FRAME_BYTES_MAX)
        with connection:
            while True:
                try:
                    count = connection.recv_into(reader.get_buffer())
                except ConnectionError:
                    return
                if count == 0:
                    return
                reader.buffer_updated(count)
                while (frame := reader.next_frame()) is not None:
                    connection.sendall(self.answer(frame))

    def answer(self, frame: memoryview) -> bytes:
        """The reply to a request, size first. Raises KeyError, MalformedMessage."""
        api_key, version, correlation_id = peek_request(frame)
        served = self._served[api_key]
        if api_key == ApiVersionsRequest.api_key:
            # "a broker that does not know the version of the request answers version 0" (KIP-511), and always with the
            # oldest header.
            is_known = version <= served.versions[1]
            versions = self._api_versions(is_known)
            return b"".join(response_frame(correlation_id, False, encode_parts(versions, version if is_known else 0)))
        flexible = served.request_type.is_flexible(version)
        _header, position = read_request_header(frame, flexible)
        response = served.answer(decode(served.request_type, version, frame, position), version)
        return b"".join(response_frame(correlation_id, flexible, encode_parts(response, version)))

    def _api_versions(self, is_known: bool) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=key, min_version=served.versions[0], max_version=served.versions[1])
            for key, served in sorted(self._served.items())
        ]
        error = ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION
        return ApiVersionsResponse(error_code=error.value, api_keys=keys)
