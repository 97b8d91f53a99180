"""One connection's way through SASL: what each stage lets through, and what comes of each mechanism."""

import asyncio
import logging
from typing import Any

import pytest

from odradek.broker.access.principal import Principal
from odradek.broker.authentication.mechanism import TooBusy
from odradek.broker.authentication.sasl_connection import (
    LIFETIME_MS_MAX,
    REAUTHENTICATION_MS_MIN,
    AuthenticationFailed,
    SaslConnection,
    Stage,
)
from odradek.broker.authentication.unsecured_token import unsecured_token
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.scram import ScramClient
from tests.broker.authentication.listeners import (
    ALICE,
    ALL,
    PASSWORD,
    authenticated,
    bearer,
    begun,
    by_scram,
    listener,
    plain,
)
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time(seconds_max=10_000)

VERSIONS, HANDSHAKE, TOKENS, METADATA = (
    each.api_key for each in (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest, MetadataRequest)
)
LIMITED = ALL | {"connections.max.reauth.ms": "60000"}


class Scene:
    """A connection, and where it has been."""

    def __init__(self, options: dict[str, str] | None = None, **parts: Any) -> None:
        self.environment = VirtualEnvironment()
        self.listener = listener(options or ALL, self.environment, **parts)
        self.connection = SaslConnection(self.listener)
        self.connection.peer = "192.0.2.1:5"
        self.stages: list[Stage] = []
        self.connection.moved = self.stages.append

    @property
    def admitted(self) -> set[int]:
        return {key for key in range(100) if self.connection.admits(key)}


def token_for(environment: VirtualEnvironment, user: str = ALICE, lifetime_s: int = 3600) -> str:
    options = {"unsecuredLoginStringClaim_sub": user, "unsecuredLoginLifetimeSeconds": str(lifetime_s)}
    return unsecured_token(options, environment.now_ms())


# ------------------------------------------------------------------------------------------------------- what is let in
async def test_each_stage_lets_through_what_belongs_to_it() -> None:
    scene = Scene(LIMITED)
    assert scene.admitted == {VERSIONS, HANDSHAKE}
    begun(scene.connection, "PLAIN")
    assert scene.admitted == {TOKENS}
    await scene.connection.authenticate(plain(ALICE, PASSWORD))
    assert scene.admitted == set(range(100))
    await scene.environment.sleep(60_001)
    assert scene.connection.has_ended
    assert scene.admitted == {HANDSHAKE}
    begun(scene.connection, "PLAIN")
    assert scene.admitted == {TOKENS}
    with pytest.raises(AuthenticationFailed):
        await scene.connection.authenticate(plain(ALICE, "wrong"))
    assert scene.admitted == set()
    assert scene.stages == [
        Stage.AUTHENTICATING, Stage.READY, Stage.REAUTHENTICATING, Stage.FAILED,
    ]  # fmt: skip


async def test_behind_an_old_handshake_tokens_have_no_header_and_requests_are_none() -> None:
    scene = Scene()
    begun(scene.connection, "PLAIN", 0)
    assert scene.connection.takes_tokens
    assert scene.admitted == set()
    await scene.connection.authenticate(plain(ALICE, PASSWORD))
    assert not scene.connection.takes_tokens
    assert scene.admitted == set(range(100))


# ----------------------------------------------------------------------------------------------------------- mechanisms
async def test_plain() -> None:
    scene = Scene()
    session = await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    assert session == (b"", 0)
    assert scene.connection.principal == Principal("User", ALICE)
    assert scene.listener.counts.successes == {("OUTSIDE", "PLAIN"): 1}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram(mechanism: str) -> None:
    scene = Scene()
    session = await by_scram(scene.connection, mechanism=mechanism)
    assert session.token.startswith(b"v=")
    assert session.lifetime_ms == 0
    assert scene.connection.principal == Principal("User", ALICE)


async def test_oauthbearer_and_its_token_ends_the_session_whatever_the_options_say() -> None:
    scene = Scene()
    token = token_for(scene.environment, lifetime_s=90)
    session = await authenticated(scene.connection, "OAUTHBEARER", bearer(token))
    assert 89_000 <= session.lifetime_ms <= 90_000
    await scene.environment.sleep(89_000)
    assert METADATA in scene.admitted
    await scene.environment.sleep(2_000)
    assert METADATA not in scene.admitted


