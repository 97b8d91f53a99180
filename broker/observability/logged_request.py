"""What the request log tells of a request, beside its times."""

from typing import NamedTuple

from odradek.protocol.codec.schema import Message


class LoggedRequest(NamedTuple):
    """What is told of a request beside its times."""

    api_key: int
    api_name: str
    version: int
    correlation_id: int
    client_id: str | None
    is_forwarded: bool
    peer: str
    principal: str
    listener: str
    security_protocol: str
    software: str
    """Name and version of the client's, with a space between them; empty: not told."""
    request: Message
    response: Message | None
