"""A producer at work on a scripted cluster while things go wrong, and what must hold whatever it was that went wrong.

    with scripted_cluster(brokers=3) as cluster:
        cluster.on(ProduceRequest, disconnect_after(), nth=2)
        story = await tell(cluster, records=10)
        assert not story.errors

`tell` sends numbered records to one topic, waits until each delivery has ended, and closes the producer. `senders` says
how: several may send at once, each in its `Manner` (`story_records.py`), and another task may close the producer
meanwhile. Then it checks: every call and every delivery ended, the deliveries within their deadline and once; what was
acknowledged is in the log, whole and at the offset that was told; what was cancelled is not; nothing is there twice or,
of one sender, in another order than it was sent; all memory is free; no task ended with an error; and the loop went
round no more often than the work and the time that passed explain.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from odradek.client.errors.client_errors import (
    BatchError,
    BufferFull,
    ClientClosed,
    ClientError,
    MetadataMissing,
    ProducerClosed,
)
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Ack, Delivery
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.murmur2 import partition_for_key
from tests.client.scripted_broker import ScriptedCluster
from tests.client.story_records import PLAIN, Audit, Manner, Record, columns
from tests.client.virtual_time import virtual_loop

__all__ = ["TOPIC", "Manner", "Record", "Story", "produce_count", "tell"]

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
GROUP = 5
"""So many records are sent between two moments at which a sender may be cancelled."""


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

    def __init__(self, cluster: ScriptedCluster, settings: dict[str, Any], *, is_audited: bool = False) -> None:
        self.cluster = cluster
        self.settings = PATIENT | settings
        self.audit = Audit()
        if is_audited:
            self.settings["interceptors"] = [self.audit]
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

    # -- what is sent ------------------------------------------------------------------------------------------------

    async def send(self, records: int, partitions: Sequence[int], manner: Manner = PLAIN, sender: int = 0) -> None:
        """Sends so many records to each of the partitions, in turn, or as many to wherever they go."""
        targets = partitions if manner.aim == "partition" else [-1] * len(partitions)
        if manner.call == "send_batch":
            for target in dict.fromkeys(targets):
                count = records * targets.count(target)
                await self._send_in_bulk([self._record(target, sender, manner) for _ in range(count)], manner)
            return
        turns = [target for _ in range(records) for target in targets]
        for start in range(0, len(turns), GROUP):
            sending = self._send_each(turns[start : start + GROUP], manner, sender)
            if manner.cancel_after_turns and start // GROUP % 2:
                await self._cancelled(asyncio.ensure_future(sending), manner.cancel_after_turns)
            else:
                await sending

    async def close_after(self, delay_s: float) -> None:
        """Closes the producer, whatever is going on."""
        await asyncio.sleep(delay_s)
        await self.producer.close()

    def _record(self, target: int, sender: int, manner: Manner) -> Record:
        record = Record(len(self.records), target, sender, manner)
        self.records.append(record)
        return record

    async def _cancelled(self, sending: asyncio.Task[None], after_turns: int) -> None:
        for _ in range(after_turns):
            await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        if not sending.cancelled():
            sending.result()

    async def _send_each(self, targets: Sequence[int], manner: Manner, sender: int) -> None:
        for target in targets:
            record = self._record(target, sender, manner)
            try:
                record.delivery = await self._accepted(record, manner)
            except ClientError as error:
                record.refusal = error
                continue
            except asyncio.CancelledError:
                record.is_cancelled = True
                raise
            record.accepted_ms = self.cluster.now_ms()
            record.delivery.add_done_callback(partial(self._ended, record))

    async def _accepted(self, record: Record, manner: Manner) -> Delivery:
        if manner.call == "send_nowait":
            try:
                return self.producer.send_nowait(TOPIC, record.value, **record.arguments)
            except (BufferFull, MetadataMissing):
                record.detours += 1
        return await self.producer.send(TOPIC, record.value, **record.arguments)

    async def _send_in_bulk(self, records: list[Record], manner: Manner) -> None:
        partition = records[0].partition if records and manner.aim == "partition" else None
        acks: Sequence[Ack] = ()
        errors: Mapping[int, ClientError] = {}
        stopped_by: ClientError | None = None
        try:
            acks = await self.producer.send_batch(TOPIC, partition=partition, **columns(records, manner))
        except BatchError as error:
            acks, stopped_by = error.acks, error.stopped_by
            errors = {**error.errors, **{index: error.stopped_by for index in error.unsent if error.stopped_by}}
        except ProducerClosed as error:
            stopped_by = error
        for index, record in enumerate(records):
            if index < len(acks) and index not in errors:
                record.bulk_ack = acks[index]
            else:
                record.refusal = errors.get(index, stopped_by)

    def _ended(self, record: Record, delivery: Delivery) -> None:
        assert delivery.done()
        record.ended_ms.append(self.cluster.now_ms())

    async def all_ended(self) -> None:
        """Returns when every delivery has ended. Raises TimeoutError when one does not within its deadline."""
        async with asyncio.timeout((self.settings["delivery_timeout_ms"] + SLACK_MS) / 1000.0):
            for record in self.records:
                if record.delivery is not None:
                    await _ended(record.delivery)

    # -- what must hold ----------------------------------------------------------------------------------------------

    def check(self, *, loses_data: bool = False) -> None:
        """Raises AssertionError for a broken promise. `loses_data`: the cluster did, and what is gone is not missed.

        Without idempotence nothing is promised of duplicates and, with several requests in flight, of order.
        """
        assert not self.surprises.texts, "\n".join(self.surprises.texts)
        config = self.producer.config
        assert self.producer.buffer_available_bytes == config.buffer_memory, "memory is not given back"
        self.check_endings()
        self.check_rounds()
        if config.interceptors:
            self.audit.check(self.records)
        for partition in range(len(self.cluster.topics[TOPIC].partitions)):
            self.check_log(partition)
            if not loses_data and config.acks != 0:
                self.check_acks(partition)
        if config.acks != 0:
            limit = config.max_in_flight_requests_per_connection
            assert self.cluster.most_in_flight(ProduceRequest) <= limit, "requests in flight"

    def check_endings(self) -> None:
        for record in self.records:
            assert type(record.refusal) is not ClientClosed, "a user of the producer looks for ProducerClosed"
            if record.delivery is None:
                ways = (record.refusal is not None, record.bulk_ack is not None, record.is_cancelled)
                assert sum(ways) == 1, f"{record} was neither accepted nor refused"
                continue
            assert record.delivery.done(), f"{record} has not ended"
            assert len(record.ended_ms) == 1, f"{record} ended {len(record.ended_ms)} times"
            took_ms = record.ended_ms[0] - record.accepted_ms
            assert took_ms <= self.settings["delivery_timeout_ms"] + SLACK_MS, f"{record} took {took_ms} ms"

    def check_log(self, partition: int) -> None:
        """Nothing is in it that was not sent, or was cancelled, or is not as it was sent."""
        count = len(self.cluster.topics[TOPIC].partitions)
        sent = {record.value: record for record in self.records if not record.is_cancelled}
        found: list[Record] = []
        for logged in (each for batch in self.cluster.batches(TOPIC, partition) for each in batch.records):
            record = sent.get(logged.value or b"")
            assert record is not None, f"nobody has sent {logged.value!r}"
            assert (logged.key, logged.headers) == (record.key, record.headers), f"{record} is not whole"
            assert record.partition in (partition, -1), f"{record} is in partition {partition}"
            assert record.key is None or partition == partition_for_key(record.key, count), f"{record} is astray"
            found.append(record)
        if self.producer.config.is_idempotent:
            for sender in {record.sender for record in found}:
                numbers = [record.number for record in found if record.sender == sender]
                assert all(before < after for before, after in pairwise(numbers)), f"doubled or out of order: {numbers}"

    def check_acks(self, partition: int) -> None:
        log = self.cluster.log(TOPIC, partition)
        at = {each.base_offset + index: value for each in log.batches for index, value in enumerate(each.values)}
        values = set(at.values())
        for record in self.records:
            if (ack := record.ack) is not None and ack.partition == partition:
                assert record.value in values, f"{record} was acknowledged and is lost"
                if ack.offset >= 0:
                    assert at.get(ack.offset) == record.value, f"{record} is not at {ack.offset}"

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
    senders: Sequence[Manner] = (PLAIN,),
    is_audited: bool = False,
    closes_after_s: float | None = None,
    meanwhile: Callable[[Story], Awaitable[None]] | None = None,
    loses_data: bool = False,
    **settings: Any,
) -> Story:
    """Sends, waits for all deliveries, closes, and checks. `meanwhile` runs after the records were accepted.

    Each of the `senders` sends so many `records` to each of the `partitions`.
    """
    if TOPIC not in cluster.topics:
        cluster.create_topic(TOPIC, partitions=3)
    story = Story(cluster, settings, is_audited=is_audited)
    if partitions is None:
        partitions = range(len(cluster.topics[TOPIC].partitions))
    logger = logging.getLogger("odradek.client")
    logger.addHandler(story.surprises)
    try:
        async with story.producer:
            closing = None if closes_after_s is None else asyncio.ensure_future(story.close_after(closes_after_s))
            sending = (story.send(records, partitions, manner, sender) for sender, manner in enumerate(senders))
            await asyncio.gather(*sending)
            if meanwhile is not None:
                await meanwhile(story)
            await story.all_ended()
            if closing is not None:
                await closing
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
