"""What a listener offers: by its options, as they are when an exchange begins, and by the keys of the issuer."""

import logging

import pytest

from odradek.broker.authentication.jwks import Jwks, JwksTimes
from odradek.broker.authentication.mechanism import Refused
from odradek.broker.authentication.password_file import PasswordFile
from odradek.broker.authentication.password_hash import Cost, hashed, written
from odradek.broker.authentication.sasl_connection import AuthenticationFailed, SaslConnection
from odradek.broker.authentication.token_claims import TokenRules
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.disk.memory_disk import MemoryDisk
from tests.broker.authentication.listeners import (
    ALICE,
    ALL,
    PASSWORD,
    PLAIN_MODULE,
    authenticated,
    bearer,
    listener,
    plain,
)
from tests.broker.authentication.tokens import Key, jwks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

URL = "file:///keys"
SIGNED = ALL | {"sasl.oauthbearer.jwks.endpoint.url": URL, "sasl.oauthbearer.expected.issuer": "https://idp"}
KEY = Key("ES256", "one")


def claims(environment: VirtualEnvironment, **more: object) -> dict[str, object]:
    now_s = environment.now_ms() // 1000
    return {"sub": ALICE, "iss": "https://idp", "iat": now_s, "exp": now_s + 60, **more}


async def with_keys(environment: VirtualEnvironment) -> Jwks:
    keys = Jwks(URL, lambda: jwks(KEY.described()), JwksTimes(1000, 1, 1), environment)
    await keys.load()
    return keys


async def test_mechanisms_are_those_that_are_enabled_and_served() -> None:
    environment = VirtualEnvironment()
    for enabled, expected in (
        ("GSSAPI", ()),
        ("SCRAM-SHA-512,PLAIN", ("PLAIN", "SCRAM-SHA-512")),
        ("GSSAPI,OAUTHBEARER", ("OAUTHBEARER",)),
    ):
        assert listener({"sasl.enabled.mechanisms": enabled}, environment).mechanisms == expected
    own = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.outside.sasl.enabled.mechanisms": "OAUTHBEARER"}
    assert listener(own, environment).mechanisms == ("OAUTHBEARER",)
    assert listener({}, environment).mechanisms == ()