@pytest.mark.parametrize(
    ("reauth_ms", "token_s", "lifetime_ms"), [("60000", 3600, 60_000), ("7200000", 60, 60_000), ("-1", 60, 60_000)]
)
async def test_the_shorter_of_token_and_option_counts(reauth_ms: str, token_s: int, lifetime_ms: int) -> None:
    scene = Scene(ALL | {"connections.max.reauth.ms": reauth_ms})
    token = token_for(scene.environment, lifetime_s=token_s)
    session = await authenticated(scene.connection, "OAUTHBEARER", bearer(token))
    assert lifetime_ms - 1_000 <= session.lifetime_ms <= lifetime_ms


async def test_a_very_long_session_is_a_number_that_everybody_reads() -> None:
    scene = Scene(ALL | {"connections.max.reauth.ms": str(2**63 - 1)})
    assert (await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))).lifetime_ms == LIFETIME_MS_MAX


async def test_a_machine_that_sleeps_ages_the_session() -> None:
    scene = Scene(LIMITED)
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    scene.environment.sleep_machine_ms(60_001)
    assert scene.admitted == {HANDSHAKE}


async def test_a_mechanism_has_options_of_its_own() -> None:
    scene = Scene(ALL | {"listener.name.outside.scram-sha-512.connections.max.reauth.ms": "5000"})
    assert (await by_scram(scene.connection, mechanism="SCRAM-SHA-512")).lifetime_ms == 5_000
    assert (await by_scram(Scene().connection, mechanism="SCRAM-SHA-256")).lifetime_ms == 0


# ------------------------------------------------------------------------------------------------------------- failures
@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", "PLAIN ", "", "SCRAM-SHA-1", "x" * 10_000])
async def test_a_mechanism_that_is_not_offered(mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(ALL | {"sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN"})
    with caplog.at_level(logging.WARNING):
        answer = scene.connection.handshake(mechanism, 1)
    assert answer == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ("PLAIN", "SCRAM-SHA-512"))
    assert (scene.stages, scene.admitted) == ([Stage.FAILED], set())
    assert scene.listener.counts.failures == {("OUTSIDE", "other"): 1}
    assert "192.0.2.1:5 on listener OUTSIDE" in caplog.text


