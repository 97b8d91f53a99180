"""Our producer against our broker, three of ours, and Apache Kafka: records of every kind, with every codec, in all
three ways, through SIGKILL and over TLS with sessions that end, each read back by librdkafka and compared."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from math import ceil
from typing import Any

import pytest
import uvloop

from odradek import Admin, BatchError, Producer, RecordTooLarge
from odradek.client.metrics.metrics import (
    CONNECTION_CREATION_TOTAL,
    RECORD_RETRY_TOTAL,
    RECORD_SEND_TOTAL,
    SUCCESSFUL_REAUTHENTICATION_TOTAL,
)
from processes.apache_kafka import ApacheKafka
from processes.odradek_broker import OdradekBroker
from tests.client.certificates import Certificates, make_certificates
from tests.client.recorded_metrics import RecordedMetrics
from tests.compat.clusters import ODRADEK, ON_KAFKA, THREE_BROKERS, Cluster, Ours, ours
from tests.compat.peer import Peer
from tests.compat.producer_load import Records, Sent, Writer, check, read_back
from tests.compat.questions import batch, produced

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

PARTITIONS = 6
OPTIONS = {"num.partitions": str(PARTITIONS)}
PASSWORD = "correct horse = battery"  # noqa: S105 - of a user that exists for these tests
SESSION_MS = 3_000
"""A twentieth of it is the least that a renewal has: long enough for a busy machine."""
SHARE = 500
PACE_S = 0.1
"""Between two shares, where it is time that matters."""
CODECS: Sequence[dict[str, Any]] = (
    {"compression_type": "none", "batch_size": 1_000},
    {"compression_type": "none"},
    {"compression_type": "gzip", "compression_gzip_level": 1, "batch_size": 100_000},
    {"compression_type": "snappy", "batch_size": 200_000, "buffer_memory": 2_000_000},
    {"compression_type": "lz4", "linger_ms": 0},
    {"compression_type": "zstd", "batch_size": 256 * 1024, "linger_ms": 20},
)
"""One producer each. Some batches are compressed in threads; some senders have to wait for memory."""


@pytest.fixture(scope="module")
def odradek(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """One of our own: it is killed."""
    with ours(ODRADEK, tmp_path_factory.mktemp("producer"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """The same, of three brokers, who are killed together."""
    with ours(THREE_BROKERS, tmp_path_factory.mktemp("producer-three"), **OPTIONS) as running:
        yield running


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(certificates: Certificates) -> Generator[ApacheKafka]:
    """With a plaintext listener, and one that wants a password again and again."""
    listener = "listener.name.sasl_ssl.scram-sha-512."
    properties = {
        **OPTIONS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        f"{listener}sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        f"{listener}connections.max.reauth.ms": str(SESSION_MS),
    }
    users = [("SCRAM-SHA-512", "alice", PASSWORD)]
    with ApacheKafka(properties=properties, listeners=["SASL_SSL"], scram=users) as running:
        yield running


@pytest.fixture(
    params=[
        "odradek",
        pytest.param("three", marks=pytest.mark.three_brokers),
        pytest.param("kafka", marks=ON_KAFKA.marks),
    ]
)
def server(request: pytest.FixtureRequest) -> Cluster:
    running: Cluster = request.getfixturevalue(request.param)
    return running


@asynccontextmanager
async def producing(server: Cluster, topic: str, **settings: Any) -> AsyncGenerator[Producer]:
    async with Producer(server.bootstrap, **settings) as producer:
        await producer.prepare(topic)
        yield producer


# ------------------------------------------------------------------------------------------------------------ the load
@pytest.mark.telling
def test_everything_arrives_once_in_order_and_where_it_was_acknowledged(server: Cluster, record_count: int) -> None:
    """A million records in the full run. Two tasks share each producer; Kafka is sent to from uvloop."""
    count = record_count * 10 if record_count >= 100_000 else record_count
    writers = 2 * len(CODECS)
    chunk = min(count // 100, 1_000)
    share = ceil(count / writers / chunk) * chunk
    records, sent = Records(random.randrange(2**31), PARTITIONS, chunk), Sent(share * writers)

    async def load() -> None:
        async with AsyncExitStack() as stack:
            producers = [await stack.enter_async_context(producing(server, "load", **codec)) for codec in CODECS]
            tasks = [
                Writer(producers[index // 2], "load", records, range(index * share, (index + 1) * share), sent).run()
                for index in range(writers)
            ]
            await asyncio.gather(*tasks)

    factory = uvloop.new_event_loop if isinstance(server, ApacheKafka) else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(load())
    assert sent.count == share * writers
    check(server.bootstrap, "load", records, sent, share)


# --------------------------------------------------------------------------------------------------------- the crashes
def test_a_broker_that_is_killed_again_and_again_loses_and_doubles_nothing(server: Cluster, record_count: int) -> None:
    """Every record is acknowledged, for the broker comes back in time; each is there once, and in order.

    Apache Kafka promises that to whoever has one batch under way in a partition (the test after this).
    """
    rounds, in_flight = (2, 1) if isinstance(server, ApacheKafka) else (8, 5)  # Kafka takes seconds to start
    writers, share = 6, max(1_000, record_count // 10)
    records, sent = Records(random.randrange(2**31), PARTITIONS, chunk=200), Sent(share * writers)
    metrics = RecordedMetrics()

    async def load() -> None:
        async with AsyncExitStack() as stack:
            running = [kill()]
            for index in range(writers):
                settings = {"linger_ms": index, "batch_size": 100 * index, "metrics": metrics}
                settings["max_in_flight_requests_per_connection"] = in_flight
                producer = await stack.enter_async_context(producing(server, "killed", **settings))
                numbers = range(index * share, (index + 1) * share)
                running.append(Writer(producer, "killed", records, numbers, sent).run())
            await asyncio.gather(*running)

    async def kill() -> None:
        for number in range(rounds):
            acknowledged = random.uniform(number + 0.5, number + 1.5) / (rounds + 1) * share * writers
            while metrics.total(RECORD_SEND_TOTAL) < acknowledged:  # noqa: ASYNC110 - a look now and then
                await asyncio.sleep(0.001)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)

    asyncio.run(load())
    assert sent.count == share * writers
    assert metrics.total(RECORD_RETRY_TOTAL) > 0, "records were under way when the broker was killed"
    check(server.bootstrap, "killed", records, sent, share)


@pytest.mark.parametrize("server", ["odradek", pytest.param("kafka", marks=ON_KAFKA.marks)], indirect=True)
def test_which_retries_are_known_after_a_broker_was_killed(server: OdradekBroker | ApacheKafka) -> None:
    """All of the last five batches. By Apache Kafka the last one: it goes on from the snapshot that its start has just
    written, where no more stands (LogLoader.recoverSegment). It refuses the others, and a producer that begins a new
    epoch then, as the Java client's does, has them there twice.
    """
    host, _, port = server.bootstrap.partition(":")
    now_ms = round(time.time() * 1000)
    batches = [batch(producer_id=7_003, epoch=0, sequence=number, timestamp_ms=now_ms) for number in range(3)]
    appended = [("NONE", 0), ("NONE", 1), ("NONE", 2)]
    with Peer(host, int(port)) as peer:
        peer.create_topic("retried")
        assert produced(peer, "retried", *batches) == appended
    server.kill()
    server.start()
    unknown = ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
    with Peer(host, int(port)) as peer:
        while not peer.are_leading("retried", 1):
            pass
        expected = [unknown, unknown, ("NONE", 2)] if isinstance(server, ApacheKafka) else appended
        assert produced(peer, "retried", *batches) == expected


# ------------------------------------------------------------------------------------------------------------ the rest
@pytest.mark.both_loops
@pytest.mark.parametrize("acks", [0, 1])
async def test_other_acks(server: Cluster, acks: Any, request: pytest.FixtureRequest) -> None:
    """A first record, with acks=all, waits for a leader that knows that it is one. Apache Kafka, just started, refuses
    batches of a new topic for a moment; those behind them may get through, and with acks=0 nobody sends again."""
    topic = topic_of(request)
    async with producing(server, topic) as producer:
        assert (await (await producer.send(topic, b"0", partition=0))).offset == 0
    async with producing(server, topic, acks=acks) as producer:
        deliveries = [await producer.send(topic, b"%d" % number, partition=0) for number in range(1, 2_000)]
        offsets = [ack.offset for ack in await producer.gather(deliveries)]
    assert offsets == (list(range(1, 2_000)) if acks else [-1] * 1_999)
    assert values(server, topic, 2_000) == [b"%d" % number for number in range(2_000)]


async def test_a_bulk_too_large_for_the_topic_arrives_in_parts(server: Cluster, request: pytest.FixtureRequest) -> None:
    topic, expected = topic_of(request), [b"%06d" % number * 20 for number in range(2_000)]
    async with Admin(server.bootstrap) as admin:
        await admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "2048"})
    async with producing(server, topic, batch_size=64 * 1024) as producer:
        acks = await producer.send_batch(topic, expected)
        assert [ack.offset for ack in acks] == list(range(2_000))
        with pytest.raises(BatchError) as raised:
            await producer.send_batch(topic, [b"small", bytes(4_000), b"small"])
    assert list(raised.value.errors) == [1]
    error = raised.value.errors[1]
    assert isinstance(error, RecordTooLarge)
    assert topic in str(error)
    assert "max.message.bytes" in str(error)
    assert values(server, topic, 2_002) == [*expected, b"small", b"small"]


@pytest.mark.java
@pytest.mark.slow
async def test_a_topic_that_stamps_records_tells_the_time(kafka: ApacheKafka) -> None:
    topic = "stamped"
    async with Admin(kafka.bootstrap) as admin:
        await admin.create_topic(topic, partitions=1, configs={"message.timestamp.type": "LogAppendTime"})
    async with producing(kafka, topic) as producer:
        acks = await producer.send_batch(topic, [b"one", b"two"], timestamps_ms=[1, 2])
    stamped = [message.timestamp()[1] for message in read_back(kafka.bootstrap, topic, {0: 2})]
    assert [ack.timestamp_ms for ack in acks] == stamped
    assert min(stamped) > 1_700_000_000_000


@pytest.mark.java
@pytest.mark.slow
def test_records_flow_over_tls_while_the_password_is_asked_for_again(
    kafka: ApacheKafka, certificates: Certificates
) -> None:
    """Sessions end after three seconds; the producer renews them on the connections that it has."""
    sent, metrics = Sent(0), RecordedMetrics()
    records = Records(random.randrange(2**31), PARTITIONS, chunk=100)

    async def load() -> float:
        async with Producer(
            f"{kafka.host}:{kafka.ports['SASL_SSL']}",
            security_protocol="SASL_SSL",
            ssl_truststore_location=str(certificates.authority),
            sasl_mechanism="SCRAM-SHA-512",
            sasl_username="alice",
            sasl_password=PASSWORD,
            metrics=metrics,
        ) as producer:
            await producer.prepare("secret")
            await Writer(producer, "secret", records, sent.grow(SHARE), sent).run()
            connections = metrics.total(CONNECTION_CREATION_TOTAL)
            while metrics.total(SUCCESSFUL_REAUTHENTICATION_TOTAL) < 4:
                await asyncio.sleep(PACE_S)
                await Writer(producer, "secret", records, sent.grow(SHARE), sent).run()
            return metrics.total(CONNECTION_CREATION_TOTAL) - connections

    assert asyncio.run(load()) == 0, "no connection was lost"
    check(kafka.bootstrap, "secret", records, sent, SHARE)


def topic_of(request: pytest.FixtureRequest) -> str:
    """A topic of the test's own."""
    return "".join(char if char.isalnum() else "-" for char in request.node.name).strip("-")


def values(server: Cluster, topic: str, end: int) -> list[bytes | None]:
    """What stands in the first partition, which ends there; the others are empty."""
    return [message.value() for message in read_back(server.bootstrap, topic, {0: end})]
