"""SASL at the scripted brokers: handshake, PLAIN, SCRAM and OAUTHBEARER exchanges, session lifetimes (KIP-368).

    require_sasl(cluster, Sasl({"alice": "secret"}, mechanisms=["SCRAM-SHA-256"], session_lifetime_ms=60_000))

Before a connection is authenticated, and after its session has ended, anything but ApiVersions and the exchange itself
closes it, as SaslServerAuthenticator.java does. The servers' side of the mechanisms is written here from the RFCs
(4616, 5802, 7628), and shares no code with the client's.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.client.broker_connection import BrokerConnection
from tests.client.broker_handlers import Call
from tests.client.scripted_broker import ScriptedCluster

ITERATIONS = 4096
INVALID = "Authentication failed: Invalid username or password"

Exchange = Generator[bytes, bytes, tuple[str, bytes]]
"""Is sent the client's tokens and yields the server's (the first yield only waits); returns the user, and what the
server says together with its consent."""


class Refused(Exception):
    """The client is not who it says."""


class Sasl:
    """Who may come in. `mechanisms`: those offered. `session_lifetime_ms`: 0 for sessions without end.

    `passwords` may be changed while the cluster runs; of OAUTHBEARER they are the tokens.
    """

    def __init__(
        self,
        passwords: Mapping[str, str],
        *,
        mechanisms: Sequence[str] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
        session_lifetime_ms: int = 0,
    ) -> None:
        self.passwords = dict(passwords)
        self.mechanisms = list(mechanisms)
        self.session_lifetime_ms = session_lifetime_ms
        self.nonce = "server-nonce"
        self.salt = b"as good as random"
        self.authenticated: list[tuple[int, str]] = []
        """Number of the connection and name of the user, for each exchange that succeeded."""

    def begin(self, mechanism: str) -> Exchange:
        if mechanism == "PLAIN":
            exchange = self._plain()
        elif mechanism == "OAUTHBEARER":
            exchange = self._oauthbearer()
        else:
            exchange = self._scram(mechanism.removeprefix("SCRAM-").replace("-", "").lower())
        next(exchange)
        return exchange

    def _password(self, user: str) -> str:
        if user not in self.passwords:
            raise Refused(INVALID)
        return self.passwords[user]

    def _plain(self) -> Exchange:
        _, user, password = (yield b"").decode().split("\0")
        if self._password(user) != password:
            raise Refused(INVALID)
        return user, b""

    def _oauthbearer(self) -> Exchange:
        header, authorization, *_ = (yield b"").decode().split("\1")
        token = authorization.removeprefix("auth=Bearer ")
        user = next((user for user, good in self.passwords.items() if good == token), None)
        if user is None:
            # RFC 7628, 3.2.3: the client answers the error with a single 0x01.
            answer = yield json.dumps({"status": "invalid_token"}).encode()
            raise Refused("invalid_token" if answer == b"\1" else f"{answer!r} instead of 0x01")
        if not header.startswith("n,"):
            raise Refused(f"a header {header}")
        return user, b""

    def _scram(self, hash_name: str) -> Exchange:
        def mac(key: bytes, text: str) -> bytes:
            return hmac.digest(key, text.encode(), hash_name)

        first = (yield b"").decode()
        bare = first.removeprefix("n,,")
        fields = dict(part.split("=", 1) for part in bare.split(","))
        user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        password = self._password(user).encode()
        nonce = fields["r"] + self.nonce
        challenge = f"r={nonce},s={base64.b64encode(self.salt).decode()},i={ITERATIONS}"
        final = (yield challenge.encode()).decode()
        without_proof, _, proof = final.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac(hash_name, password, self.salt, ITERATIONS)
        client_key = mac(salted, "Client Key")
        text = f"{bare},{challenge},{without_proof}"
        signature = mac(hashlib.new(hash_name, client_key).digest(), text)
        expected = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        if without_proof != f"c=biws,r={nonce}" or base64.b64decode(proof) != expected:
            raise Refused(INVALID)
        return user, b"v=" + base64.b64encode(mac(mac(salted, "Server Key"), text))


def require_sasl(cluster: ScriptedCluster, sasl: Sasl) -> None:
    """From now on, connections to the cluster have to be authenticated."""

    def handshake(call: Call) -> SaslHandshakeResponse:
        request = call.exchange.request
        assert isinstance(request, SaslHandshakeRequest)
        if request.mechanism not in sasl.mechanisms:
            # Kafka answers, and closes the connection then.
            call.broker.after(1, call.connection.transport.close)
            return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=sasl.mechanisms)
        call.connection.state["exchange"] = sasl.begin(request.mechanism)
        return SaslHandshakeResponse(mechanisms=sasl.mechanisms)

    def authenticate(call: Call) -> SaslAuthenticateResponse:
        request, state = call.exchange.request, call.connection.state
        assert isinstance(request, SaslAuthenticateRequest)
        try:
            token = state["exchange"].send(bytes(request.auth_bytes))
        except StopIteration as ended:
            state["ends_at_ms"] = cluster.now_ms() + (sasl.session_lifetime_ms or float("inf"))
            user, token = ended.value
            sasl.authenticated.append((call.connection.number, user))
            return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=sasl.session_lifetime_ms)
        except (Refused, ValueError, KeyError) as error:
            call.broker.after(100, call.connection.transport.close)
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error), auth_bytes=b""
            )
        return SaslAuthenticateResponse(auth_bytes=token)

    def allows(connection: BrokerConnection, request_type: type[Request[Any]]) -> bool:
        if request_type in (ApiVersionsRequest, SaslHandshakeRequest):
            return True
        if request_type is SaslAuthenticateRequest:
            return "exchange" in connection.state
        ends_at_ms: float = connection.state.get("ends_at_ms", 0.0)
        return cluster.now_ms() < ends_at_ms

    cluster.serve(SaslHandshakeRequest, handshake)
    cluster.serve(SaslAuthenticateRequest, authenticate)
    cluster.guard = allows