async def test_one_that_is_known_and_not_offered_counts_under_its_name() -> None:
    scene = Scene(ALL | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    assert scene.connection.handshake("PLAIN", 1).code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert scene.listener.counts.failures == {("OUTSIDE", "PLAIN"): 1}


@pytest.mark.parametrize(
    ("mechanism", "tokens", "told"),
    [
        ("PLAIN", [plain(ALICE, "wrong")], "Authentication failed: Invalid username or password"),
        ("PLAIN", [plain("nobody", "wrong")], "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", [b"nonsense"], None),
        ("SCRAM-SHA-256", [ScramClient("SCRAM-SHA-256", ALICE, "x").first(), b"nonsense"], None),
        ("SCRAM-SHA-256", [ScramClient("SCRAM-SHA-256", "nobody", "x").first(), b"nonsense"], None),
        ("OAUTHBEARER", [bearer("x"), b"\1"], '{"status":"invalid_token"}'),
        ("OAUTHBEARER", [b"nonsense"], None),
    ],
)
async def test_whoever_is_refused_has_failed_for_good(
    mechanism: str, tokens: list[bytes], told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    begun(scene.connection, mechanism)
    for token in tokens[:-1]:
        assert (await scene.connection.authenticate(token)).lifetime_ms == 0
    usual = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    with caplog.at_level(logging.WARNING), pytest.raises(AuthenticationFailed) as caught:
        await scene.connection.authenticate(tokens[-1])
    assert str(caught.value) == (told or usual)
    assert scene.stages == [Stage.AUTHENTICATING, Stage.FAILED]
    assert (scene.admitted, scene.connection.principal) == (set(), None)
    assert scene.listener.counts.failures == {("OUTSIDE", mechanism): 1}
    assert len(caplog.records) == 1
    assert "wrong" not in caplog.text


async def test_who_comes_at_a_bad_time_has_failed_too() -> None:
    scene = Scene()
    begun(scene.connection, "PLAIN")

    async def respond(token: bytes) -> Any:
        raise TooBusy("64 wait")

    vars(scene.connection)["_exchange"].respond = respond
    with pytest.raises(TooBusy):
        await scene.connection.authenticate(plain(ALICE, PASSWORD))
    assert (scene.stages[-1], scene.connection.principal) == (Stage.FAILED, None)


@pytest.mark.parametrize("error", [RuntimeError("ours"), asyncio.CancelledError()])
async def test_what_nobody_foresaw_lets_nobody_in(error: BaseException) -> None:
    scene = Scene()
    begun(scene.connection, "PLAIN")

    async def respond(token: bytes) -> Any:
        raise error

    vars(scene.connection)["_exchange"].respond = respond
    with pytest.raises(type(error)):
        await scene.connection.authenticate(plain(ALICE, PASSWORD))
    assert (scene.stages[-1], scene.admitted, scene.connection.principal) == (Stage.FAILED, set(), None)


async def test_while_a_password_is_checked_nothing_is_let_through() -> None:
    scene = Scene()
    begun(scene.connection, "PLAIN")
    seen: list[set[int]] = []
    exchange = vars(scene.connection)["_exchange"]
    respond = exchange.respond

    async def waiting(token: bytes) -> Any:
        seen.append(scene.admitted)
        return await respond(token)

    exchange.respond = waiting
    await scene.connection.authenticate(plain(ALICE, PASSWORD))
    assert seen == [set()]


# ---------------------------------------------------------------------------------------------------------------- again
async def test_a_session_is_renewed_and_lasts_as_long_again() -> None:
    scene = Scene(LIMITED)
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    for _ in range(3):
        await scene.environment.sleep(50_000)
        assert (await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))).lifetime_ms == 60_000
    assert scene.listener.counts.renewals == {("OUTSIDE", "PLAIN"): 3}
    assert scene.listener.counts.successes == {("OUTSIDE", "PLAIN"): 1}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_each_mechanism_renews_its_sessions(mechanism: str) -> None:
    scene = Scene(LIMITED)
    for _ in range(2):
        if mechanism == "OAUTHBEARER":
            await authenticated(scene.connection, mechanism, bearer(token_for(scene.environment)))
        else:
            await by_scram(scene.connection, mechanism=mechanism)
        await scene.environment.sleep(2_000)
    assert scene.connection.stage is Stage.READY


async def test_the_principal_may_not_change() -> None:
    scene = Scene(LIMITED)
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    with pytest.raises(AuthenticationFailed) as caught:
        await authenticated(scene.connection, "PLAIN", plain("bob", "of bob"))
    assert str(caught.value) == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert scene.connection.stage is Stage.FAILED
    assert scene.connection.principal == Principal("User", ALICE)
    assert scene.listener.counts.failed_renewals == {("OUTSIDE", "PLAIN"): 1}


async def test_the_mechanism_may_not_change() -> None:
    scene = Scene(LIMITED)
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    begun(scene.connection, "SCRAM-SHA-256")
    with pytest.raises(AuthenticationFailed) as caught:
        await scene.connection.authenticate(ScramClient("SCRAM-SHA-256", ALICE, "x").first())
    assert str(caught.value) == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )
    assert scene.connection.stage is Stage.FAILED


async def test_a_session_without_end_is_not_begun_again() -> None:
    scene = Scene()
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    assert scene.connection.handshake("PLAIN", 1) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    assert scene.connection.stage is Stage.READY


async def test_a_session_is_begun_again_once_a_second_at_most() -> None:
    scene = Scene(LIMITED)
    for _ in range(2):
        await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))
    assert scene.connection.handshake("PLAIN", 1).code is ErrorCode.ILLEGAL_SASL_STATE
    await scene.environment.sleep(REAUTHENTICATION_MS_MIN)
    await authenticated(scene.connection, "PLAIN", plain(ALICE, PASSWORD))


async def test_one_that_went_on_after_its_session_is_counted() -> None:
    scene = Scene(LIMITED)
    scene.connection.expired()
    assert scene.listener.counts.expired == {"OUTSIDE": 1}
