"""SaslHandshake (key 17): names the SASL mechanism of a connection, which SaslAuthenticate then carries out.

A broker that does not offer the mechanism answers UNSUPPORTED_SASL_MECHANISM with those that it does, and closes.

v0: the tokens that follow have no headers of Kafka's (KIP-43)
v1: they travel in SaslAuthenticate (KIP-152)
"""

from odradek.protocol.codec.schema import Request, Response, i16, message


@message(key=17, versions=(0, 1), flexible=None)
class SaslHandshakeResponse(Response):
    error_code: i16 = 0
    mechanisms: list[str]


@message(key=17, versions=(0, 1), flexible=None)
class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    mechanism: str
