"""A producer at work on a scripted cluster while things go wrong, and what must hold whatever it was that went wrong.

    with scripted_cluster(brokers=3) as cluster:
        cluster.on(ProduceRequest, disconnect_after(), nth=2)
        story = await tell(cluster, records=10)
        assert not story.errors

`tell` sends numbered records to each partition of one topic, waits until each delivery has ended, and closes the
producer. Then it checks: every delivery ended within its deadline and once; what was acknowledged is in the log at the
offset that was told; nothing is there twice or in another order than it was sent; no task ended with an error; and the
loop went round no more often than the work and the time that passed explain.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from client.errors import ClientError
from client.producer.delivery import Ack, Delivery
from client.producer.producer import Producer
from protocol.messages.produce import ProduceRequest
from tests.client.scripted_broker import ScriptedCluster
from tests.client.virtual_time import virtual_loop

TOPIC = "orders"
SLACK_MS = 50.0
"""Deadlines are kept to this."""
ROUNDS_MIN = 1_000
ROUNDS_PER_REQUEST = 60
ROUNDS_PER_SECOND = 100
"""What the loop may need at rest, while it tries to reach brokers that are gone."""

PATIENT: dict[str, Any] = {
    "client_id": "story",  # the default has a number, and so another length in each run of a seed
    "linger_ms": 0,
    "batch_size": 150,  # a few records each, so that several batches are in flight
    "request_timeout_ms": 2_000,
    "delivery_timeout_ms": 20_000,
    "max_block_ms": 5_000,
    "close_timeout_ms": 25_000,
}


class Record:
    """A record that was sent, and what became of it."""

    def __init__(self, partition: int, number: int) -> None:
        self.partition = partition
        self.value = b"%d:%06d" % (partition, number)
        self.delivery: Delivery | None = None
        self.accepted_ms = 0.0
        self.ended_ms: list[float] = []
        self.refusal: ClientError | None = None
        """Why it was not accepted."""

    def __repr__(self) -> str:
        return self.value.decode()

    @property
    def error(self) -> BaseException | None:
        return self.refusal if self.delivery is None else self.delivery.exception()

    @property
    def ack(self) -> Ack | None:
        return None if self.delivery is None or self.error is not None else self.delivery.result()


class Surprises(logging.Handler):
    """Keeps what the client logs with a traceback: what it did not expect."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.texts.append(logging.Formatter().format(record))


