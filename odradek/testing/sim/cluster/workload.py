"""Who writes in a world: our own producers, on machines of their own. All they are told goes to the history.

They send numbered values, now and then, to partitions by chance; to a compacted topic with keys, most of them one of a
few, and some as tombstones. When all is repaired the last producer writes to every partition, which must succeed
(`finisher`).
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Literal

from odradek.client.admin.admin import Admin
from odradek.client.errors.client_errors import ClientError, TopicExists
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery
from odradek.protocol.batches.records import Record
from odradek.testing.sim.checking.history import Acknowledged, Failed, Sent
from odradek.testing.sim.checking.numbered import decoded, encoded
from odradek.testing.sim.world.machine import Main, Running
from odradek.testing.sim.world.world import World

RETRY_MS: Final = 200.0
RUSH_INTERVAL_MS: Final = 10.0
"""Between two records of a producer, while it has more to send than else."""
KEYS: Final = 100
"""So many keys come again and again."""
NUMBER: Final = "number"
"""The header that says which record it is, of a tombstone."""

CLIENT_SETTINGS: Final[dict[str, Any]] = {
    "request_timeout_ms": 2_000,
    "retry_backoff_ms": 50,
    "retry_backoff_max_ms": 500,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,
    "metadata_max_age_ms": 5_000,
    "socket_connection_setup_timeout_ms": 1_000,
    "socket_connection_setup_timeout_max_ms": 2_000,
}
"""Times scaled down, for a history is short."""


@dataclass(frozen=True, slots=True)
class ProducerAcks:
    """How a producer sends."""

    acks: Literal[0, 1, -1]
    is_idempotent: bool = False


class Workload:
    """What the clients of one world do to one topic."""

    def __init__(
        self,
        world: World,
        bootstrap: Sequence[str],
        topic: str,
        partitions: int,
        *,
        has_keys: bool = False,
        values: Iterator[int] | None = None,
    ) -> None:
        """`values`: numbers for records, where several workloads of a world take theirs from one row."""
        self.world = world
        self.bootstrap = list(bootstrap)
        self.topic = topic
        self.partitions = partitions
        """How many the topic has. It may be changed at any time."""
        self.has_keys = has_keys
        self.identity: Callable[[bytes], str] = lambda topic_id: topic
        """What histories call the topic with an id (topics.py)."""
        self.current: Callable[[], str] = lambda: topic
        """And the topic that has the name now."""
        self.is_topic_there = False
        self.is_rush_hour = False
        """Its producers have more to send than else. It may be changed at any time."""
        self.values = count(1) if values is None else values
        self._producers = 0
        self._senders: dict[int, str] = {}  # names of producers, by value
        self._acks: dict[int, int] = {}  # by value

    def acks_of(self, value: int) -> int:
        """With which acks a record was sent."""
        return self._acks[value]

    # -- the topic -------------------------------------------------------------------------------------------------

    def creator(self, replication_factor: int, configs: Mapping[str, str]) -> Main:
        """Creates the topic, however often it must be tried."""

        async def main(running: Running) -> None:
            environment = running.environment
            while not self.is_topic_there:
                admin = Admin(self.bootstrap, client_id="creator", environment=lambda: environment, **CLIENT_SETTINGS)
                try:
                    async with admin:
                        await admin.create_topic(
                            self.topic, self.partitions, replication_factor, configs, timeout_ms=5_000
                        )
                except TopicExists:
                    self.is_topic_there = True
                except ClientError:
                    await environment.sleep(RETRY_MS)
                else:
                    self.is_topic_there = True

        return main

    # -- producers -------------------------------------------------------------------------------------------------

    def producer(self, rng: random.Random, acks: ProducerAcks, interval_ms: float) -> Main:
        """Sends values until it is stopped, and then lets those that are under way end."""

        async def main(running: Running) -> None:
            while not running.is_stopping:
                try:
                    await self._produce(running, rng, acks, interval_ms)
                except ClientError:
                    # It could not start, or it has come to an end of which only a new producer gets over.
                    await running.environment.sleep(RETRY_MS)

        return main

    def _new_producer(self, running: Running, acks: ProducerAcks) -> tuple[Producer, str]:
        self._producers += 1
        name = f"{running.machine.name}/{self._producers}"
        environment = running.environment
        made = Producer(
            self.bootstrap,
            client_id=name,
            environment=lambda: environment,
            acks=acks.acks,
            enable_idempotence=acks.is_idempotent,
            delivery_timeout_ms=10_000,
            max_block_ms=5_000,
            linger_ms=5,
            **CLIENT_SETTINGS,
        )
        return made, name

    async def _produce(self, running: Running, rng: random.Random, acks: ProducerAcks, interval_ms: float) -> None:
        """Raises ClientError."""
        producer, name = self._new_producer(running, acks)
        await producer.start()
        try:
            while not running.is_stopping:
                partition = rng.randrange(self.partitions) if rng.random() < 0.8 else None
                size_bytes: int | None = rng.choice((0, 0, 10, 100, 1000, 20_000))
                key = None
                if self.has_keys:
                    key = rng.randrange(KEYS) if rng.random() < 0.8 else None
                    size_bytes = size_bytes if rng.random() < 0.9 else None
                if not await self._send(running, producer, name, acks, partition, size_bytes, key):
                    return
                pause_ms = RUSH_INTERVAL_MS if self.is_rush_hour else interval_ms
                await running.environment.sleep(rng.expovariate(1.0) * pause_ms)
        finally:
            await _closed(producer)

    async def _send(
        self,
        running: Running,
        producer: Producer,
        name: str,
        acks: ProducerAcks,
        partition: int | None,
        size_bytes: int | None,
        key: int | None = None,
    ) -> bool:
        """Whether the producer can go on. `size_bytes`: None for a tombstone. `key`: None for one of its own."""
        world = self.world
        value = next(self.values)
        self._senders[value] = name
        self._acks[value] = acks.acks
        client = running.machine.name
        if self.has_keys and key is None:
            key = value
        sent = Sent(world.now_ms, client, name, value, self.topic, partition, acks.acks, acks.is_idempotent, key)
        world.history.add(sent)
        try:
            await producer.send(
                self.topic,
                encoded(value, size_bytes) if size_bytes is not None else None,
                key=b"%d" % key if key is not None else None,
                partition=partition,
                headers=() if size_bytes is not None else ((NUMBER, encoded(value)),),
                on_delivery=partial(self._ended, running, value),
            )
        except ClientError as error:
            world.history.add(Failed(world.now_ms, value, _name(error), is_definite=True))
            return not error.fatal
        return True

    def noted(self, client: str, producer: str, partition: int) -> int:
        """A new value, which this client's transactional producer is about to send to a partition."""
        value = next(self.values)
        sent = Sent(self.world.now_ms, client, producer, value, self.topic, partition, -1, is_idempotent=True)
        self.world.history.add(sent)
        return value

    def finisher(self) -> Main:
        """Writes one record to every partition, however often it must be tried, and ends when all are acknowledged."""

        async def main(running: Running) -> None:
            left = dict.fromkeys(range(self.partitions))
            while left:
                acks = ProducerAcks(-1, is_idempotent=True)
                producer, name = self._new_producer(running, acks)
                before = len(self.world.history)
                try:
                    await producer.start()
                    for partition in list(left):
                        await self._send(running, producer, name, acks, partition, 0)
                    await producer.flush()
                except ClientError as error:
                    self.world.trace.note(running.process.name, "tries again", _name(error))
                finally:
                    await _closed(producer)
                for record in self.world.history.records[before:]:
                    if isinstance(record, Acknowledged) and self._senders.get(record.value) == name:
                        left.pop(record.partition, None)
                if left:
                    await running.environment.sleep(RETRY_MS)

        return main

    def prompt(self, slowest_ms: dict[int, float]) -> Main:
        """Writes two records to every partition, one after the other, and says how long the second took at most."""

        async def main(running: Running) -> None:
            acks = ProducerAcks(-1, is_idempotent=True)
            producer, name = self._new_producer(running, acks)
            await producer.start()
            try:
                for partition in range(self.partitions):
                    for _ in range(2):
                        began_ms = self.world.now_ms
                        await self._send(running, producer, name, acks, partition, 0)
                        await producer.flush()
                        slowest_ms[partition] = self.world.now_ms - began_ms
            finally:
                await _closed(producer)

        return main

    def _ended(self, running: Running, value: int, delivery: Delivery) -> None:
        world = self.world
        error = delivery.exception()
        if error is None:
            ack = delivery.result()
            world.trace.note(running.process.name, "acknowledged", value, ack.partition, ack.offset)
            world.history.add(Acknowledged(world.now_ms, value, ack.topic, ack.partition, ack.offset))
        else:
            world.trace.note(running.process.name, "failed", value, _name(error))
            world.history.add(Failed(world.now_ms, value, _name(error), is_definite=False))


def number_of(record: Record) -> int:
    """Which one it is: its value says so, or the header of a tombstone. Raises ValueError."""
    return decoded(record.value if record.value is not None else dict(record.headers).get(NUMBER))


async def _closed(producer: Producer) -> None:
    """Waits until all that was accepted has ended. Of what has failed the history knows."""
    with suppress(ClientError):
        await producer.close()


def _name(error: ClientError) -> str:
    return f"{type(error).__name__} {error.code.name if error.code is not None else ''}".strip()
