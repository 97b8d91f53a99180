"""Each fault does what it says, seen from a raw client, to the requests that its rule means and to no others."""

import asyncio
from collections.abc import Callable

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.broker.wire import RawClient
from tests.client.broker_faults import (
    Ending,
    Fault,
    cut_body,
    disconnect_after,
    disconnect_before,
    edited,
    error,
    garbage,
    late,
    length,
    never,
    skipped,
    slow,
    throttled,
    torn,
    trailing,
    twice,
    wrong_correlation_id,
)
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.test_scripted_broker import INIT, connected, metadata, produce, produced

pytestmark = pytest.mark.virtual_time

REQUEST = produce(("orders", 0, b"v"))


async def rest(client: RawClient) -> bytes:
    """What the broker still sends until it closes the connection, or stops sending."""
    received = b""
    try:
        async with asyncio.timeout(60):
            while data := await client.reader.read(1 << 16):
                received += data
    except TimeoutError:
        return received + b" and silence"
    except ConnectionError:
        return received + b" and a reset"
    return received + b" and the end"


def one_topic(cluster: ScriptedCluster, partitions: int = 2) -> ScriptedCluster:
    cluster.create_topic("orders", partitions)
    return cluster


async def plain_answer(client: RawClient) -> bytes:
    """The answer to REQUEST without any fault, but for correlation id and offset."""
    client.send(REQUEST, 9)
    frame = await client.receive_frame()
    return len(frame).to_bytes(4, "big") + frame


# ------------------------------------------------------------------------------------------------------------ errors
async def test_an_error_for_a_partition_leaves_others_alone_and_its_batch_out_of_the_log() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster).create_topic("others", 2)
        cluster.on(ProduceRequest, error(ErrorCode.NOT_ENOUGH_REPLICAS, "orders", 1, message="too few"))
        async with connected(cluster) as client:
            both = produce(("orders", 0, b"a"), ("orders", 1, b"b"), ("others", 1, b"c"))
            good, bad, other = await produced(client, both)
            assert other.error_code == 0
            assert (good.error_code, good.base_offset) == (0, 0)
            assert (bad.error_code, bad.base_offset, bad.error_message) == (19, -1, "too few")
            assert [each.error_code for each in await produced(client, both)] == [0, 0, 0]
        assert cluster.values("orders", 0) == [b"a", b"a"]
        assert cluster.values("orders", 1) == [b"b"]


@pytest.mark.parametrize(
    ("code", "appended", "in_log"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, None, False),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, None, True),
        (ErrorCode.REQUEST_TIMED_OUT, None, True),
        (ErrorCode.REQUEST_TIMED_OUT, False, False),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
    ],
)
async def test_an_error_comes_before_or_after_the_append(code: ErrorCode, appended: bool | None, in_log: bool) -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.log("orders").delete_before(0)
        cluster.on(ProduceRequest, error(code, appended=appended))
        async with connected(cluster) as client:
            [answer] = await produced(client, REQUEST)
            assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (code, -1, 0)
        assert cluster.values("orders") == ([b"v"] if in_log else [])


async def test_errors_of_metadata_are_those_of_topics_or_partitions() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.create_topic("others")
        async with connected(cluster) as client:
            cluster.on(MetadataRequest, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "orders"))
            topics = (await metadata(client, "orders", "others")).topics
            assert [(each.error_code, len(each.partitions)) for each in topics] == [(29, 0), (0, 1)]
            cluster.on(MetadataRequest, error(ErrorCode.LEADER_NOT_AVAILABLE, "orders", 1))
            [topic] = (await metadata(client, "orders")).topics
            parts = [(each.error_code, each.leader_id) for each in topic.partitions]
            assert (topic.error_code, parts) == (0, [(0, 0), (5, -1)])


