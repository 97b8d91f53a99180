"""Listeners with SASL for tests, without a broker around them, and clients' sides of the mechanisms, written out.

outside = listener({"sasl.enabled.mechanisms": "PLAIN"}, environment)
session = await authenticated(SaslConnection(outside), "PLAIN", plain("alice", "secret"))
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.authentication.failures import AuthenticationCounts
from odradek.broker.authentication.jwks import Jwks
from odradek.broker.authentication.password_checks import PasswordChecks
from odradek.broker.authentication.password_file import PasswordFile
from odradek.broker.authentication.sasl_connection import SaslConnection, Session
from odradek.broker.authentication.sasl_listener import SaslListener, SaslParts
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.broker.config.broker_config import BrokerConfig
from odradek.protocol.errors import ErrorCode
from odradek.protocol.scram import ScramClient, salted_password
from odradek.protocol.scram_server import credential_of
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

NAME: Final = "OUTSIDE"
ALICE: Final = "alice"
PASSWORD: Final = "correct horse"  # noqa: S105  (nobody's)
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ALL: Final = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "sasl.oauthbearer.allow.unsecured.tokens": "true",
    "listener.name.outside.plain.sasl.jaas.config": (
        f'{PLAIN_MODULE} required username="broker" password="between brokers" user_broker="between brokers" '
        f'user_{ALICE}="{PASSWORD}" user_bob="of bob";'
    ),
    "connection.failed.authentication.delay.ms": "10",
}
"""Options of a listener OUTSIDE that offers everything."""
SALT: Final = b"0123456789abcdefghijklmnop"
CREDENTIALS: Final = ScramCredentials(
    {
        "SCRAM-SHA-256": {ALICE: credential_of("SCRAM-SHA-256", PASSWORD, SALT, 4096)},
        "SCRAM-SHA-512": {
            ALICE: credential_of("SCRAM-SHA-512", PASSWORD, SALT, 4096),
            "bob": credential_of("SCRAM-SHA-512", "of bob", SALT, 8192),
        },
    },
    secret=b"the secret of the cluster",
)


def listener(
    options: Mapping[str, str],
    environment: Environment,
    *,
    credentials: ScramCredentials = CREDENTIALS,
    files: Mapping[str, PasswordFile] | None = None,
    keys: Mapping[str, Jwks] | None = None,
    checks: PasswordChecks | None = None,
) -> SaslListener:
    """The listener OUTSIDE of a broker with these options."""
    parts = SaslParts(
        environment=environment,
        credentials=lambda: credentials,
        checks=checks or PasswordChecks(environment, Tasks(environment.loop)),
        counts=AuthenticationCounts(environment.monotonic_ms()),
        files=files or {},
        keys=keys or {},
    )
    return SaslListener(NAME, BrokerConfig(options), parts)


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


def bearer(token: str, authorization_id: str = "") -> bytes:
    authorization = f"a={authorization_id}" if authorization_id else ""
    return f"n,{authorization},\1auth=Bearer {token}\1\1".encode()


def begun(connection: SaslConnection, mechanism: str, version: int = 1) -> SaslConnection:
    """With a handshake that went well."""
    assert connection.handshake(mechanism, version).code is ErrorCode.NONE
    return connection


async def authenticated(connection: SaslConnection, mechanism: str, token: bytes) -> Session:
    """What comes of an exchange of one token."""
    return await begun(connection, mechanism).authenticate(token)


async def by_scram(
    connection: SaslConnection,
    user: str = ALICE,
    password: str = PASSWORD,
    mechanism: str = "SCRAM-SHA-256",
    nonce: str = "client",
) -> Session:
    """What comes of an exchange of SCRAM, in which the server proves that it knows the password, too."""
    client = ScramClient(mechanism, user, nonce)
    first = await begun(connection, mechanism).authenticate(client.first())
    salted = salted_password(mechanism, password, client.challenge(first.token))
    session = await connection.authenticate(client.final(salted))
    client.verify(session.token)
    return session
