"""Clients with transactions in a world: our own producers, on machines of their own. All they are told goes to the
history (transaction_history.py).

A `Writer` sends a few records to a topic in each transaction, works for a while now and then, and commits, mostly, or
aborts. A `Copier` is the loop "read, process, write": it reads a topic as a member of a group, copies each record
to another topic, and commits its offsets with the same transaction.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.records import ConsumerBatch
from odradek.client.errors.client_errors import ClientError
from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed
from odradek.client.producer.producer import Producer
from odradek.client.producer.results.delivery import Delivery, wait_for_all
from odradek.client.producer.transaction import Transaction
from odradek.testing.sim.checking.numbered import decoded, encoded
from odradek.testing.sim.checking.transaction_history import NO_SOURCE, Ended, Ending, InTransaction
from odradek.testing.sim.cluster.group_member import POLL_MS, Protocol, consumer_settings
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, Workload
from odradek.testing.sim.world.machine import Running
from odradek.testing.sim.world.world import World

COPIERS: Final = "copiers"
"""The group of those who copy."""
TRANSACTION_TIMEOUT_MS: Final = 4_000
ASKED_MAX: Final = 5
"""So often a commit is asked for whose outcome nobody tells; then another producer takes the id over."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the lives of one transactional client have in common."""

    transactional_id: str
    abort_share: float = 0.2
    work_ms: float = 0.0
    """Works so long within a transaction, on average, now and then."""
    interval_ms: float = 200.0
    """Between two transactions."""
    protocol: Protocol = "classic"
    """Of the group, for one that copies."""
    is_static: bool = False


class Transactor:
    """What both have in common: one life of a producer with an id, and the story of its transactions."""

    def __init__(self, world: World, target: Workload, running: Running, desk: Desk, name: str) -> None:
        """`target`: where it writes to. `name`: of this life."""
        self.world = world
        self.target = target
        self.running = running
        self.desk = desk
        self.name = name
        self.rng = world.rng(f"transactions of {name}")
        self.is_hurried: Callable[[], bool] = lambda: False
        """Whether it neither aborts nor works any more, but gets through what there is."""
        self._count = 0
        self._deliveries: list[Delivery] = []

    def new_producer(self) -> Producer:
        environment = self.running.environment
        return Producer(
            self.target.bootstrap,
            client_id=self.name,
            environment=lambda: environment,
            transactional_id=self.desk.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            delivery_timeout_ms=10_000,
            max_block_ms=5_000,
            close_timeout_ms=3_000,
            linger_ms=5,
            **CLIENT_SETTINGS,
        )

    async def begin(self, producer: Producer) -> tuple[Transaction, str]:
        """And its name in the history. Raises ClientError."""
        self._count += 1
        name = f"{self.name}.{self._count}"
        self._deliveries.clear()
        transaction = await producer.transaction().begin()
        self.note("begins", name)
        return transaction, name

    async def send(self, transaction: Transaction, name: str, partition: int, source: int = NO_SOURCE) -> None:
        """Raises ClientError."""
        value = self.target.noted(self.running.machine.name, self.name, partition)
        self.world.history.add(InTransaction(self.world.now_ms, name, value, source))
        size_bytes = self.rng.choice((0, 10, 100, 1_000))
        self._deliveries.append(
            await transaction.send(self.target.topic, encoded(value, size_bytes), partition=partition)
        )

    async def work(self) -> None:
        if self.desk.work_ms and self.rng.random() < 0.3 and not self.is_hurried():
            await self.running.environment.sleep(self.rng.expovariate(1.0) * self.desk.work_ms)

    async def end(self, transaction: Transaction, name: str) -> bool:
        """Commits or aborts, by chance; whether it is committed. Raises ClientError where its producer cannot go on."""
        if self.rng.random() < self.desk.abort_share and not self.is_hurried():
            await self.abort(transaction, name)
            return False
        if self.rng.random() < 0.5:
            await wait_for_all(self._deliveries)
            await self.work()
        for _ in range(ASKED_MAX):
            self._tell(Ending(self.world.now_ms, name, "commit"))
            try:
                await transaction.commit()
            except CommitOutcomeUnknown:
                self.note("asks again", name)
            except TransactionFailed as error:
                self._tell(Ended(self.world.now_ms, name, "aborted"))
                if error.fatal:
                    raise
                return False
            else:
                self._tell(Ended(self.world.now_ms, name, "committed"))
                return True
        raise CommitOutcomeUnknown(self.desk.transactional_id, 0.0)

    async def abort(self, transaction: Transaction, name: str) -> None:
        """Raises ClientError."""
        self._tell(Ending(self.world.now_ms, name, "abort"))
        await transaction.abort()
        self._tell(Ended(self.world.now_ms, name, "aborted"))

    def note(self, *what: object) -> None:
        self.world.trace.note(self.running.process.name, *what)

    def _tell(self, record: Ending | Ended) -> None:
        kind = record.wanted if isinstance(record, Ending) else record.outcome
        self.note(type(record).__name__, record.transaction, kind)
        self.world.history.add(record)


class Writer(Transactor):
    """See the module."""

    async def live(self) -> None:
        """Until the process is to stop. Raises ClientError."""
        producer = self.new_producer()
        try:
            await producer.start()
            while not self.running.is_stopping:
                await self._transaction(producer)
                await self.running.environment.sleep(self.rng.expovariate(1.0) * self.desk.interval_ms)
        finally:
            await _closed(producer)

    async def _transaction(self, producer: Producer) -> None:
        """Raises ClientError."""
        transaction, name = await self.begin(producer)
        for _ in range(self.rng.choice((1, 2, 3, 8))):
            await self.send(transaction, name, self.rng.randrange(self.target.partitions))
            await self.work()
        await self.end(transaction, name)


class Copier(Transactor):
    """See the module. After a transaction that is not committed another life begins at the committed offsets."""

    def __init__(
        self, world: World, source: Workload, target: Workload, running: Running, desk: Desk, name: str
    ) -> None:
        super().__init__(world, target, running, desk, name)
        self.source = source

    async def live(self) -> None:
        """Until the process is to stop, or a transaction is not committed. Raises ClientError."""
        producer = self.new_producer()
        try:
            await producer.start()
            async with self._new_consumer() as consumer:
                while not self.running.is_stopping:
                    batch = await consumer.get_batch(self.rng.choice((1, 5, 50)), POLL_MS)
                    if batch and not await self._copied(producer, consumer, batch):
                        return
        finally:
            await _closed(producer)

    def _new_consumer(self) -> Consumer:
        environment = self.running.environment
        return Consumer(
            self.source.bootstrap,
            client_id=self.name,
            environment=lambda: environment,
            group_id=COPIERS,
            topics=[self.source.topic],
            group_instance_id=self.running.machine.name if self.desk.is_static else None,
            isolation_level="read_committed",
            **consumer_settings(self.desk.protocol, "range"),
        )

    async def _copied(self, producer: Producer, consumer: Consumer, batch: ConsumerBatch) -> bool:
        """Whether the batch is copied, and committed. Raises ClientError."""
        transaction, name = await self.begin(producer)
        for part in batch.parts:
            for value in part.values:
                await self.send(transaction, name, part.partition.partition % self.target.partitions, decoded(value))
        await self.work()
        try:
            await transaction.send_offsets(consumer)
        except TransactionFailed as error:
            if error.fatal:
                raise
            await self.abort(transaction, name)
            return False
        return await self.end(transaction, name)


async def _closed(producer: Producer) -> None:
    """What has not ended by then is another life's to abort, or the coordinator's."""
    with suppress(ClientError):
        await producer.close()
