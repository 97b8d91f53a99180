"""Our client's connections against Apache Kafka's listeners: TLS both ways, every SASL mechanism, sessions that end,
misunderstandings between ports, quotas, and requests without an answer."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.runtime.environment import Environment
from odradek.runtime.metric import Metric
from processes.apache_kafka import ApacheKafka, run_tool
from tests.client.certificates import PASSWORD as KEY_PASSWORD
from tests.client.certificates import Certificates, make_certificates
from tests.compat.clusters import Ours, broker_count

pytestmark = [pytest.mark.java, pytest.mark.compat, pytest.mark.slow]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "correct horse = battery"  # noqa: S105
SESSION_MS = 2_500
"""Of SCRAM-SHA-512 on the listener without TLS; the others have no end."""
LOGIN_MODULES = {
    "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_plain="{PASSWORD}";',
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(certificates: Certificates) -> Generator[ApacheKafka]:
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms": str(SESSION_MS),
        "connection.failed.authentication.delay.ms": "50",
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        for mechanism, module in LOGIN_MODULES.items():
            properties[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = module
    users = [(mechanism, "alice", PASSWORD) for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
    with ApacheKafka(properties=properties, listeners=["SSL", "SASL_PLAINTEXT", "SASL_SSL"], scram=users) as running:
        yield running


def token(*, lives_s: float = 3600.0) -> str:
    """An unsecured JWS, as Kafka's own validator for tests takes it."""

    def part(content: dict[str, object]) -> str:
        return urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now = time.time()
    return f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'iat': now - 10, 'exp': now + lives_s})}."


def giving(value: str) -> Callable[[], Awaitable[str]]:
    async def provide() -> str:
        return value

    return provide


def settings_for(mechanism: str, protocol: str, certificates: Certificates, **more: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": protocol, "sasl_mechanism": mechanism}
    if protocol == "SASL_SSL":
        settings["ssl_truststore_location"] = str(certificates.authority)
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauthbearer_token_provider"] = giving(token())
    else:
        settings |= {"sasl_username": "plain" if mechanism == "PLAIN" else "alice", "sasl_password": PASSWORD}
    return settings | more


@asynccontextmanager
async def connected(kafka: ApacheKafka, port: int, **settings: Any) -> AsyncGenerator[Connection]:
    metrics = settings.pop("metrics", None)
    config = ClientConfig(f"{kafka.host}:{port}", **settings)
    more = {} if metrics is None else {"metrics": metrics}
    connection = await open_connection(Environment(), config, 1, kafka.host, port, **more)
    try:
        yield connection
    finally:
        connection.close()
        await asyncio.wait_for(connection.closed(), 5)


async def works(connection: Connection) -> None:
    """Some requests, one behind the other."""
    answers = await asyncio.gather(*(connection.ask(MetadataRequest(topics=[])) for _ in range(10)))
    assert [answer.brokers[0].node_id for answer in answers] == [1] * 10


async def failure_of(kafka: ApacheKafka, port: int, **settings: Any) -> ClientError:
    """Why no connection came about, or why its first request failed."""
    with pytest.raises(ClientError) as caught:
        async with connected(kafka, port, **settings) as connection:
            await works(connection)
    assert f"{kafka.host}:{port}" in str(caught.value)
    assert PASSWORD not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"
    return caught.value


# ------------------------------------------------------------------------------------------------ TLS
@pytest.mark.both_loops
async def test_tls_with_certificates_on_both_sides(kafka: ApacheKafka, certificates: Certificates) -> None:
    trust = {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority)}
    for key in (
        {"ssl_keystore_location": str(certificates.client)},
        {"ssl_keystore_location": str(certificates.encrypted), "ssl_key_password": KEY_PASSWORD},
    ):
        async with connected(kafka, kafka.ports["SSL"], **trust, **key) as connection:
            await works(connection)


