"""SASL on virtual time: every mechanism with a scripted cluster, and brokers that refuse, lie, or repeat secrets."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.network.authentication import Authenticator
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.negotiation import Versions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.runtime.environment import Environment
from tests.client.broker_faults import throttled
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.memory_network import MemoryEnvironment
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

PASSWORD = "correct horse battery staple"  # noqa: S105  (nobody's)
TOKEN = "header.payload."  # noqa: S105
BROKER = "broker 0 (broker-0.test:9092)"


@pytest.fixture
async def cluster() -> AsyncGenerator[ScriptedCluster]:
    with scripted_cluster() as running:
        yield running


def settings_for(mechanism: str, **more: Any) -> ClientConfig:
    settings: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauthbearer_token_provider"] = token_of(TOKEN)
    else:
        settings |= {"sasl_username": "alice", "sasl_password": PASSWORD}
    return ClientConfig("broker-0.test:9092", **(settings | more))


def token_of(value: object) -> Callable[[], Awaitable[str]]:
    async def provide() -> Any:
        await asyncio.sleep(0)
        return value

    return provide


async def connect(cluster: ScriptedCluster, config: ClientConfig) -> Connection:
    return await open_connection(cluster.environment, config, 0, "broker-0.test", 9092)


async def close(connection: Connection) -> None:
    connection.close()
    await connection.closed()


async def failure_of(awaitable: Awaitable[object]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await awaitable
    error = caught.value
    for text in (str(error), repr(error), repr(error.__cause__), str(error.__cause__)):
        assert PASSWORD not in text
        assert TOKEN not in text
    assert BROKER in str(error)
    return error


# ------------------------------------------------------------------------------------------------ with a whole cluster
@pytest.mark.virtual_time
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_each_mechanism_authenticates(mechanism: str, cluster: ScriptedCluster) -> None:
    sasl = Sasl({"alice": TOKEN if mechanism == "OAUTHBEARER" else PASSWORD}, mechanisms=[mechanism])
    require_sasl(cluster, sasl)
    connection = await connect(cluster, settings_for(mechanism))
    assert sasl.authenticated == [(1, "alice")]
    assert len((await connection.ask(MetadataRequest(topics=[]))).brokers) == 1
    assert {each.version for each in cluster.exchanges_of(SaslHandshakeRequest)} == {1}
    assert {each.version for each in cluster.exchanges_of(SaslAuthenticateRequest)} == {2}
    await close(connection)


@pytest.mark.virtual_time
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
async def test_wrong_credentials_are_fatal_and_named(
    mechanism: str, cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    require_sasl(cluster, Sasl({"alice": "another", "bob": PASSWORD}))
    with caplog.at_level(logging.DEBUG):
        error = await failure_of(connect(cluster, settings_for(mechanism)))
    assert isinstance(error, AuthenticationFailed)
    assert error.fatal
    assert not error.retriable
    assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert mechanism in str(error)
    assert ("'alice'" in str(error)) == (mechanism != "OAUTHBEARER")
    assert "invalid" in error.broker_message.lower()
    assert error.hint
    assert PASSWORD not in caplog.text
    assert TOKEN not in caplog.text
    assert cluster.count(SaslHandshakeRequest) == 1, "it is not tried again"


@pytest.mark.virtual_time
async def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({}, mechanisms=["SCRAM-SHA-512", "OAUTHBEARER"]))
    error = await failure_of(connect(cluster, settings_for("PLAIN")))
    assert isinstance(error, AuthenticationFailed)
    assert error.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "SCRAM-SHA-512, OAUTHBEARER" in str(error)
    assert "sasl_mechanism" in error.hint


@pytest.mark.virtual_time
async def test_a_listener_without_sasl_is_recognized(cluster: ScriptedCluster) -> None:
    error = await failure_of(connect(cluster, settings_for("PLAIN")))
    assert isinstance(error, AuthenticationFailed)
    assert "has no SASL" in str(error)
    assert "security_protocol" in error.hint


@pytest.mark.virtual_time
async def test_a_listener_that_asks_for_sasl_is_suspected(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({}))
    connection = await connect(cluster, ClientConfig("broker-0.test:9092"))
    error = await failure_of(connection.ask(MetadataRequest(topics=[])))
    assert isinstance(error, ConnectionFailed)
    assert "a listener with SASL does that" in str(error)
    cluster.violations.clear()  # that was one


@pytest.mark.virtual_time
async def test_a_token_is_asked_for_anew_for_each_connection(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": "token-1", "bob": "token-2"}))
    tokens = iter(["token-1", "token-2"])

    async def provide() -> str:
        return next(tokens)

    config = settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    for connection in (await connect(cluster, config), await connect(cluster, config)):
        await close(connection)
    assert list(tokens) == []


@pytest.mark.virtual_time
async def test_a_token_provider_that_fails_may_be_asked_again(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))

    async def fail() -> str:
        raise LookupError("the identity provider is away")

    error = await failure_of(connect(cluster, settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=fail)))
    assert isinstance(error, ConnectionFailed)
    assert "LookupError: the identity provider is away" in str(error)
    assert "asks for tokens" in error.hint
    assert isinstance(error.__cause__, LookupError)


@pytest.mark.virtual_time
async def test_a_token_provider_that_never_answers_is_given_up(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))

    async def hang() -> str:
        return str(await asyncio.get_running_loop().create_future())

    config = settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=hang, request_timeout_ms=3_000)
    error = await failure_of(connect(cluster, config))
    assert isinstance(error, ConnectionFailed)
    assert "no token within 3000 ms" in str(error)


@pytest.mark.virtual_time
@pytest.mark.parametrize("error", [TimeoutError("no route"), asyncio.CancelledError("a group of its own")])
async def test_what_a_token_provider_raises_itself_is_not_taken_for_ours(
    error: BaseException, cluster: ScriptedCluster
) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))

    async def fail() -> str:
        raise error

    why = await failure_of(connect(cluster, settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=fail)))
    assert isinstance(why, ConnectionFailed)
    assert f"failed with {type(error).__name__}: {error}" in str(why)


@pytest.mark.virtual_time
async def test_who_connects_can_be_cancelled_while_a_token_is_waited_for(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))

    async def hang() -> str:
        return str(await asyncio.get_running_loop().create_future())

    config = settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=hang)
    opening = asyncio.get_running_loop().create_task(connect(cluster, config))
    await asyncio.sleep(1)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening


@pytest.mark.virtual_time
async def test_a_token_provider_that_is_no_coroutine_function_is_refused(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))
    provider: Any = lambda: TOKEN  # noqa: E731
    error = await failure_of(connect(cluster, settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=provider)))
    assert isinstance(error, AuthenticationFailed)
    assert "returned a str, where an awaitable was due" in str(error)
    assert "async def" in error.hint


@pytest.mark.virtual_time
async def test_helper_threads_that_are_all_busy_do_not_hold_an_exchange_for_ever(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": PASSWORD}))
    config = settings_for("SCRAM-SHA-256", request_timeout_ms=3_000)

    class Busy(MemoryEnvironment):
        async def run_blocking(self, function: Any, *args: Any, **kwargs: Any) -> Any:
            await asyncio.get_running_loop().create_future()

    opening = open_connection(Busy(cluster.network), config, 0, "broker-0.test", 9092)
    error = await failure_of(asyncio.wait_for(opening, 20))
    assert isinstance(error, ConnectionFailed)
    assert "within 3000 ms" in str(error)
    assert "helper threads" in str(error)


@pytest.mark.virtual_time
async def test_a_quota_is_not_waited_for_on_a_connection_that_is_lost(cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": PASSWORD}))
    cluster.on(ApiVersionsRequest, throttled(500_000))
    opening = asyncio.get_running_loop().create_task(connect(cluster, settings_for("PLAIN")))
    await asyncio.sleep(1)
    assert not opening.done()
    cluster.network.links[0].reset()
    await failure_of(asyncio.wait_for(opening, 1))


@pytest.mark.virtual_time
@pytest.mark.parametrize("token", [None, b"bytes", "", "two words", "a\x01auth=Bearer other", "tökén", "line\n"])
async def test_what_is_no_token_is_never_sent(token: object, cluster: ScriptedCluster) -> None:
    require_sasl(cluster, Sasl({"alice": TOKEN}))
    provider = token_of(token)
    error = await failure_of(connect(cluster, settings_for("OAUTHBEARER", sasl_oauthbearer_token_provider=provider)))
    assert isinstance(error, AuthenticationFailed)
    assert "sasl_oauthbearer_token_provider returned" in str(error)
    assert cluster.count(SaslAuthenticateRequest) == 0


@pytest.mark.virtual_time
async def test_secrets_stand_in_no_repr(cluster: ScriptedCluster) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"):
        config = settings_for(mechanism)
        authenticator = Authenticator(config, cluster.environment, BROKER, 1_000)
        shown = f"{config!r} {authenticator!r} {await authenticator.prepare()!r} {authenticator.method}"
        assert PASSWORD not in shown
        assert TOKEN not in shown


# ------------------------------------------------------------------------------------------------ broker by broker
class Broker:
    """Answers by a list, and keeps what it was asked."""

    def __init__(self, *answers: SaslAuthenticateResponse, handshake: SaslHandshakeResponse | None = None) -> None:
        self.answers = list(answers)
        self.handshake = handshake or SaslHandshakeResponse(mechanisms=[])
        self.asked: list[bytes] = []

    async def __call__(self, request: Any, version: int) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            return self.handshake
        assert isinstance(request, SaslAuthenticateRequest)
        self.asked.append(request.auth_bytes)
        return self.answers.pop(0)


def says(auth_bytes: bytes = b"", **more: Any) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(auth_bytes=auth_bytes, **more)


def versions(handshake: tuple[int, int] = (0, 1), authenticate: tuple[int, int] = (0, 2)) -> Versions:
    keys = [
        ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in ((17, handshake), (36, authenticate))
    ]
    return Versions(BROKER, ApiVersionsResponse(api_keys=keys))


async def authenticate(broker: Broker, config: ClientConfig, known: Versions | None = None) -> int:
    authenticator = Authenticator(config, Environment(), BROKER, 1_000)
    return await authenticator.authenticate(broker, known or versions(), await authenticator.prepare())


async def test_plain_sends_user_and_password_once_and_learns_the_lifetime() -> None:
    broker = Broker(says(session_lifetime_ms=3_600_000))
    assert await authenticate(broker, settings_for("PLAIN")) == 3_600_000
    assert broker.asked == [f"\0alice\0{PASSWORD}".encode()]


async def test_oauthbearer_answers_a_refusal_by_one_byte_and_then_fails() -> None:
    reason = json.dumps({"status": "invalid_token"}).encode()
    refusal = says(error_code=58, error_message='{"status":"invalid_token"}')
    broker = Broker(says(reason), refusal)
    error = await failure_of(authenticate(broker, settings_for("OAUTHBEARER")))
    assert broker.asked == [f"n,,\x01auth=Bearer {TOKEN}\x01\x01".encode(), b"\x01"]
    assert "invalid_token" in str(error)
    consents = Broker(says(reason), says())  # after it has refused
    error = await failure_of(authenticate(consents, settings_for("OAUTHBEARER")))
    assert "the broker refused the token" in str(error)


async def test_a_broker_that_repeats_a_secret_is_not_quoted() -> None:
    refusal = says(error_code=58, error_message=f"the password {PASSWORD} is wrong")
    error = await failure_of(authenticate(Broker(refusal), settings_for("PLAIN")))
    assert error.broker_message == "the password [hidden] is wrong"
    challenge = json.dumps({"status": "no", "token": TOKEN}).encode()
    await failure_of(authenticate(Broker(says(challenge), says()), settings_for("OAUTHBEARER")))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    "lie",
    [b"", b"r=another,s=c2FsdA==,i=4096", b"r={nonce}x,s=c2FsdA==,i=1", b"r={nonce}x,s=c2FsdA==,i=2000000000", b"\xff"],
)
async def test_a_broker_that_breaks_the_rules_of_scram_gets_no_proof(mechanism: str, lie: bytes) -> None:
    class Liar(Broker):
        async def __call__(self, request: Any, version: int) -> Any:
            if isinstance(request, SaslHandshakeRequest):
                return self.handshake
            self.asked.append(request.auth_bytes)
            nonce = self.asked[0].partition(b",r=")[2]
            return says(lie.replace(b"{nonce}", nonce))

    liar = Liar()
    error = await failure_of(asyncio.wait_for(authenticate(liar, settings_for(mechanism)), 5))
    assert isinstance(error, AuthenticationFailed)
    assert len(liar.asked) == 1


async def test_a_broker_that_cannot_prove_to_know_the_password_is_not_believed() -> None:
    class Impostor(Broker):
        async def __call__(self, request: Any, version: int) -> Any:
            if isinstance(request, SaslHandshakeRequest):
                return self.handshake
            self.asked.append(request.auth_bytes)
            nonce = self.asked[0].partition(b",r=")[2]
            return says(b"r=" + nonce + b"x,s=c2FsdA==,i=4096") if len(self.asked) == 1 else says(b"v=AAAA")

    error = await failure_of(authenticate(Impostor(), settings_for("SCRAM-SHA-256")))
    assert "does not know the password" in str(error)


@pytest.mark.parametrize(
    ("user", "password"), [("a\0b", "hunter2"), ("a", "hun\0ter2"), ("a", ""), ("", "x"), ("a", "\ud800")]
)
async def test_what_plain_cannot_say_is_never_sent(user: str, password: str) -> None:
    broker = Broker(says())
    config = settings_for("PLAIN", sasl_username=user, sasl_password=password)
    with pytest.raises(AuthenticationFailed) as caught:
        await authenticate(broker, config)
    assert broker.asked == []
    assert caught.value.__cause__ is None
    assert "hun" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "error_type", "text"),
    [
        (34, AuthenticationFailed, "has no SASL"),
        (33, AuthenticationFailed, "other mechanisms: none"),
        (-1, AuthenticationFailed, "did not expect"),
        (999, AuthenticationFailed, "unknown error code 999"),
        (15, ConnectionFailed, "COORDINATOR_NOT_AVAILABLE"),  # which may pass
    ],
)
async def test_every_answer_to_the_handshake_is_explained(code: int, error_type: type[ClientError], text: str) -> None:
    broker = Broker(handshake=SaslHandshakeResponse(error_code=code, mechanisms=[]))
    error = await failure_of(authenticate(broker, settings_for("PLAIN")))
    assert type(error) is error_type
    assert text in str(error)
    assert broker.asked == []


@pytest.mark.parametrize(
    ("code", "error_type"), [(58, AuthenticationFailed), (999, AuthenticationFailed), (7, ConnectionFailed)]
)
async def test_every_refusal_is_explained(code: int, error_type: type[ClientError]) -> None:
    refusal = says(error_code=code, error_message="for a reason")
    error = await failure_of(authenticate(Broker(refusal), settings_for("PLAIN")))
    assert type(error) is error_type
    assert "for a reason" in str(error)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (versions(handshake=(0, 0)), "older than Kafka 1.0"),
        (versions(handshake=(2, 3)), "versions 2 to 3 of SaslHandshake"),
        (versions(authenticate=(3, 4)), "versions 3 to 4 of SaslAuthenticate"),
        (Versions(BROKER, ApiVersionsResponse(api_keys=[])), "has no SASL"),
    ],
)
async def test_versions_that_do_not_fit_are_explained(known: Versions, text: str) -> None:
    error = await failure_of(authenticate(Broker(), settings_for("PLAIN"), known))
    assert isinstance(error, AuthenticationFailed)
    assert text in str(error)
