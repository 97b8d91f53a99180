"""A broker of ours and Apache Kafka with the same users, on listeners with SASL, and raw conversations with both."""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.scram import Challenge, ScramClient, salted_password
from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker, settings_words
from tests.compat.peer import Peer

ALICE: Final = "alice"
PASSWORD: Final = "correct horse"  # noqa: S105  (nobody's)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CODES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
OAUTH: Final = (
    'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";'
)
LINES: Final = {
    "plain": f'{PLAIN} required user_{ALICE}="{PASSWORD}" user_bob="of bob";',
    "scram-sha-256": SCRAM,
    "scram-sha-512": SCRAM,
    "oauthbearer": OAUTH,
}
DELAY_MS: Final = "50"

Address = tuple[str, int]
"""Of a listener with SASL."""


def properties(listener: str, **more: str) -> dict[str, str]:
    """What both are told."""
    lines = {f"listener.name.{listener}.{mechanism}.sasl.jaas.config": line for mechanism, line in LINES.items()}
    common = {"sasl.enabled.mechanisms": ",".join(MECHANISMS), "connection.failed.authentication.delay.ms": DELAY_MS}
    return lines | common | more


@contextmanager
def our_broker(directory: Path, **more: str) -> Generator[Address]:
    """With the users of SCRAM that Kafka's is formatted with."""
    options = properties("plaintext", **more) | {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT",
        "sasl.oauthbearer.allow.unsecured.tokens": "true",
    }
    with OdradekBroker(directory / "data", *settings_words(options)) as running:
        address = running.host, running.port
        with Peer(*address) as peer:
            authenticate(peer, "PLAIN", plain(ALICE, PASSWORD))
            for mechanism in CODES:  # a user may stand in a request once
                peer.ask(AlterUserScramCredentialsRequest(upsertions=[upsertion(mechanism)]), 0)
        yield address


@contextmanager
def kafka(**more: str) -> Generator[Address]:
    users = [(mechanism, ALICE, PASSWORD) for mechanism in CODES]
    with ApacheKafka(
        properties=properties("sasl_plaintext", **more), listeners=["SASL_PLAINTEXT"], scram=users
    ) as running:
        yield running.host, running.ports["SASL_PLAINTEXT"]


def upsertion(mechanism: str, user: str = ALICE, password: str = PASSWORD) -> ScramCredentialUpsertion:
    salt = b"0123456789abcdefghijklmnop"
    return ScramCredentialUpsertion(
        name=user,
        mechanism=CODES[mechanism],
        iterations=4096,
        salt=salt,
        salted_password=salted_password(mechanism, password, Challenge(salt, 4096)),
    )


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def unsecured(user: str = ALICE, lives_s: float = 3600.0, **more: object) -> str:
    """A token that nobody has signed."""

    def part(content: dict[str, object]) -> str:
        return urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now_s = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': user, 'iat': now_s, 'exp': now_s + lives_s} | more)}."


def bearer(token: str) -> bytes:
    return f"n,,\1auth=Bearer {token}\1\1".encode()


def authenticate(peer: Peer, mechanism: str, token: bytes) -> SaslAuthenticateResponse:
    peer.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    return peer.ask(SaslAuthenticateRequest(auth_bytes=token), 2)


class Conversation:
    """One connection, and what came of each step, as a trace that can be compared."""

    def __init__(self, address: Address) -> None:
        self.peer = Peer(*address)
        self.trace: list[object] = []

    def ask(self, request: Request[Any], version: int, told: Callable[[Any], object]) -> Any:
        """The answer, None if the broker has closed the connection instead."""
        try:
            answer = self.peer.ask(request, version)
        except OSError:
            self.trace.append("closed")
            return None
        self.trace.append(told(answer))
        return answer

    def shake(self, mechanism: str, version: int = 1) -> None:
        self.ask(
            SaslHandshakeRequest(mechanism=mechanism), version, lambda each: (each.error_code, sorted(each.mechanisms))
        )

    def token(self, token: bytes, version: int = 2) -> Any:
        def told(answer: SaslAuthenticateResponse) -> object:
            kind = bytes(answer.auth_bytes)[:2] if answer.auth_bytes[:1] in (b"r", b"v") else bytes(answer.auth_bytes)
            return answer.error_code, answer.error_message, kind.replace(b" ", b""), answer.session_lifetime_ms > 0

        return self.ask(SaslAuthenticateRequest(auth_bytes=token), version, told)

    def scram(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
        client = ScramClient(mechanism, user, "fixed-nonce")
        self.shake(mechanism)
        first = self.token(client.first())
        if first is not None and not first.error_code:
            salted = salted_password(mechanism, password, client.challenge(bytes(first.auth_bytes)))
            self.token(client.final(salted))

    def metadata(self) -> None:
        self.ask(MetadataRequest(topics=[]), 8, lambda each: len(each.brokers))

    def raw(self, token: bytes) -> None:
        """Without a header, as behind SaslHandshake 0."""
        try:
            self.peer.send_raw(token)
            self.trace.append(bytes(self.peer.receive_frame())[:2])
        except OSError:
            self.trace.append("closed")

    def close(self) -> None:
        """Notes whether the broker closes it, if it has not said anything more."""
        self.peer.close()
