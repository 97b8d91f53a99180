"""The metrics page over HTTP: Prometheus' own parser reads it, and it counts what was done, no more and no less."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from odradek.broker.config.listeners import Listener
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.observability.metric_rows import (
    AUTHENTICATIONS,
    CERTIFICATE_DAYS_LEFT,
    CERTIFICATE_REFUSED,
    EXPIRED_SESSIONS,
    FAILED_AUTHENTICATIONS,
    FAILED_REAUTHENTICATIONS,
    METRICS,
    REAUTHENTICATIONS,
    TLS_HANDSHAKES_FAILED,
)
from odradek.broker.observability.prometheus_page import HTTP_REQUEST_BYTES_MAX
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.runtime.environment import Environment
from tests.broker.failing_disk import FailingDisk
from tests.broker.wire import batch, connected, create_topic, produced, settings

COMMITTED = OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata=None)
COMMIT = OffsetCommitRequest(
    group_id="reports", topics=[OffsetCommitRequestTopic(name="orders", partitions=[COMMITTED])]
)
JOIN = JoinGroupRequest(
    group_id="billing",
    session_timeout_ms=10_000,
    member_id="",
    protocol_type="consumer",
    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
)

KINDS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
QUOTAS = AlterClientQuotasRequest(
    entries=[
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=None)],
            ops=[OpData(key=name, value=1e9, remove=False) for name in KINDS],
        )
    ],
    validate_only=False,
)
FETCH = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[], forgotten_topics_data=[])

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    wanted = settings(options={"metrics.group.lag.max.series": "1"})
    with_metrics = type(wanted)(
        wanted.listeners, wanted.advertised, None, 0, wanted.config, Listener("METRICS", "127.0.0.1", 0)
    )
    broker = Broker(with_metrics, Environment(), MemoryDisk())
    await broker.start()
    yield broker
    await broker.stop()


async def asked(broker: Broker, request: bytes) -> tuple[bytes, bytes]:
    """Head and body of the answer to a raw HTTP request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port)
    try:
        writer.write(request)
        head, _, body = (await asyncio.wait_for(reader.read(-1), 10)).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return head, body


