"""Envelope (key 58): a request that a broker sends on to the controller, with who sent it and from where (KIP-590).

v0: the API, flexible

`request_data` is a request with its header, without its size, as `response_data` is a response; `request_principal` is
DefaultPrincipalData (protocol/principal_data.py), `client_host_address` the 4 or 16 bytes of an IP address.
"""

from odradek.protocol.codec.schema import Request, Response, i16, message


@message(key=58, versions=(0, 0), flexible=0)
class EnvelopeResponse(Response):
    response_data: bytes | None = None
    error_code: i16 = 0


@message(key=58, versions=(0, 0), flexible=0)
class EnvelopeRequest(Request[EnvelopeResponse]):
    request_data: bytes
    request_principal: bytes | None = None
    client_host_address: bytes