async def test_an_error_of_another_api_is_the_answer_s_own() -> None:
    with scripted_cluster() as cluster:
        cluster.on(InitProducerIdRequest, error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        async with connected(cluster) as client:
            answer = await client.ask(INIT, 5)
            assert (answer.error_code, answer.producer_id) == (14, -1)
            assert (await client.ask(INIT, 5)).error_code == 0


# ------------------------------------------------------------------------------------------------------------- times
@pytest.mark.parametrize(("fault", "at_once"), [(late(5_000), True), (slow(5_000), False)])
async def test_an_answer_is_late_with_its_effect_or_without(fault: Fault, at_once: bool) -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, fault)
        async with connected(cluster) as client:
            start_ms = cluster.now_ms()
            client.send(REQUEST, 9)
            await asyncio.sleep(1)
            assert len(cluster.values("orders")) == at_once
            await client.receive(REQUEST, 9)
            assert 5_000 <= cluster.now_ms() - start_ms < 5_002


async def test_a_slow_request_takes_effect_after_its_client_left_and_one_behind_does_not() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, slow(1_000))
        async with connected(cluster) as client:
            client.send(produce(("orders", 0, b"begun")), 9)
            client.send(produce(("orders", 0, b"behind")), 9)
            await asyncio.sleep(0.5)
        assert cluster.values("orders") == []
        await asyncio.sleep(1)
        assert cluster.values("orders") == [b"begun"]


@pytest.mark.parametrize("applies", [True, False])
async def test_what_is_never_answered_blocks_its_connection(applies: bool) -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, never(applies=applies))
        async with connected(cluster) as client, connected(cluster) as other:
            client.send(REQUEST, 9)
            client.send(INIT, 5)
            assert await rest(client) == b" and silence"
            await other.ask(INIT, 5)
        assert len(cluster.values("orders")) == applies


async def test_a_throttled_connection_hears_of_it_and_is_not_read_for_as_long() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, throttled(2_000))
        async with connected(cluster) as client:
            start_ms = cluster.now_ms()
            assert (await client.ask(REQUEST, 9)).throttle_time_ms == 2_000
            assert cluster.now_ms() - start_ms < 2
            assert (await client.ask(REQUEST, 9)).throttle_time_ms == 0
            assert 2_000 <= cluster.now_ms() - start_ms < 2_003


# -------------------------------------------------------------------------------------------------- hostile and broken
def id_changed(data: bytes) -> bytes:
    return data[:4] + (int.from_bytes(data[4:8], "big") + 1).to_bytes(4, "big") + data[8:]


def size_of(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big")


HOSTILE: list[tuple[Fault, Callable[[bytes], bytes]]] = [
    (twice(), lambda plain: plain + plain + b" and silence"),
    (skipped(), lambda plain: b" and silence"),
    (wrong_correlation_id(), lambda plain: id_changed(plain) + b" and silence"),
    (torn(0), lambda plain: b" and the end"),
    (torn(5), lambda plain: plain[:5] + b" and the end"),
    (torn(3, Ending.KEEP), lambda plain: plain[:3] + b" and silence"),
    (cut_body(3), lambda plain: size_of(plain[4:-3]) + plain[4:-3] + b" and silence"),
    (trailing(b"xy"), lambda plain: size_of(plain[4:] + b"xy") + plain[4:] + b"xy and silence"),
    (length(-7), lambda plain: b"\xff\xff\xff\xf9" + plain[4:] + b" and silence"),
    (length(0x7FFFFFFF), lambda plain: b"\x7f\xff\xff\xff" + plain[4:] + b" and silence"),
    (garbage(b"HTTP/1.1 400"), lambda plain: b"HTTP/1.1 400 and silence"),
    (disconnect_after(), lambda plain: b" and the end"),
    (disconnect_before(), lambda plain: b" and the end"),
]


@pytest.mark.parametrize(("fault", "expected"), HOSTILE)
async def test_what_a_broken_broker_sends(fault: Fault, expected: Callable[[bytes], bytes]) -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, fault)
        async with connected(cluster) as client, connected(cluster) as other:
            client.send(REQUEST, 9)
            received = await rest(client)
            if fault.applies:
                cluster.log("orders").truncate(0)
            plain = await plain_answer(other)
            assert received == expected(plain)
            [broken, whole] = cluster.exchanges_of(ProduceRequest)
            assert whole.answer_size == len(plain)
            assert broken.answer_size == (len(plain) if fault.applies else 0)