async def scraped(broker: Broker) -> Samples:
    head, body = await asked(broker, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"Content-Length: %d" % len(body) in head
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def request(name: str, api: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return f"kafka_network_requestmetrics_{name}", tuple(sorted({"request": api, **labels}.items()))


async def test_the_page_counts_what_was_done(broker: Broker) -> None:
    data = batch(b"a" * 50, b"b" * 50)
    async with connected(broker) as client:
        await create_topic(client, "orders", 2)
        for _ in range(3):
            assert (await produced(client, "orders", data, index=1)).error_code == 0
        flipped = data[:-1] + bytes([data[-1] ^ 1])
        assert (await produced(client, "orders", flipped)).error_code == ErrorCode.CORRUPT_MESSAGE
        samples = await scraped(broker)
        assert samples["kafka_server_socketservermetrics_connection_count", ()] == 1
    assert samples[request("requests_total", "Produce", version="9")] == 4
    assert samples[request("requests_total", "CreateTopics", version="5")] == 1
    assert samples[request("requestbytes_sum", "Produce")] > 4 * len(data)
    assert samples[request("response_bytes_total", "Produce")] > 0
    errors = {key[1]: value for key, value in samples.items() if key[0] == "kafka_network_requestmetrics_errors_total"}
    assert errors == {(("error", "CORRUPT_MESSAGE"), ("request", "Produce")): 1}
    of_partition_1 = (("partition", "1"), ("topic", "orders"))
    assert samples["kafka_log_log_logendoffset", of_partition_1] == 6
    assert samples["kafka_log_log_logstartoffset", of_partition_1] == 0
    assert samples["kafka_log_log_size", of_partition_1] == 3 * len(data)
    assert samples["kafka_log_log_size", (("partition", "0"), ("topic", "orders"))] == 0
    assert samples["kafka_server_replicamanager_partitioncount", ()] == 2
    assert samples["kafka_server_replicamanager_leadercount", ()] == 2


async def test_the_latency_histogram_grows_to_the_count_of_requests(broker: Broker) -> None:
    async with connected(broker) as client:
        await create_topic(client, "orders")
        samples = await scraped(broker)
    name = "kafka_network_requestmetrics_totaltimems"
    labelled = [
        (dict(labels)["le"], value)
        for (sample, labels), value in samples.items()
        if sample == f"{name}_bucket" and dict(labels)["request"] == "CreateTopics"
    ]
    values = [value for _, value in sorted(labelled, key=lambda bucket: float(bucket[0]))]
    assert values == sorted(values)
    assert values[-1] == 1 == samples[f"{name}_count", (("request", "CreateTopics"),)]
    assert samples[f"{name}_sum", (("request", "CreateTopics"),)] > 0


OF_SASL = (AUTHENTICATIONS, FAILED_AUTHENTICATIONS, REAUTHENTICATIONS, FAILED_REAUTHENTICATIONS, EXPIRED_SESSIONS)
"""They come with the first one who authenticates (test_authentication_samples.py)."""


async def test_every_row_is_told_once_and_nothing_else(broker: Broker) -> None:
    async with connected(broker) as client:
        await client.ask(QUOTAS, 1)
        await create_topic(client, "orders")
        assert (await produced(client, "nowhere", batch(b"x"))).error_code
        async with connected(broker) as member:
            await member.ask(FindCoordinatorRequest(key="billing"), 0)
            while (await client.ask(ListGroupsRequest(), 0)).error_code:
                pass  # the log of groups is being loaded
            member.send(JOIN, 0)
            while not (await client.ask(ListGroupsRequest(), 0)).groups:
                pass
            await client.ask(COMMIT, 2)
            await client.ask(FETCH, 11)
        _, body = await asked(broker, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert b'odradek_group_lag{group="reports",partition="0",topic="orders"} 0' in body
    families = [family.name for family in text_string_to_metric_families(body.decode())]
    of_tls = (CERTIFICATE_DAYS_LEFT, CERTIFICATE_REFUSED, TLS_HANDSHAKES_FAILED)  # of listeners that speak it alone
    assert sorted(families) == sorted(row.name for row in METRICS if row not in (*of_tls, *OF_SASL))


async def test_fetches_of_consumers_are_told_apart_and_with_all_others(broker: Broker) -> None:
    fetch = FetchRequest(max_wait_ms=20, min_bytes=1, max_bytes=1 << 20, topics=[], forgotten_topics_data=[])
    async with connected(broker) as client:
        await create_topic(client, "orders")
        fetch.topics = [
            FetchTopic(
                topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
            )
        ]
        for _ in range(2):
            await client.ask(fetch, 11)
        samples = await scraped(broker)
    for name in ("Fetch", "FetchConsumer"):
        assert samples[request("requests_total", name, version="11")] == 2
        assert samples[request("remotetimems_count", name)] == 2
        assert samples[request("remotetimems_sum", name)] >= 2 * 19
        assert samples[request("localtimems_sum", name)] < samples[request("remotetimems_sum", name)]
    assert request("requests_total", "FetchFollower", version="11") not in samples


async def test_data_directories_that_have_failed_are_counted_with_what_is_in_them() -> None:
    disk = FailingDisk()
    wanted = settings(["a", "b"])
    metrics = Listener("METRICS", "127.0.0.1", 0)
    broker = Broker(replace(wanted, metrics=metrics), Environment(), disk)
    await broker.start()
    try:
        async with connected(broker) as client:
            await create_topic(client, "orders", 4)
            for failed in (0, 1):
                samples = await scraped(broker)
                assert samples["kafka_log_logmanager_offlinelogdirectorycount", ()] == failed
                assert samples["kafka_server_replicamanager_offlinereplicacount", ()] == 2 * failed
                assert samples["kafka_server_replicamanager_partitioncount", ()] == 4 - 2 * failed
                if not failed:
                    revision = broker.context.metadata.image.revision
                    disk.fail("b")
                    assert (await produced(client, "orders", batch(b"x"), index=1)).error_code
                    await asyncio.wait_for(broker.context.metadata.revision.reach(revision + 1), 10)
    finally:
        await broker.stop()


async def test_what_closes_a_connection_is_counted(broker: Broker) -> None:
    async with connected(broker) as client:
        client.writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await client.is_closed()
    samples = await scraped(broker)
    assert samples["kafka_network_requestmetrics_malformed_total", ()] == 1
    assert samples["kafka_server_socketservermetrics_connection_count", ()] == 0


async def test_a_request_may_come_in_pieces_and_with_a_query(broker: Broker) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port)
    for piece in (b"GET /metr", b"ics?name=up HTTP/1.1\r\nHost: here\r", b"\n\r\n"):
        writer.write(piece)
        await writer.drain()
    answer = await asyncio.wait_for(reader.read(-1), 10)
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert b"kafka_server_replicamanager_partitioncount 0.0\n" in answer


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET / HTTP/1.1", b"200 OK"),
        (b"HEAD /metrics HTTP/1.1", b"200 OK"),
        (b"GET /favicon.ico HTTP/1.1", b"404 Not Found"),
        (b"POST /metrics HTTP/1.1", b"404 Not Found"),
        (b"\x00\x01\x02", b"404 Not Found"),
    ],
)
async def test_other_requests_have_their_answers_too(broker: Broker, line: bytes, status: bytes) -> None:
    head, body = await asked(broker, line + b"\r\n\r\n")
    assert head.split(b" ", 1)[1].startswith(status)
    assert (body != b"") == (line.startswith(b"GET") and status == b"200 OK")


async def test_a_request_without_end_is_cut_off(broker: Broker) -> None:
    try:
        answer = await asked(broker, b"x" * (HTTP_REQUEST_BYTES_MAX + 1))
    except ConnectionError:  # cut off with something still unread
        answer = b"", b""
    assert answer == (b"", b"")
    assert ("kafka_server_replicamanager_partitioncount", ()) in await scraped(broker)
