"""Other clients come in by each mechanism of SASL, write and read, renew sessions, and are told when they may not."""

import asyncio
import time
from collections.abc import Generator
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from processes.apache_kafka import run_tool
from tests.compat.peer import Peer
from tests.compat.sasl_brokers import ALICE, MECHANISMS, PASSWORD, Address, authenticate, our_broker, plain, unsecured

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

COUNT = 200
SESSION_MS = 3_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Generator[Address]:
    more = {"listener.name.plaintext.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS)}
    with our_broker(tmp_path_factory.mktemp("sasl-clients"), **more) as address:
        yield address


def bootstrap(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


class KafkaPythonToken(KafkaPythonTokens):
    """As kafka-python wants it."""

    def token(self) -> str:
        return unsecured()


class AiokafkaToken(AiokafkaTokens):
    """As aiokafka wants it."""

    async def token(self) -> str:
        return unsecured()


def settings_of_kafka_python(mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    settings: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        return settings | {"sasl_oauth_token_provider": KafkaPythonToken()}
    return settings | {"sasl_plain_username": ALICE, "sasl_plain_password": password}


@pytest.mark.parametrize("mechanism", [*MECHANISMS[:3], pytest.param("OAUTHBEARER", marks=pytest.mark.telling)])
def test_kafka_python(mechanism: str, broker: Address) -> None:
    settings, topic = settings_of_kafka_python(mechanism), f"kp-{mechanism}"
    with KafkaProducer(bootstrap_servers=bootstrap(broker), **settings) as producer:
        for future in [producer.send(topic, b"%d" % number) for number in range(COUNT)]:
            future.get(timeout=30)
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap(broker), auto_offset_reset="earliest", group_id=f"g-{topic}", **settings
    )
    values = set[bytes]()
    deadline = time.monotonic() + 60
    while len(values) < COUNT and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            values.update(record.value for record in records)
    consumer.close()
    assert values == {b"%d" % number for number in range(COUNT)}


@pytest.mark.usefixtures("quiet_kafka_python")
def test_kafka_python_with_a_wrong_password(broker: Address) -> None:
    with pytest.raises(KafkaError):
        KafkaProducer(
            bootstrap_servers=bootstrap(broker), max_block_ms=3_000, **settings_of_kafka_python("PLAIN", "wrong"),
        ).send("t", b"x").get(timeout=5)  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(mechanism: str, broker: Address) -> None:
    settings: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        settings["sasl_oauth_token_provider"] = AiokafkaToken()
    else:
        settings |= {"sasl_plain_username": ALICE, "sasl_plain_password": PASSWORD}
    topic = f"aio-{mechanism}"
    async with AIOKafkaProducer(bootstrap_servers=bootstrap(broker), **settings) as producer:
        await asyncio.gather(*[await producer.send(topic, b"%d" % number) for number in range(COUNT)])
    values = set[bytes]()
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap(broker), auto_offset_reset="earliest", group_id=f"g-{topic}", **settings
    ) as consumer:
        async with asyncio.timeout(60):
            while len(values) < COUNT:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    values.update(record.value for record in records if record.value is not None)
    assert len(values) == COUNT


def _token_for_confluent(_: object) -> tuple[str, float]:
    return unsecured(), time.time() + 3600


def settings_of_confluent(mechanism: str, address: Address, password: str = PASSWORD) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap(address),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        return settings | {"oauth_cb": _token_for_confluent}
    return settings | {"sasl.username": ALICE, "sasl.password": password}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka(mechanism: str, broker: Address) -> None:
    topic, settings = f"rd-{mechanism}", settings_of_confluent(mechanism, broker)
    producer = confluent_kafka.Producer(settings)
    producer.poll(0)
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values = set[bytes]()
    deadline = time.monotonic() + 60
    while len(values) < COUNT and time.monotonic() < deadline:
        for message in consumer.consume(COUNT, 0.5):
            assert message.error() is None, message.error()
            value = message.value()
            assert value is not None
            values.add(bytes(value))
    consumer.close()
    assert len(values) == COUNT


def test_confluent_kafka_renews_its_sessions(broker: Address) -> None:
    """SCRAM-SHA-256 has sessions of three seconds here: over eight of them nothing is lost."""
    failures = list[object]()
    settings = settings_of_confluent("SCRAM-SHA-256", broker) | {"error_cb": failures.append}
    producer = confluent_kafka.Producer(settings)
    deadline = time.monotonic() + 8
    count = 0
    while time.monotonic() < deadline:
        producer.produce("renewed", b"x", on_delivery=lambda error, _: failures.append(error) if error else None)
        count += 1
        producer.poll(0.02)
    assert producer.flush(30) == 0
    assert failures == []
    assert count > 100


def test_confluent_kafka_with_a_wrong_password_is_told_so(broker: Address) -> None:
    errors = list[confluent_kafka.KafkaError]()
    settings = settings_of_confluent("PLAIN", broker, "wrong") | {"error_cb": errors.append}
    producer = confluent_kafka.Producer(settings)
    deadline = time.monotonic() + 30
    while not errors and time.monotonic() < deadline:
        producer.poll(0.1)
    assert "Authentication failed: Invalid username or password" in str(errors[0])
    producer.purge()


def test_librdkafkas_admin_makes_a_user_who_comes_in(broker: Address) -> None:
    """Its salt is 64 bytes, which is its own choice."""
    theirs: Any = confluent_kafka.admin  # its types are not complete
    admin = theirs.AdminClient(settings_of_confluent("PLAIN", broker))
    info = theirs.ScramCredentialInfo(theirs.ScramMechanism.SCRAM_SHA_512, 8192)
    alteration = theirs.UserScramCredentialUpsertion("frank", info, b"of frank")
    for future in admin.alter_user_scram_credentials([alteration]).values():
        future.result(30)
    described = admin.describe_user_scram_credentials(["frank"])["frank"].result(30)
    assert [(each.mechanism.name, each.iterations) for each in described.scram_credential_infos] == [
        ("SCRAM_SHA_512", 8192)
    ]
    settings = settings_of_confluent("SCRAM-SHA-512", broker) | {"sasl.username": "frank", "sasl.password": "of frank"}
    assert confluent_kafka.admin.AdminClient(settings).list_topics(timeout=30).brokers


@pytest.mark.java
@pytest.mark.slow
def test_kafkas_own_tool_makes_and_deletes_a_user(broker: Address, tmp_path: Any) -> None:
    client = tmp_path / "client.properties"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="{ALICE}" password="{PASSWORD}";\n'
    )
    common = ("--bootstrap-server", bootstrap(broker), "--command-config", str(client), "--entity-type", "users")

    def configs(*words: str) -> str:
        return run_tool("kafka.admin.ConfigCommand", *common, "--entity-name", "grace", *words)

    described = DescribeUserScramCredentialsRequest(users=[UserName(name="grace")])
    with Peer(*broker) as peer:
        authenticate(peer, "PLAIN", plain(ALICE, PASSWORD))
        configs("--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=of grace]")
        (found,) = peer.ask(described, 0).results
        assert [(each.mechanism, each.iterations) for each in found.credential_infos] == [(1, 8192)]
        configs("--alter", "--delete-config", "SCRAM-SHA-256")
        (found,) = peer.ask(described, 0).results
        assert found.error_code == ErrorCode.RESOURCE_NOT_FOUND