async def test_what_follows_a_skipped_answer_is_answered() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, skipped())
        async with connected(cluster) as client:
            client.send(REQUEST, 9)
            second = client.send(REQUEST, 9)
            assert (await client.receive(REQUEST, 9))[0] == second


@pytest.mark.parametrize(("fault", "count"), [(disconnect_before(), 0), (disconnect_after(), 1)])
async def test_a_connection_is_lost_before_or_after_the_append(fault: Fault, count: int) -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, fault)
        async with connected(cluster) as client:
            client.send(REQUEST, 9)
            client.send(REQUEST, 9)
            assert await rest(client) == b" and the end"
        assert len(cluster.values("orders")) == count, "nothing behind it is done"


async def test_a_response_can_be_edited() -> None:
    def forget_everything(response: MetadataResponse) -> None:
        response.brokers = []
        response.topics = []

    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(MetadataRequest, edited(forget_everything))
        async with connected(cluster) as client:
            answer = await metadata(client)
            assert (answer.brokers, answer.topics) == ([], [])
            assert len((await metadata(client)).brokers) == 1


async def test_faults_of_one_request_add_up() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(ProduceRequest, slow(100), error(ErrorCode.REQUEST_TIMED_OUT))
        cluster.on(ProduceRequest, late(1_000))
        async with connected(cluster) as client:
            start_ms = cluster.now_ms()
            [answer] = await produced(client, REQUEST)
            assert answer.error_code == 7
            assert 1_100 <= cluster.now_ms() - start_ms < 1_102
        assert cluster.values("orders") == [b"v"]


# -------------------------------------------------------------------------------------------------------------- rules
async def codes(client: RawClient, *requests: ProduceRequest) -> list[int]:
    return [(await produced(client, request))[0].error_code for request in requests]


async def test_a_rule_means_the_nth_request_and_so_many_after_it() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        rule = cluster.on(ProduceRequest, error(ErrorCode.UNKNOWN_SERVER_ERROR), nth=3, times=2)
        async with connected(cluster) as client:
            assert await codes(client, *[REQUEST] * 6) == [0, 0, -1, -1, 0, 0]
        assert [each.correlation_id for each in rule.hits] == [3, 4]


async def test_a_rule_without_end_lasts_until_it_is_cancelled() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        rule = cluster.on(ProduceRequest, error(ErrorCode.UNKNOWN_SERVER_ERROR), times=None)
        async with connected(cluster) as client:
            assert await codes(client, *[REQUEST] * 5) == [-1] * 5
            rule.cancel()
            assert await codes(client, REQUEST) == [0]


async def test_a_rule_means_a_partition_a_topic_or_a_node() -> None:
    with scripted_cluster(brokers=2) as cluster:
        one_topic(cluster)
        cluster.create_topic("others", leaders=[0])
        cluster.on(ProduceRequest, error(ErrorCode.UNKNOWN_SERVER_ERROR), topic="orders", partition=1, times=None)
        cluster.on(ProduceRequest, error(ErrorCode.KAFKA_STORAGE_ERROR), topic="others", times=None)
        cluster.on(MetadataRequest, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED), node=1, times=None)
        async with connected(cluster, 0) as client, connected(cluster, 1) as other:
            zero, one, others = (produce(each) for each in (("orders", 0, b""), ("orders", 1, b""), ("others", 0, b"")))
            assert await codes(client, zero, others) == [0, 56]
            assert await codes(other, one) == [-1]
            assert [(await metadata(each, "orders")).topics[0].error_code for each in (client, other)] == [0, 29]


async def test_rules_for_other_requests_do_not_apply() -> None:
    with scripted_cluster() as cluster:
        one_topic(cluster)
        cluster.on(MetadataRequest, never(), times=None)
        async with connected(cluster) as client:
            assert await codes(client, REQUEST) == [0]
            await client.ask(INIT, 4)
