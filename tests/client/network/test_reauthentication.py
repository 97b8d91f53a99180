"""Sessions that end, on virtual time with a scripted cluster: when they are renewed, and what becomes of requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import pairwise
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.metrics.metrics import (
    FAILED_AUTHENTICATION_TOTAL,
    FAILED_REAUTHENTICATION_TOTAL,
    NO_METRICS,
    Metrics,
    client_metrics,
)
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.reauthentication import DELAY_MS_MIN
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.client.broker_faults import late
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.recorded_metrics import RecordedMetrics
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

LIFETIME_MS = 60_000


@pytest.fixture
async def cluster() -> AsyncGenerator[ScriptedCluster]:
    with scripted_cluster() as running:
        yield running


def sasl_of(cluster: ScriptedCluster, lifetime_ms: int = LIFETIME_MS) -> Sasl:
    sasl = Sasl({"alice": "secret"}, session_lifetime_ms=lifetime_ms)
    require_sasl(cluster, sasl)
    return sasl


async def connect(cluster: ScriptedCluster, metrics: Metrics = NO_METRICS, **settings: Any) -> Connection:
    credentials: dict[str, Any] = {
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": "alice",
        "sasl_password": "secret",
    }
    if "sasl_mechanism" in settings:
        credentials = {}
    config = ClientConfig("broker-0.test:9092", security_protocol="SASL_PLAINTEXT", **(credentials | settings))
    return await open_connection(cluster.environment, config, 0, "broker-0.test", 9092, metrics=metrics)


async def close(connection: Connection) -> None:
    connection.close()
    await connection.closed()


async def test_a_session_is_renewed_before_it_ends_again_and_again(cluster: ScriptedCluster) -> None:
    sasl = sasl_of(cluster)
    connection = await connect(cluster)
    began_ms = cluster.now_ms()
    while len(sasl.authenticated) < 6:
        await asyncio.sleep(1)
        await connection.ask(MetadataRequest(topics=[]))
    assert {user for _, user in sasl.authenticated} == {"alice"}
    assert {number for number, _ in sasl.authenticated} == {1}, "all on the same connection"
    renewals = [each.at_ms for each in cluster.exchanges_of(SaslHandshakeRequest)][1:]
    gaps = [later - earlier for earlier, later in zip([began_ms, *renewals], renewals, strict=False)]
    assert all(0.85 * LIFETIME_MS <= gap <= 0.95 * LIFETIME_MS + 10 for gap in gaps)
    assert max(gaps) - min(gaps) > 0.01 * LIFETIME_MS, "by chance"
    await close(connection)


async def test_requests_before_are_answered_and_those_meanwhile_follow(cluster: ScriptedCluster) -> None:
    sasl_of(cluster)
    connection = await connect(cluster)
    cluster.on(MetadataRequest, late(58_000))
    ended: list[tuple[str, Any]] = []

    def noted(name: str) -> Callable[[Any], None]:
        return lambda result: ended.append((name, result))

    connection.send(MetadataRequest(topics=[]), 12, noted("before"), timeout_ms=90_000)
    await asyncio.sleep(57.5)  # by now the new handshake stands in line behind the late answer
    for name in ("first", "second"):
        connection.send(MetadataRequest(topics=[]), 12, noted(name))
    assert connection.in_flight == 4
    await asyncio.sleep(2)
    assert [name for name, _ in ended] == ["before", "first", "second"]
    assert all(isinstance(result, MetadataResponse) for _, result in ended)
    order = [type(each.request) for each in cluster.exchanges][-6:]
    exchange = [SaslHandshakeRequest, SaslAuthenticateRequest, SaslAuthenticateRequest]
    assert order == [MetadataRequest, *exchange, MetadataRequest, MetadataRequest]
    await close(connection)


async def test_credentials_that_are_no_longer_right_end_the_connection(cluster: ScriptedCluster) -> None:
    sasl = sasl_of(cluster)
    hook = RecordedMetrics()
    connection = await connect(cluster, client_metrics(hook, "me"))
    reasons: list[ClientError] = []
    connection.on_close = lambda _, why: reasons.append(why)
    sasl.passwords["alice"] = "another"
    ended: list[Any] = []
    cluster.brokers[0].path.to_client.delay_ms = 100
    await asyncio.sleep(50)
    while cluster.count(SaslHandshakeRequest) < 2:  # noqa: ASYNC110 - of virtual time
        await asyncio.sleep(0.05)
    connection.send(MetadataRequest(topics=[]), 12, ended.append)
    await connection.closed()
    assert cluster.count(MetadataRequest) == 0, "what was kept back was never sent"
    assert [type(why) for why in reasons] == [AuthenticationFailed]
    assert (hook.total(FAILED_REAUTHENTICATION_TOTAL), hook.total(FAILED_AUTHENTICATION_TOTAL)) == (1, 0)
    assert [type(error) for error in ended] == [ConnectionFailed]
    assert "authentication by SASL SCRAM-SHA-256 as user 'alice'" in str(ended[0])
    assert ended[0].retriable


async def test_a_token_is_fetched_before_requests_are_kept_back(cluster: ScriptedCluster) -> None:
    sasl = sasl_of(cluster)
    go = asyncio.Event()
    count = 0

    async def provide() -> str:
        nonlocal count
        count += 1
        if count == 2:
            await go.wait()
        return "secret"

    connection = await connect(cluster, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    await asyncio.sleep(57.1)
    assert count == 2
    await connection.ask(MetadataRequest(topics=[]))  # goes on while the provider is slow
    go.set()
    await asyncio.sleep(1)
    assert len(sasl.authenticated) == 2
    await close(connection)


@pytest.mark.parametrize("error", [ZeroDivisionError(), asyncio.CancelledError(), TimeoutError()])
async def test_a_token_provider_that_fails_is_asked_again_while_the_session_lasts(
    error: BaseException, cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    sasl = sasl_of(cluster)
    count = 0

    async def provide() -> str:
        nonlocal count
        count += 1
        if count in (2, 3):
            raise error
        return "secret"

    connection = await connect(cluster, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    await asyncio.sleep(58)
    assert connection.is_open
    assert count == 4
    assert len(sasl.authenticated) == 2
    [warning, _] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert type(error).__name__ in warning
    assert "tried again" in warning
    await connection.ask(MetadataRequest(topics=[]))
    await close(connection)


async def test_a_token_provider_that_fails_until_the_session_ends_ends_the_connection(cluster: ScriptedCluster) -> None:
    sasl_of(cluster)
    calls_ms: list[float] = []

    async def provide() -> str:
        calls_ms.append(cluster.now_ms())
        return "secret" if len(calls_ms) == 1 else 1 / 0  # type: ignore[return-value]

    connection = await connect(cluster, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    began_ms = cluster.now_ms()
    reasons: list[ClientError] = []
    connection.on_close = lambda _, why: reasons.append(why)
    await connection.closed()
    assert LIFETIME_MS - 1_000 <= cluster.now_ms() - began_ms <= LIFETIME_MS
    assert [(type(why), why.retriable) for why in reasons] == [(ConnectionFailed, True)]
    assert "ZeroDivisionError" in str(reasons[0])
    gaps_ms = [later - earlier for earlier, later in pairwise(calls_ms[1:])]
    assert len(gaps_ms) >= 2
    assert all(80 <= gap_ms <= 1_000 for gap_ms in gaps_ms)


async def test_a_token_that_is_none_ends_the_connection_at_once(cluster: ScriptedCluster) -> None:
    """It will not become right by itself."""
    sasl_of(cluster)
    tokens = iter(["secret", "two words"])

    async def provide() -> str:
        return next(tokens)

    connection = await connect(cluster, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    reasons: list[ClientError] = []
    connection.on_close = lambda _, why: reasons.append(why)
    await connection.closed()
    assert [type(why) for why in reasons] == [AuthenticationFailed]


async def test_sessions_shorter_than_a_broker_can_renew_do_not_make_a_storm(cluster: ScriptedCluster) -> None:
    sasl = sasl_of(cluster, lifetime_ms=1)
    connection = await connect(cluster)
    await asyncio.sleep(10.5)
    assert 5 <= len(sasl.authenticated) <= 1 + 10_500 / DELAY_MS_MIN
    await close(connection)


@pytest.mark.parametrize("at_s", [10.0, 56.0, 57.05])
async def test_closing_leaves_nothing_behind_at_any_time(at_s: float, cluster: ScriptedCluster) -> None:
    sasl_of(cluster)
    cluster.on(SaslHandshakeRequest, late(3_000), nth=2)
    connection = await connect(cluster)
    await asyncio.sleep(at_s)
    await close(connection)


async def test_closed_waits_for_what_the_token_provider_still_does(cluster: ScriptedCluster) -> None:
    sasl_of(cluster)
    steps: list[str] = []

    async def provide() -> str:
        steps.append("asked")
        if len(steps) == 1:
            return "secret"
        try:
            return str(await asyncio.get_running_loop().create_future())
        finally:
            await asyncio.sleep(1)
            steps.append("cleaned up")

    connection = await connect(cluster, sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider=provide)
    await asyncio.sleep(58)
    await close(connection)
    assert steps == ["asked", "asked", "cleaned up"]


async def test_closing_does_not_wait_for_the_next_try_of_a_token_provider(cluster: ScriptedCluster) -> None:
    sasl_of(cluster, lifetime_ms=600_000)
    tokens = iter(["secret"])

    async def provide() -> str:
        return next(tokens, None) or 1 / 0  # type: ignore[return-value]

    connection = await connect(
        cluster,
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_provider=provide,
        retry_backoff_ms=20_000,
        retry_backoff_max_ms=20_000,
    )
    await asyncio.sleep(570.1)
    closing_ms = cluster.now_ms()
    await close(connection)
    assert cluster.now_ms() - closing_ms < 10


async def test_a_broker_that_never_answers_the_renewal_ends_the_connection(cluster: ScriptedCluster) -> None:
    sasl_of(cluster)
    connection = await connect(cluster, request_timeout_ms=2_000)
    reasons: list[ClientError] = []
    connection.on_close = lambda _, why: reasons.append(why)
    cluster.on(SaslHandshakeRequest, late(600_000))
    ended: list[Any] = []
    await asyncio.sleep(57.1)
    connection.send(MetadataRequest(topics=[]), 12, ended.append, timeout_ms=30_000)
    await asyncio.wait_for(connection.closed(), 5)
    assert [type(error) for error in ended] == [ConnectionFailed]
    assert "SaslHandshake v1" in str(reasons[0])


async def test_a_quota_is_waited_for_first(cluster: ScriptedCluster) -> None:
    sasl = sasl_of(cluster)
    connection = await connect(cluster)
    await asyncio.sleep(50)
    connection.pipeline._throttle(9_000)  # pyright: ignore[reportPrivateUsage]  (no answer of the cluster does)
    await asyncio.sleep(8.9)
    assert len(sasl.authenticated) == 1
    await asyncio.sleep(1)
    assert len(sasl.authenticated) == 2
    await close(connection)