@pytest.mark.both_loops
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
async def test_a_broker_that_asks_for_a_certificate_in_vain(
    version: str, kafka: ApacheKafka, certificates: Certificates
) -> None:
    error = await failure_of(
        kafka,
        kafka.ports["SSL"],
        security_protocol="SSL",
        ssl_truststore_location=str(certificates.authority),
        ssl_enabled_protocols=version,
    )
    # With TLS 1.3, its alert and the reset that may overtake it come after the handshake.
    assert isinstance(error, AuthenticationFailed | ConnectionFailed)
    assert version == "TLSv1.3" or isinstance(error, AuthenticationFailed)
    assert "ssl_keystore_location" in str(error)


async def test_a_broker_with_a_certificate_of_somebody_else(kafka: ApacheKafka, certificates: Certificates) -> None:
    settings = settings_for("PLAIN", "SASL_SSL", certificates, ssl_truststore_location=str(certificates.stranger))
    error = await failure_of(kafka, kafka.ports["SASL_SSL"], **settings)
    assert isinstance(error, AuthenticationFailed)
    assert "ssl_truststore_location" in error.hint


# ------------------------------------------------------------------------------------------------ SASL
@pytest.mark.both_loops
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_each_mechanism_authenticates(
    mechanism: str, protocol: str, kafka: ApacheKafka, certificates: Certificates
) -> None:
    async with connected(kafka, kafka.ports[protocol], **settings_for(mechanism, protocol, certificates)) as connection:
        await works(connection)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("wrong", [{"sasl_password": "wrong"}, {"sasl_username": "nobody"}], ids=["password", "user"])
async def test_wrong_credentials_are_fatal_and_named(
    mechanism: str, wrong: dict[str, str], kafka: ApacheKafka, certificates: Certificates
) -> None:
    settings = settings_for(mechanism, "SASL_PLAINTEXT", certificates, **wrong)
    error = await failure_of(kafka, kafka.ports["SASL_PLAINTEXT"], **settings)
    assert isinstance(error, AuthenticationFailed)
    assert f"SASL {mechanism} as user '{settings['sasl_username']}'" in str(error)
    assert "invalid" in error.broker_message.lower()


@pytest.mark.parametrize("bad", [token(lives_s=-5), "no.jws.", "nonsense"])
async def test_a_token_that_is_not_good_is_fatal(bad: str, kafka: ApacheKafka, certificates: Certificates) -> None:
    settings = settings_for("OAUTHBEARER", "SASL_SSL", certificates, sasl_oauthbearer_token_provider=giving(bad))
    error = await failure_of(kafka, kafka.ports["SASL_SSL"], **settings)
    assert isinstance(error, AuthenticationFailed)
    assert error.broker_message
    assert bad not in str(error)


