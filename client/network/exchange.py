"""A request and its answer: the frame that goes out, and the response in the frame that comes back."""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, MalformedMessage, TrailingBytes
from odradek.protocol.frames import read_response_header
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.primitives import Buffer

__all__ = ["Framer", "Sent", "response_in"]

_HEADER: Final = Struct(">ihhih")  # size, api_key, api_version, correlation_id, length of the client id
_SIZE_BYTES: Final = 4
_UNSUPPORTED_VERSION: Final = int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)


class Sent:
    """A request on its way, or about to be."""

    __slots__ = ("correlation_id", "deadline_ms", "done", "response_type", "sent_ms", "timeout_ms", "version")

    def __init__(
        self,
        response_type: type[Response],
        version: int,
        correlation_id: int,
        done: Callable[[Any], None],
        timeout_ms: float,
        now_ms: float,
    ) -> None:
        self.response_type = response_type
        self.version = version
        self.correlation_id = correlation_id
        self.done = done
        self.timeout_ms = timeout_ms
        self.sent_ms = now_ms
        self.deadline_ms = now_ms + timeout_ms

    def restart(self, now_ms: float) -> None:
        """Its time begins now."""
        self.sent_ms = now_ms
        self.deadline_ms = now_ms + self.timeout_ms

    def __str__(self) -> str:
        return f"{self.response_type.__name__.removesuffix('Response')} v{self.version}"


class Framer:
    """Makes the frames of one client: what `odradek.protocol.frames.request_frame` makes, in a third of its time (0.4
    µs).

    The client id is encoded once, and size, header and the beginning of the body are joined in one go.
    """

    __slots__ = ("_client_id", "_client_id_and_tags")

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id.encode()
        self._client_id_and_tags = self._client_id + b"\0"  # of flexible requests, whose tag section is empty

    def frame(self, request: Request[Any], version: int, correlation_id: int) -> list[Buffer]:
        """The request as buffers that follow one another, records by reference. Raises ValueError."""
        parts = encode_parts(request, version)
        client_id = self._client_id_and_tags if request.is_flexible(version) else self._client_id
        size_bytes = _HEADER.size - _SIZE_BYTES + len(client_id)
        for part in parts:
            size_bytes += len(part)
        header = _HEADER.pack(size_bytes, request.api_key, version, correlation_id, len(self._client_id))
        if not parts:
            return [header + client_id]
        parts[0] = b"".join((header, client_id, parts[0]))
        return parts


def response_in(frame: memoryview, sent: Sent) -> Response:
    """The response to this request. Bytes left over are ignored. Raises MalformedMessage."""
    response_type, version = sent.response_type, sent.version
    is_greeting = response_type is ApiVersionsResponse
    # The header of this one has version 0 always (KIP-511).
    correlation_id, position = read_response_header(frame, not is_greeting and response_type.is_flexible(version))
    if correlation_id != sent.correlation_id:
        raise MalformedMessage(f"correlation id {correlation_id}, where {sent.correlation_id} was due")
    if is_greeting and bytes(frame[position : position + 2]) == _UNSUPPORTED_VERSION:
        version = 0  # so has its body, then
    try:
        return decode(response_type, version, frame, position)
    except TrailingBytes as error:
        response: Response = error.message
        return response
