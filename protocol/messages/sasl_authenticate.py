"""SaslAuthenticate (key 36): one token of the SASL exchange each way (KIP-152).

A mechanism that has nothing more to say sends an empty token. After the session's lifetime the broker takes nothing on
the connection but a new SaslHandshake (KIP-368).

v0: tokens, and the broker's own words where it refuses
v1: session_lifetime_ms (KIP-368); 0: it has no end
v2: flexible (KIP-482)
"""

from odradek.protocol.codec.schema import Request, Response, field, i16, i64, message


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateResponse(Response):
    error_code: i16 = 0
    error_message: str | None = None
    auth_bytes: bytes
    session_lifetime_ms: i64 = field(since=1, default=0)


@message(key=36, versions=(0, 2), flexible=2)
class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    auth_bytes: bytes

    def __repr__(self) -> str:
        # They may hold a password, which belongs into no log.
        return f"SaslAuthenticateRequest(auth_bytes=<{len(self.auth_bytes)} bytes>)"