class Counts:
    """A hook that adds up counters."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        self.counts[metric.name] = self.counts.get(metric.name, 0) + amount

    def observe(self, metric: Metric, value: float, *labels: str) -> None: ...

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        return lambda: None


async def test_sessions_are_renewed_on_the_same_connection_while_requests_go_on(
    kafka: ApacheKafka, certificates: Certificates
) -> None:
    counts, settings = Counts(), settings_for("SCRAM-SHA-512", "SASL_PLAINTEXT", certificates)
    async with connected(kafka, kafka.ports["SASL_PLAINTEXT"], metrics=counts, **settings) as connection:
        asked = 0
        until_s = time.monotonic() + 3 * SESSION_MS / 1000
        while time.monotonic() < until_s:
            await works(connection)
            asked += 10
            await asyncio.sleep(0.01)  # between two questions, for three sessions
        assert counts.counts["successful-reauthentication-total"] >= 3
        assert counts.counts["connection-creation-total"] == 1
        assert asked > 500


async def test_without_renewal_kafka_ends_the_session(kafka: ApacheKafka, certificates: Certificates) -> None:
    """Which shows that the renewals of the test before were needed."""
    settings = settings_for("SCRAM-SHA-512", "SASL_PLAINTEXT", certificates)
    async with connected(kafka, kafka.ports["SASL_PLAINTEXT"], **settings) as connection:
        inside: Any = connection
        inside._reauthentication.cancel()
        await works(connection)
        await asyncio.sleep(SESSION_MS / 1000 + 0.5)  # the session's time, which Kafka alone keeps
        with pytest.raises(ConnectionFailed):
            await works(connection)


# ------------------------------------------------------------------------------------------------ misunderstandings
async def test_a_plaintext_client_at_a_tls_listener_is_told(kafka: ApacheKafka) -> None:
    error = await failure_of(kafka, kafka.ports["SSL"])
    assert "TLS" in str(error)
    assert "security_protocol" in str(error)


async def test_a_tls_client_at_a_plaintext_listener_is_told(kafka: ApacheKafka, certificates: Certificates) -> None:
    error = await failure_of(
        kafka, kafka.port, security_protocol="SSL", ssl_truststore_location=str(certificates.authority)
    )
    assert "a listener without TLS does that" in str(error)


async def test_a_client_without_sasl_at_a_listener_with_it_is_told(kafka: ApacheKafka) -> None:
    assert "a listener with SASL does that" in str(await failure_of(kafka, kafka.ports["SASL_PLAINTEXT"]))


async def test_a_client_with_sasl_at_a_listener_without_it_is_told(
    kafka: ApacheKafka, certificates: Certificates
) -> None:
    error = await failure_of(kafka, kafka.port, **settings_for("PLAIN", "SASL_PLAINTEXT", certificates))
    assert isinstance(error, AuthenticationFailed)
    assert "its listener has no SASL" in str(error)


# ------------------------------------------------------------------------------------------------ the rest
async def create_topic(connection: Connection, name: str) -> None:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answer = await connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert answer.topics[0].error_code == 0
    async with asyncio.timeout(10):
        while await end_offset(connection, name) != 0:  # noqa: ASYNC110 - it has no leader yet
            await asyncio.sleep(0.01)


async def end_offset(connection: Connection, topic: str) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    return (await connection.ask(request)).topics[0].partitions[0].offset


BY_NAMES = 12
"""The last version of Produce that names topics."""


def produce(topic: str, acks: int, size_bytes: int = 100) -> ProduceRequest:
    batch = build_batch([Record(0, int(time.time() * 1000), None, bytes(size_bytes))])
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    return ProduceRequest(transactional_id=None, acks=acks, timeout_ms=10_000, topic_data=[data])


@pytest.mark.both_loops
async def test_requests_without_an_answer_arrive(kafka: ApacheKafka, request: pytest.FixtureRequest) -> None:
    topic = f"unanswered-{'uvloop' in request.node.name}"
    async with connected(kafka, kafka.port) as connection:
        await create_topic(connection, topic)
        written: list[object] = []
        for _ in range(100):
            version = connection.version_of(ProduceRequest, BY_NAMES)
            connection.send(produce(topic, acks=0), version, written.append, expects_response=False)
        async with asyncio.timeout(10):
            while await end_offset(connection, topic) < 100:  # noqa: ASYNC110 - nobody tells when they have arrived
                await asyncio.sleep(0.01)
        assert written == [None] * 100


async def test_a_quota_silences_the_connection_for_as_long_as_kafka_says(kafka: ApacheKafka) -> None:
    run_tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", kafka.bootstrap, "--alter", "--add-config", "producer_byte_rate=10000"),
        *("--entity-type", "clients", "--entity-name", "throttled"),
    )
    async with connected(kafka, kafka.port, client_id="throttled") as connection:
        await create_topic(connection, "throttled")
        answer = await connection.ask(produce("throttled", acks=1, size_bytes=125_000), version=BY_NAMES)
        assert answer.throttle_time_ms > 100
        before_ms = connection.last_used_ms
        await connection.ask(MetadataRequest(topics=[]))
        assert connection.last_used_ms - before_ms >= answer.throttle_time_ms - 5


async def test_versions_are_negotiated_with_our_own_broker_too(broker: Ours) -> None:
    config = ClientConfig(f"{broker.host}:{broker.port}")
    connection = await open_connection(Environment(), config, -1, broker.host, broker.port)
    try:
        assert connection.version_of(ApiVersionsRequest) == ApiVersionsRequest.max_version
        metadata = await connection.ask(MetadataRequest(topics=[]))
        assert len(metadata.brokers) == broker_count(broker)
    finally:
        connection.close()
        await connection.closed()
