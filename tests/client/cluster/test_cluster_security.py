"""Cluster with TLS and SASL on virtual time: what ends the client, what passes, and what closing does not wait for.

The handshakes and exchanges themselves are shown in `tests/client/network`.
"""

import asyncio
from pathlib import Path

import pytest

from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.cluster.nodes import Opener
from odradek.client.errors.client_errors import AuthenticationFailed, ConnectionFailed
from odradek.client.network.connection import Connection
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.certificates import make_certificates
from tests.client.memory_network import Reach
from tests.client.running_cluster import INIT, begun, made, opened, running
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


def refusing(scripted: ScriptedCluster, times: list[float]) -> Opener:
    """Opens nothing: authentication fails, a moment after the attempt."""

    async def opener(node_id: int, host: str, port: int, setup_timeout_ms: float) -> Connection:
        times.append(scripted.now_ms())
        await asyncio.sleep(0.05)
        raise AuthenticationFailed(f"broker {node_id}", "SASL PLAIN", "wrong password")

    return opener


async def test_authentication_that_fails_ends_start_and_is_not_tried_again() -> None:
    with scripted_cluster(brokers=3) as scripted:
        times: list[float] = []
        client = made(scripted.bootstrap, scripted.environment, opener=refusing(scripted, times))
        began_ms = client.now_ms()
        with pytest.raises(AuthenticationFailed, match="wrong password"):
            await client.cluster.start()
        assert client.now_ms() - began_ms < 100
        assert isinstance(client.cluster.fatal_error, AuthenticationFailed)
        with pytest.raises(AuthenticationFailed):
            await client.cluster.wait_for_topic("t", client.in_ms(1_000))
        with pytest.raises(AuthenticationFailed):
            await client.cluster.ask(INIT)
        await asyncio.sleep(600)
        assert len(times) == 1
        await client.cluster.close()


async def test_certificates_that_are_written_anew_do_not_end_a_client_that_could_use_them(tmp_path: Path) -> None:
    file = make_certificates(tmp_path).authority
    with scripted_cluster() as scripted:
        scripted.brokers[0].path.reach = Reach.BLACK_HOLE
        client = made(
            scripted.bootstrap, scripted.environment, security_protocol="SSL", ssl_truststore_location=str(file)
        )
        starting = begun(client.cluster.start(60_000))
        await asyncio.sleep(5)
        file.write_text("-----BEGIN CERTIFICATE-----\n")
        await asyncio.sleep(50)
        assert client.cluster.fatal_error is None
        with pytest.raises(ConnectionFailed, match=r"ssl_truststore_location .* cannot be used"):
            await starting
        await client.cluster.close()


async def test_certificates_that_never_could_be_used_end_start(tmp_path: Path) -> None:
    file = tmp_path / "trust.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\n")
    with scripted_cluster() as scripted:
        client = made(
            scripted.bootstrap, scripted.environment, security_protocol="SSL", ssl_truststore_location=str(file)
        )
        with pytest.raises(AuthenticationFailed, match=r"ssl_truststore_location .* cannot be used"):
            await client.cluster.start()
        await client.cluster.close()


async def test_authentication_that_fails_later_ends_all_waits_at_once() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.controller_id = 9
        async with running(scripted) as client:
            waits = [
                begun(client.cluster.wait_for_topic("t", client.in_ms(60_000))),
                begun(client.cluster.ask(INIT, node=7)),
                begun(client.cluster.connection_to(CONTROLLER, client.in_ms(60_000))),
            ]
            await asyncio.sleep(1)
            connection = await client.cluster.connection_to(1, client.in_ms(1_000))
            changes = client.changes
            connection.close(AuthenticationFailed("broker 1", "SASL PLAIN", "the session has ended"))
            results = await asyncio.gather(*waits, return_exceptions=True)
            assert [type(each) for each in results] == [AuthenticationFailed] * 3
            assert client.changes > changes
            attempts = len(scripted.network.attempts)
            assert client.cluster.connection(1) is None
            await asyncio.sleep(600)
            assert len(scripted.network.attempts) == attempts


@pytest.mark.parametrize("call", [1, 3])
async def test_close_does_not_wait_for_a_token_provider_for_ever(call: int, caplog: pytest.LogCaptureFixture) -> None:
    """One that hangs in its `finally`: for the first connection, or for the second session of the one to the broker."""
    hangs, release = asyncio.Event(), asyncio.Event()
    calls = 0

    async def provide() -> str:
        nonlocal calls
        calls += 1
        if calls < call:
            return "secret"
        hangs.set()
        try:
            return str(await asyncio.get_running_loop().create_future())
        finally:
            await release.wait()

    with scripted_cluster() as scripted:
        require_sasl(scripted, Sasl({"alice": "secret"}, session_lifetime_ms=60_000))
        client = made(
            scripted.bootstrap,
            scripted.environment,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_provider=provide,
        )
        starting = begun(client.cluster.start(600_000))
        if call > 1:
            await starting
            await opened(client, 0)
        await hangs.wait()
        began_ms = client.now_ms()
        await client.cluster.close()
        await client.tasks.close()
        assert 1_000 < client.now_ms() - began_ms < 10_000
        [warning] = [each.getMessage() for each in caplog.records if each.name == "odradek.runtime.tasks"]
        assert "broker-0.test:9092" in warning
        assert (scripted.network.open_clients() == []) == (call > 1)
        release.set()
        await asyncio.gather(starting, return_exceptions=True)
        await virtual_loop().settle()
