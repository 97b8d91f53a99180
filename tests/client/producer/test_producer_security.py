"""The producer with SASL and TLS on a scripted cluster: every mechanism, sessions that end, passwords that change."""

import asyncio
import logging
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest

from odradek.client.errors.client_errors import AuthenticationFailed
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.testing.sim.world.memory_pipe import torn_randomly
from tests.client.broker_faults import disconnect_before, torn
from tests.client.broker_sasl import Sasl, require_sasl
from tests.client.certificates import NAMES, Certificates, make_certificates, sign
from tests.client.scripted_broker import scripted_cluster
from tests.client.story import TOPIC, Story, tell

pytestmark = pytest.mark.virtual_time

ALL = (0, 1, 2)
PASSWORD = "s,e=c\u00e9ret"  # noqa: S105 - with what SCRAM has to escape
ALICE: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "ali,c=e", "sasl_password": PASSWORD}


def all_arrived(story: Story) -> None:
    assert story.errors == []
    for partition in ALL:
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]


def settings_for(mechanism: str) -> dict[str, Any]:
    if mechanism != "OAUTHBEARER":
        return ALICE | {"sasl_mechanism": mechanism}

    async def token() -> str:
        await asyncio.sleep(0.5)
        return "header.claims.signature"

    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_oauthbearer_token_provider": token,
    }


def users(mechanism: str, **settings: Any) -> Sasl:
    return Sasl({"ali,c=e": PASSWORD, "token": "header.claims.signature"}, mechanisms=[mechanism], **settings)


MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_records_arrive_over_authenticated_connections(mechanism: str) -> None:
    with scripted_cluster(brokers=3) as cluster:
        sasl = users(mechanism)
        require_sasl(cluster, sasl)
        all_arrived(await tell(cluster, **settings_for(mechanism)))
        assert {user for _, user in sasl.authenticated} == {"token" if mechanism == "OAUTHBEARER" else "ali,c=e"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_sessions_are_renewed_under_load_and_no_record_notices(mechanism: str) -> None:
    """KIP-368: a broker closes a connection whose session has ended; `violations` would have it."""
    with scripted_cluster(brokers=3) as cluster:
        sasl = users(mechanism, session_lifetime_ms=10_000)
        require_sasl(cluster, sasl)

        async def send_for_a_minute(story: Story) -> None:
            for _ in range(120):
                await asyncio.sleep(0.5)
                await story.send(1, ALL)

        story = await tell(cluster, meanwhile=send_for_a_minute, records=1, **settings_for(mechanism))
        all_arrived(story)
        produced_on = {connection for connection, _ in sasl.authenticated}
        assert len(produced_on) <= 4, "no connection was lost"
        assert len(sasl.authenticated) >= 15, "each of three was renewed about every nine seconds"


async def test_a_wrong_password_ends_the_start_at_once() -> None:
    with scripted_cluster(brokers=3) as cluster:
        require_sasl(cluster, users("SCRAM-SHA-256"))
        start_ms = cluster.now_ms()
        wrong: dict[str, Any] = ALICE | {"sasl_mechanism": "SCRAM-SHA-256", "sasl_password": "wrong"}
        with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
            await tell(cluster, **wrong)
        assert cluster.now_ms() - start_ms < 2_000
        assert cluster.count(SaslAuthenticateRequest) <= 2 * 3, "it is not tried again"


async def test_a_password_that_is_no_longer_right_ends_what_cannot_be_sent(caplog: pytest.LogCaptureFixture) -> None:
    with scripted_cluster(brokers=3) as cluster:
        sasl = users("PLAIN")
        require_sasl(cluster, sasl)

        async def change(story: Story) -> None:
            await story.all_ended()
            sasl.passwords.clear()
            for broker in cluster.brokers.values():
                broker.close_connections()
            await story.send(3, ALL)
            await asyncio.sleep(3)
            await story.send(1, ALL)

        with caplog.at_level(logging.ERROR):
            story = await tell(cluster, meanwhile=change, records=5, **settings_for("PLAIN"))
        assert len(story.acks) == 15
        assert len(story.errors) == 12
        assert all(isinstance(error, AuthenticationFailed) for error in story.errors)
        assert story.took_ms < 5_000
        assert story.records[-1].refusal is not None, "and who sends is told"


@pytest.mark.parametrize("fault", [disconnect_before(), torn(7)], ids=["closed", "torn"])
async def test_a_connection_lost_while_it_authenticates_is_tried_again(fault: Any) -> None:
    with scripted_cluster(brokers=3) as cluster:
        require_sasl(cluster, users("SCRAM-SHA-512"))
        cluster.on(SaslAuthenticateRequest, fault, nth=3, times=3)
        all_arrived(await tell(cluster, **settings_for("SCRAM-SHA-512")))


# --------------------------------------------------------------------------------------------------------------- TLS
@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """With the server's for the brokers of a scripted cluster."""
    directory = tmp_path_factory.mktemp("certificates")
    made = make_certificates(directory)
    names = ",".join([NAMES, *(f"DNS:broker-{node}.test" for node in ALL)])
    return made._replace(server=sign(directory, "brokers", made.authority, names))


@pytest.mark.parametrize("sends_late", [False, True])
@pytest.mark.parametrize("tears", [False, True])
async def test_records_arrive_over_tls(certificates: Certificates, sends_late: bool, tears: bool) -> None:
    with scripted_cluster(brokers=3, ssl=certificates.server_context(), sends_late=sends_late) as cluster:
        if tears:
            for broker in cluster.brokers.values():
                broker.path.to_client.tear = broker.path.to_server.tear = torn_randomly(cluster.network.rng.randint)
        cluster.on(ProduceRequest, disconnect_before(), nth=4)
        cluster.on(ProduceRequest, torn(20), nth=8)
        truststore = str(certificates.authority)
        all_arrived(await tell(cluster, security_protocol="SSL", ssl_truststore_location=truststore))


async def test_sasl_goes_over_tls_too(certificates: Certificates) -> None:
    with scripted_cluster(brokers=3, ssl=certificates.server_context()) as cluster:
        require_sasl(cluster, users("SCRAM-SHA-256", session_lifetime_ms=10_000))
        settings: dict[str, Any] = settings_for("SCRAM-SHA-256") | {"security_protocol": "SASL_SSL"}

        async def wait(story: Story) -> None:
            await asyncio.sleep(25)
            await story.send(2, ALL)

        all_arrived(
            await tell(cluster, meanwhile=wait, ssl_truststore_location=str(certificates.authority), **settings)
        )


async def test_a_broker_whose_certificate_is_not_trusted_ends_the_start_at_once(certificates: Certificates) -> None:
    with scripted_cluster(ssl=certificates.server_context()) as cluster:
        with pytest.raises(AuthenticationFailed, match="certificate"):
            await tell(cluster, security_protocol="SSL", ssl_truststore_location=str(certificates.stranger))
        assert cluster.exchanges == []


async def test_brokers_that_come_back_with_another_certificate_end_what_cannot_be_sent(
    certificates: Certificates,
) -> None:
    with scripted_cluster(brokers=3, ssl=certificates.server_context()) as cluster:

        async def change(story: Story) -> None:
            await story.all_ended()
            stranger = SSLContext(PROTOCOL_TLS_SERVER)
            stranger.load_cert_chain(certificates.stranger, certificates.stranger.with_suffix(".key"))
            cluster.ssl = stranger
            for broker in cluster.brokers.values():
                broker.stop()
                broker.start()
            await story.send(3, ALL)

        truststore = str(certificates.authority)
        story = await tell(cluster, meanwhile=change, security_protocol="SSL", ssl_truststore_location=truststore)
        assert len(story.errors) == 9
        assert all(isinstance(error, AuthenticationFailed) for error in story.errors)
        assert story.took_ms < 5_000
