"""The delivery guarantees of docs/producer.md, cell by cell, on a scripted cluster: where the page says "yes" the test
makes it happen, where it says "no" the test does the same to the producer and shows that it does not happen."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, DeliveryTimeout
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Ack, Delivery
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import disconnect_after, disconnect_before, error, late, never, slow
from tests.client.guarantees import (
    ACKS_0,
    ACKS_0_RETRIES,
    ACKS_1,
    ACKS_1_RETRIES,
    ACKS_ALL,
    ACKS_ALL_RETRIES,
    CELLS,
    COLUMNS,
    IDEMPOTENT,
    PAGE,
    Document,
    Row,
    shows,
)
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

TOPIC = "orders"
FOLLOWERS_MS = 50.0
"""So long after the leader the followers have a record."""


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, leaders=[0])
        yield cluster


@asynccontextmanager
async def producing(cluster: ScriptedCluster, row: Row, **more: Any) -> AsyncGenerator[Producer]:
    settings: dict[str, Any] = {"linger_ms": 0} | row.settings | more
    async with Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings) as producer:
        await producer.prepare(TOPIC)
        yield producer


async def ack_of(delivery: Delivery) -> Ack | None:
    """None: the record has failed, and whoever sent it knows."""
    try:
        return await delivery
    except ClientError:
        return None


# ---------------------------------------------------------------------------------------------------- what goes wrong
async def send_while_the_leader_fails(cluster: ScriptedCluster, row: Row, producer: Producer) -> Delivery:
    """A record that the leader has appended and its followers have not, when one of them becomes the leader."""
    if row.acks == "all":
        cluster.on(ProduceRequest, late(FOLLOWERS_MS), node=0)  # it answers when they have it
    delivery = await producer.send(TOPIC, b"order")
    await asyncio.sleep(FOLLOWERS_MS / 2 / 1000)
    assert cluster.values(TOPIC) == [b"order"]
    cluster.brokers[0].stop()
    cluster.log(TOPIC).truncate(0)
    cluster.move_leader(TOPIC, 0, to=1)
    return delivery


async def send_while_the_line_is_cut(cluster: ScriptedCluster, producer: Producer) -> list[Delivery]:
    """Three requests on a slow line that is cut when the broker has two of them, and a part of the third."""
    line = cluster.brokers[0].path.to_server
    line.bytes_per_ms, line.window_bytes = 10.0, 1000
    deliveries = [await producer.send(TOPIC, bytes(size)) for size in (400, 401, 4000)]
    await asyncio.sleep(0.15)
    assert [len(value or b"") for value in cluster.values(TOPIC)] == [400, 401]
    cluster.brokers[0].close_connections()
    line.bytes_per_ms = None
    return deliveries


async def send_around_a_lost_connection(cluster: ScriptedCluster, producer: Producer) -> list[Delivery]:
    """Two records: the broker has only begun with the first when its connection is lost, and is done with it later."""
    cluster.on(ProduceRequest, slow(1000), node=0)
    first = await producer.send(TOPIC, b"first")
    await asyncio.sleep(0.1)
    cluster.brokers[0].close_connections()
    await asyncio.sleep(0.1)
    second = await producer.send(TOPIC, b"second")
    await asyncio.sleep(3)
    return [first, second]


async def send_with_the_first_refused(cluster: ScriptedCluster, producer: Producer) -> list[Delivery]:
    """Two batches on their way together, where it is allowed, of which the broker refuses the first for now."""
    cluster.on(ProduceRequest, error(ErrorCode.NOT_ENOUGH_REPLICAS), late(50))
    first = await producer.send(TOPIC, b"first")
    await asyncio.sleep(0.01)
    return [first, await producer.send(TOPIC, b"second")]


async def send_with_the_first_too_large(cluster: ScriptedCluster, producer: Producer) -> list[Delivery]:
    """The same, with a first batch that the topic finds too large; the producer needs a `batch_size` of 3,000."""
    cluster.topics[TOPIC].max_message_bytes = 2000
    cluster.on(ProduceRequest, late(50))
    values = [bytes(1100), bytes(1101), bytes(1102)]
    deliveries = [producer.send_nowait(TOPIC, value) for value in values[:2]]
    await asyncio.sleep(0.01)
    return [*deliveries, await producer.send(TOPIC, values[2])]


async def send_while_the_leader_goes_and_comes_back(cluster: ScriptedCluster, producer: Producer) -> list[Delivery]:
    """The first record waits at the old leader, the second goes to a new one, and the old one is elected again."""
    cluster.on(ProduceRequest, slow(1000), node=0)
    first = await producer.send(TOPIC, b"first")
    await asyncio.sleep(0.01)
    cluster.move_leader(TOPIC, 0, to=1)
    await asyncio.sleep(0.3)
    second = await producer.send(TOPIC, b"second")
    await asyncio.sleep(0.3)
    cluster.move_leader(TOPIC, 0, to=0)
    return [first, second]


Fault = Callable[[ScriptedCluster, Producer], Any]


async def acked_order(cluster: ScriptedCluster, producer: Producer, fault: Fault) -> list[int]:
    """The numbers of the records that were acknowledged, in their order in the log."""
    deliveries = await fault(cluster, producer)
    acks = [await ack_of(delivery) for delivery in deliveries]
    found = [(ack.offset, number) for number, ack in enumerate(acks) if ack is not None]
    return [number for _, number in sorted(found)]


# --------------------------------------------------------------------------------------------------------------- lost
@shows("lost", "yes", ACKS_0, ACKS_0_RETRIES)
async def test_without_acknowledgement_a_record_is_lost_unnoticed(cluster: ScriptedCluster, row: Row) -> None:
    cluster.on(ProduceRequest, disconnect_before())
    async with producing(cluster, row) as producer:
        ack = await (await producer.send(TOPIC, b"order"))
        assert ack.offset == -1
        await producer.flush()
    await asyncio.sleep(5)
    assert cluster.values(TOPIC) == []


@shows("lost", "yes", ACKS_1, ACKS_1_RETRIES)
async def test_a_leader_that_fails_before_its_followers_have_a_record_loses_it(
    cluster: ScriptedCluster, row: Row
) -> None:
    async with producing(cluster, row) as producer:
        delivery = await send_while_the_leader_fails(cluster, row, producer)
        assert (await delivery).offset == 0
        await producer.flush()
    assert cluster.values(TOPIC) == []


@shows("lost", "no", ACKS_ALL, ACKS_ALL_RETRIES, IDEMPOTENT)
async def test_what_all_replicas_have_to_acknowledge_is_not_lost_with_the_leader(
    cluster: ScriptedCluster, row: Row
) -> None:
    async with producing(cluster, row) as producer:
        ack = await ack_of(await send_while_the_leader_fails(cluster, row, producer))
        if row.retries == "0":
            assert ack is None
        else:
            assert ack is not None
            assert cluster.values(TOPIC)[ack.offset] == b"order"
        assert (await (await producer.send(TOPIC, b"another"))).offset >= 0
    assert cluster.values(TOPIC) == ([b"another"] if ack is None else [b"order", b"another"])


# ------------------------------------------------------------------------------------------------------------ doubled
@shows("doubled", "no", ACKS_0)
async def test_what_was_cut_off_and_is_not_sent_again_is_there_once_at_most(cluster: ScriptedCluster, row: Row) -> None:
    async with producing(cluster, row, batch_size=0) as producer:
        acks = [await ack_of(each) for each in await send_while_the_line_is_cut(cluster, producer)]
    assert None in acks
    assert max(Counter(cluster.values(TOPIC)).values()) == 1


@shows("doubled", "yes", ACKS_0_RETRIES)
async def test_what_was_cut_off_and_is_sent_again_doubles(cluster: ScriptedCluster, row: Row) -> None:
    async with producing(cluster, row, batch_size=0) as producer:
        acks = [await ack_of(each) for each in await send_while_the_line_is_cut(cluster, producer)]
        await asyncio.sleep(1)
    assert None not in acks
    assert max(Counter(cluster.values(TOPIC)).values()) == 2


@shows("doubled", "no", ACKS_1, ACKS_ALL)
async def test_a_lost_answer_without_retries_fails_a_record_that_is_there_once(
    cluster: ScriptedCluster, row: Row
) -> None:
    cluster.on(ProduceRequest, disconnect_after())
    async with producing(cluster, row) as producer:
        assert await ack_of(await producer.send(TOPIC, b"order")) is None
    assert cluster.values(TOPIC) == [b"order"]


@shows("doubled", "yes", ACKS_1_RETRIES, ACKS_ALL_RETRIES)
async def test_a_lost_answer_doubles(cluster: ScriptedCluster, row: Row) -> None:
    cluster.on(ProduceRequest, disconnect_after())
    async with producing(cluster, row) as producer:
        assert (await (await producer.send(TOPIC, b"order"))).offset == 1
    assert cluster.values(TOPIC) == [b"order", b"order"]


@shows("doubled", "no", IDEMPOTENT)
async def test_with_idempotence_neither_a_lost_answer_nor_a_late_append_doubles(
    cluster: ScriptedCluster, row: Row
) -> None:
    cluster.on(ProduceRequest, disconnect_after())
    async with producing(cluster, row) as producer:
        assert (await (await producer.send(TOPIC, b"order"))).offset == 0
        assert await acked_order(cluster, producer, send_around_a_lost_connection) == [0, 1]
    assert cluster.values(TOPIC) == [b"order", b"first", b"second"]


# ---------------------------------------------------------------------------------------------------------- reordered
@shows("reordered", "yes", ACKS_0, ACKS_0_RETRIES)
@pytest.mark.parametrize("in_flight", [1, 5])
async def test_without_acknowledgement_the_next_connection_overtakes_the_last(
    cluster: ScriptedCluster, row: Row, in_flight: int
) -> None:
    async with producing(cluster, row, max_in_flight_requests_per_connection=in_flight) as producer:
        deliveries = await send_around_a_lost_connection(cluster, producer)
        assert all(delivery.exception() is None for delivery in deliveries)
    assert cluster.values(TOPIC) == [b"second", b"first"]


@shows("reordered", "yes", ACKS_1, ACKS_ALL)
async def test_without_retries_the_next_batch_overtakes_one_that_is_split(cluster: ScriptedCluster, row: Row) -> None:
    for in_flight, order in ((5, [2, 0, 1]), (1, [0, 1, 2])):
        more = {"batch_size": 3000, "linger_ms": 5, "max_in_flight_requests_per_connection": in_flight}
        async with producing(cluster, row, **more) as producer:
            assert await acked_order(cluster, producer, send_with_the_first_too_large) == order
            assert await acked_order(cluster, producer, send_around_a_lost_connection) == [1], "the first has failed"


@shows("reordered", "yes", ACKS_1_RETRIES, ACKS_ALL_RETRIES)
async def test_the_next_batch_overtakes_one_that_is_sent_again(cluster: ScriptedCluster, row: Row) -> None:
    for in_flight, order in ((5, [1, 0]), (1, [0, 1])):
        async with producing(cluster, row, max_in_flight_requests_per_connection=in_flight) as producer:
            assert await acked_order(cluster, producer, send_with_the_first_refused) == order


@shows("reordered", "no", IDEMPOTENT)
async def test_with_idempotence_nothing_overtakes(cluster: ScriptedCluster, row: Row) -> None:
    async with producing(cluster, row, batch_size=3000, linger_ms=5) as producer:
        await (await producer.send(TOPIC, b"begin"))  # without an acknowledgement, one batch at a time is in flight
        assert await acked_order(cluster, producer, send_with_the_first_refused) == [0, 1]
        assert await acked_order(cluster, producer, send_around_a_lost_connection) == [0, 1]
        assert await acked_order(cluster, producer, send_with_the_first_too_large) == [0, 1, 2]
    assert cluster.most_in_flight(ProduceRequest) > 1


# --------------------------------------------------------------------------------------------------- beside the table
@pytest.mark.parametrize("row", [ACKS_1, ACKS_1_RETRIES, ACKS_ALL, ACKS_ALL_RETRIES, IDEMPOTENT], ids=str)
async def test_a_leader_that_goes_and_comes_back_reorders_as_retries_do(cluster: ScriptedCluster, row: Row) -> None:
    cluster.create_topic("elsewhere", leaders=[1])
    for in_flight in (5, 1):
        more = {"metadata_max_age_ms": 100, "max_in_flight_requests_per_connection": in_flight}
        order = [1, 0] if in_flight == 5 and row is not IDEMPOTENT else [0, 1]
        async with producing(cluster, row, **more) as producer:
            await (await producer.send("elsewhere"))  # there is a connection to the other broker
            for _ in range(2):  # the first time, no broker knows the producer
                assert await acked_order(cluster, producer, send_while_the_leader_goes_and_comes_back) == order


async def test_a_record_given_up_after_it_was_sent_may_be_there_and_the_error_says_so(
    cluster: ScriptedCluster,
) -> None:
    cluster.on(ProduceRequest, never(), times=None)
    async with producing(cluster, IDEMPOTENT, request_timeout_ms=1000, delivery_timeout_ms=3000) as producer:
        with pytest.raises(DeliveryTimeout, match="may be in the log"):
            await (await producer.send(TOPIC, b"order"))
    assert cluster.values(TOPIC) == [b"order"]


# ------------------------------------------------------------------------------------------------------------ the page
def test_the_page_says_what_the_tests_show() -> None:
    page = Document(PAGE.read_text())
    rows = (ACKS_0, ACKS_0_RETRIES, ACKS_1, ACKS_1_RETRIES, ACKS_ALL, ACKS_ALL_RETRIES, IDEMPOTENT)
    assert page.cells.keys() == CELLS.keys() == {(row, column) for row in rows for column in COLUMNS}
    assert {cell: said for cell, said in page.cells.items() if said != CELLS[cell]} == {}


def test_every_test_that_the_page_names_exists() -> None:
    page = Document(PAGE.read_text())
    assert len(page.tests) >= len({name for _, name in CELLS.values()})
    missing = [
        name for name, link in page.tests if f"def {name}(" not in (Path(PAGE.parent) / link).resolve().read_text()
    ]
    assert missing == []
    assert set(page.letters.values()) == {name for _, name in CELLS.values()}