async def test_signed_tokens_are_checked_with_the_keys_and_the_rules() -> None:
    environment = VirtualEnvironment()
    outside = listener(SIGNED, environment, keys={URL: await with_keys(environment)})
    session = await authenticated(SaslConnection(outside), "OAUTHBEARER", bearer(KEY.signed(claims(environment))))
    assert 59_000 < session.lifetime_ms <= 60_000
    for token in (
        KEY.signed(claims(environment, iss="https://other")),
        KEY.signed(claims(environment, exp=environment.now_ms() // 1000 - 1)),
        KEY.signed(claims(environment, aud="kafka")),
        Key("ES256", "one").signed(claims(environment)),
        Key("ES256", "other").signed(claims(environment)),
    ):
        connection = SaslConnection(outside)
        first = await authenticated(connection, "OAUTHBEARER", bearer(token))
        assert first.token == b'{"status":"invalid_token"}'
        with pytest.raises(AuthenticationFailed):
            await connection.authenticate(b"\1")


async def test_where_there_are_keys_an_unsecured_token_is_none() -> None:
    """Though the option allows them: it is for listeners without keys."""
    environment = VirtualEnvironment()
    outside = listener(SIGNED, environment, keys={URL: await with_keys(environment)})
    unsecured = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAwMH0."
    session = await authenticated(SaslConnection(outside), "OAUTHBEARER", bearer(unsecured))
    assert session.token == b'{"status":"invalid_token"}'


async def test_an_unsecured_token_is_taken_only_where_the_option_says_so() -> None:
    environment = VirtualEnvironment()
    unsecured = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MjAwMDAwMDAwMH0."
    for value, lets_in in (("true", True), ("false", False)):
        outside = listener(ALL | {"sasl.oauthbearer.allow.unsecured.tokens": value}, environment)
        session = await authenticated(SaslConnection(outside), "OAUTHBEARER", bearer(unsecured))
        assert (session.token == b"") == lets_in


async def test_an_unknown_key_has_the_keys_asked_for() -> None:
    environment = VirtualEnvironment()
    keys = await with_keys(environment)
    wanted: list[bool] = []
    keys.want = lambda: wanted.append(True)  # type: ignore[method-assign]
    outside = listener(SIGNED, environment, keys={URL: keys})
    for key in (Key("ES256", "other"), KEY):
        await authenticated(SaslConnection(outside), "OAUTHBEARER", bearer(key.signed(claims(environment))))
    assert wanted == [True]


async def test_users_come_from_the_line_and_the_file() -> None:
    environment, disk = VirtualEnvironment(), MemoryDisk()
    disk.write_whole("users", f"carol:{written(hashed('hers', b'0123456789abcdef', Cost(14, 1, 1)))}".encode())
    file = PasswordFile("users", disk, environment)
    await file.load()
    outside = listener(ALL | {"sasl.plain.password.file": "users"}, environment, files={"users": file})
    for user, password in ((ALICE, PASSWORD), ("carol", "hers")):
        await authenticated(SaslConnection(outside), "PLAIN", plain(user, password))


async def test_a_line_that_is_changed_counts_from_the_next_exchange_on(caplog: pytest.LogCaptureFixture) -> None:
    environment = VirtualEnvironment()
    outside = listener(ALL, environment)
    await authenticated(SaslConnection(outside), "PLAIN", plain(ALICE, PASSWORD))
    name = "listener.name.outside.plain.sasl.jaas.config"
    for line, password, lets_in in (
        (f'{PLAIN_MODULE} required user_{ALICE}="new";', PASSWORD, False),
        (f'{PLAIN_MODULE} required user_{ALICE}="new";', "new", True),
        (f'{PLAIN_MODULE} required user_{ALICE}="geheim', "new", True),  # broken: the one before counts on
        (f"{PLAIN_MODULE} required;", "new", False),
    ):
        vars(outside)["_config"] = BrokerConfig(ALL | {name: line})
        if lets_in:
            await authenticated(SaslConnection(outside), "PLAIN", plain(ALICE, password))
        else:
            with pytest.raises(AuthenticationFailed):
                await authenticated(SaslConnection(outside), "PLAIN", plain(ALICE, password))
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 1
    assert "of listener OUTSIDE for PLAIN cannot be used" in told[0]
    assert "geheim" not in caplog.text


async def test_the_rules_of_tokens_are_the_options() -> None:
    from odradek.broker.authentication.sasl_listener import rules_of

    options = {
        "sasl.oauthbearer.expected.issuer": "https://idp",
        "sasl.oauthbearer.expected.audience": "a,b",
        "sasl.oauthbearer.scope.claim.name": "scp",
        "sasl.oauthbearer.sub.claim.name": "email",
        "sasl.oauthbearer.required.scope": "kafka",
        "sasl.oauthbearer.clock.skew.seconds": "3",
    }
    found = rules_of(BrokerConfig(options).listener("OUTSIDE").mechanism("OAUTHBEARER"))
    assert found == TokenRules("https://idp", ("a", "b"), "scp", "email", ("kafka",), 3000, True)
    assert rules_of(BrokerConfig().listener("OUTSIDE").mechanism("OAUTHBEARER")) == TokenRules(clock_skew_ms=30_000)


async def test_nonces_are_never_the_same() -> None:
    outside = listener(ALL, VirtualEnvironment())
    answers = set[bytes]()
    for _ in range(50):
        answers.add((await outside.begin("SCRAM-SHA-256").respond(b"n,,n=alice,r=x")).token)
    assert len(answers) == 50


async def test_a_mechanism_that_was_enabled_later_without_what_it_needs_lets_nobody_in() -> None:
    outside = listener({"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER"}, VirtualEnvironment())
    with pytest.raises(Refused):
        await outside.begin("PLAIN").respond(plain(ALICE, PASSWORD))
    assert (await outside.begin("OAUTHBEARER").respond(bearer("x"))).authenticated is None