class Story:
    """What `tell` told."""

    def __init__(self, cluster: ScriptedCluster, settings: dict[str, Any]) -> None:
        self.cluster = cluster
        self.settings = PATIENT | settings
        self.records: list[Record] = []
        self.producer = Producer(cluster.bootstrap, environment=lambda: cluster.environment, **self.settings)
        self.began_ms = cluster.now_ms()
        self.took_ms = 0.0
        """Until the producer was closed."""
        self.rounds = -virtual_loop().iterations
        """How often the loop went round meanwhile."""
        self.surprises = Surprises()

    @property
    def errors(self) -> list[BaseException]:
        """Of the records that failed or were not accepted, in the order in which they were sent."""
        return [error for record in self.records if (error := record.error) is not None]

    @property
    def acks(self) -> list[Ack]:
        return [ack for record in self.records if (ack := record.ack) is not None]

    def of(self, partition: int) -> list[Record]:
        return [record for record in self.records if record.partition == partition]

    async def send(self, records: int, partitions: Sequence[int]) -> None:
        """Sends so many records to each of the partitions, in turn."""
        for _ in range(records):
            for partition in partitions:
                record = Record(partition, len(self.records))
                self.records.append(record)
                try:
                    record.delivery = await self.producer.send(TOPIC, record.value, partition=partition)
                except ClientError as error:
                    record.refusal = error
                    continue
                record.accepted_ms = self.cluster.now_ms()
                record.delivery.add_done_callback(partial(self._ended, record))

    def _ended(self, record: Record, delivery: Delivery) -> None:
        assert delivery.done()
        record.ended_ms.append(self.cluster.now_ms())

    async def all_ended(self) -> None:
        """Returns when every delivery has ended. Raises TimeoutError when one does not within its deadline."""
        async with asyncio.timeout((self.settings["delivery_timeout_ms"] + SLACK_MS) / 1000.0):
            for record in self.records:
                if record.delivery is not None:
                    await asyncio.gather(_ended(record.delivery))

    # -- what must hold ----------------------------------------------------------------------------------------------

    def check(self, *, loses_data: bool = False) -> None:
        """Raises AssertionError for a broken promise. `loses_data`: the cluster did, and what is gone is not missed.

        Without idempotence nothing is promised of duplicates and, with several requests in flight, of order.
        """
        assert not self.surprises.texts, "\n".join(self.surprises.texts)
        self.check_endings()
        self.check_rounds()
        for partition in range(len(self.cluster.topics[TOPIC].partitions)):
            values = [value or b"" for value in self.cluster.values(TOPIC, partition)]
            if self.producer.config.is_idempotent:
                assert all(before < after for before, after in pairwise(values)), f"doubled or out of order: {values}"
            if not loses_data and self.producer.config.acks != 0:
                self.check_acks(partition)
            sent = {record.value for record in self.of(partition)}
            assert sent.issuperset(values), "a record that nobody sent"
        if self.producer.config.acks != 0:
            limit = self.producer.config.max_in_flight_requests_per_connection
            assert self.cluster.most_in_flight(ProduceRequest) <= limit, "requests in flight"

    def check_endings(self) -> None:
        for record in self.records:
            if record.delivery is None:
                continue
            assert record.delivery.done(), f"{record} has not ended"
            assert len(record.ended_ms) == 1, f"{record} ended {len(record.ended_ms)} times"
            took_ms = record.ended_ms[0] - record.accepted_ms
            assert took_ms <= self.settings["delivery_timeout_ms"] + SLACK_MS, f"{record} took {took_ms} ms"

    def check_acks(self, partition: int) -> None:
        log = self.cluster.log(TOPIC, partition)
        at = {each.base_offset + index: value for each in log.batches for index, value in enumerate(each.values)}
        values = set(at.values())
        for record in self.of(partition):
            if record.ack is not None:
                assert record.value in values, f"{record} was acknowledged and is lost"
                if record.ack.offset >= 0:
                    assert at.get(record.ack.offset) == record.value, f"{record} is not at {record.ack.offset}"

    def check_rounds(self) -> None:
        """The loop must not turn while nothing happens."""
        seconds = self.took_ms / 1000.0
        requests = len(self.cluster.exchanges)
        reads = sum(
            broker.path.to_server.read_count + broker.path.to_client.read_count
            for broker in self.cluster.brokers.values()
        )
        limit = ROUNDS_MIN + ROUNDS_PER_REQUEST * requests + 2 * reads + ROUNDS_PER_SECOND * seconds
        assert self.rounds <= limit, f"{self.rounds} rounds for {requests} requests in {seconds:.1f} s"


async def tell(
    cluster: ScriptedCluster,
    *,
    records: int = 24,
    partitions: Sequence[int] | None = None,
    meanwhile: Callable[[Story], Awaitable[None]] | None = None,
    loses_data: bool = False,
    **settings: Any,
) -> Story:
    """Sends, waits for all deliveries, closes, and checks. `meanwhile` runs after the records were accepted."""
    if TOPIC not in cluster.topics:
        cluster.create_topic(TOPIC, partitions=3)
    story = Story(cluster, settings)
    if partitions is None:
        partitions = range(len(cluster.topics[TOPIC].partitions))
    logger = logging.getLogger("client")
    logger.addHandler(story.surprises)
    try:
        async with story.producer:
            await story.send(records, partitions)
            if meanwhile is not None:
                await meanwhile(story)
            await story.all_ended()
    finally:
        logger.removeHandler(story.surprises)
    story.took_ms = cluster.now_ms() - story.began_ms
    story.rounds += virtual_loop().iterations
    story.check(loses_data=loses_data)
    return story


def produce_count(cluster: ScriptedCluster) -> int:
    return cluster.count(ProduceRequest)


async def _ended(delivery: Delivery) -> None:
    try:
        await delivery
    except ClientError:
        return
