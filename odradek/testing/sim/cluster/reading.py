"""Who reads in a world: our own fetcher, on machines of its own. All it hands out goes to the history.

Readers follow all partitions from the beginning. The last one, `FINAL`, reads when all is repaired and all writing
has ended, from the beginning to the end: the history's last word on what the logs hold.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal

from odradek.client.admin.admin import Admin
from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.config import FetchConfig, IsolationLevel
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetched import FetchedBatch
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.client.fetching.positions import Asked, OffsetOutOfRange
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.fetch import FetchResponse
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from odradek.testing.sim.checking.history import Placed, Polled, PollFailed
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, RETRY_MS, Workload, number_of
from odradek.testing.sim.world.machine import Main, Running

FINAL: Final = "final"
POLL_MS: Final = 500.0


class IdFetcher(Fetcher):
    """A fetcher that knows which topic, by id, it was that the records came from."""

    def __init__(self, cluster: Cluster, environment: Environment, settings: FetchSettings) -> None:
        super().__init__(cluster, environment, settings)
        self._ids: dict[int, bytes] = {}
        """By `id` of the chunk that waits: who holds on to a chunk keeps its connection from using its memory again."""
        self.topic_id: bytes | None = None
        """Of the batch that `next` has handed out last."""
        self.refused: dict[TopicPartition, bytes] = {}
        """Which topic it was that has answered a partition last."""

    def _fetched(self, node_id: int, asked: Asked, answer: FetchResponse | ClientError) -> None:
        before = {id(chunk) for _, chunk in self._positions._waiting}  # pyright: ignore
        super()._fetched(node_id, asked, answer)
        ids = {topic.topic: topic.topic_id for topic in asked.request.topics}
        for position in asked.positions:
            self.refused[position.partition] = ids[position.partition.topic]
        for position, chunk in self._positions._waiting:  # pyright: ignore
            if id(chunk) not in before:
                self._ids[id(chunk)] = ids[position.partition.topic]

    async def next(self, timeout_ms: float) -> FetchedBatch | None:
        batch = await super().next(timeout_ms)
        if batch is not None:
            waiting = self._positions._waiting  # pyright: ignore
            self.topic_id = self._ids[id(waiting[0][1])]
            self._ids = {id(chunk): self._ids[id(chunk)] for _, chunk in waiting}
        return batch


class Reader:
    """One reader of one process."""

    def __init__(
        self, workload: Workload, running: Running, isolation_level: IsolationLevel = "read_uncommitted"
    ) -> None:
        self.workload = workload
        self.isolation_level: IsolationLevel = isolation_level
        self.world = workload.world
        self.running = running
        self.name = running.machine.name
        self.positions: dict[int, int] = {}
        self._read: dict[int, str] = {}
        """Which topic of the name was read last, by partition."""

    def place(self, partition: int, offset: int, topic: str | None = None) -> None:
        """Begins a partition at an offset, or goes back there since the broker has told that it must. `topic`: the
        identity of the topic that is read, if that is known; that another one has its name is a beginning."""
        is_known = partition in self.positions and topic in (None, self._read.get(partition))
        why: Literal["start", "out of range"] = "out of range" if is_known else "start"
        self.positions[partition] = offset
        topic = self._read.setdefault(partition, self.workload.topic) if topic is None else topic
        self._read[partition] = topic
        self.world.history.add(Placed(self.world.now_ms, self.name, topic, partition, offset, why))

    async def follow(self) -> None:
        """Until the process is to stop. Raises ClientError, after which it may be called again."""
        async with self._fetcher() as fetcher:
            for partition, offset in self.positions.items():
                fetcher.assign(TopicPartition(self.workload.topic, partition), Start.at_offset(offset))
            while not self.running.is_stopping:
                for partition in range(len(self.positions), self.workload.partitions):
                    self.place(partition, 0)
                    fetcher.assign(TopicPartition(self.workload.topic, partition), Start.at_offset(0))
                await self._poll(fetcher)

    async def read_up_to(self, ends: Mapping[int, int]) -> None:
        """Raises ClientError, after which it may be called again."""
        async with self._fetcher() as fetcher:
            for partition, end_offset in ends.items():
                start = Start.at_offset(self.positions[partition])
                fetcher.assign(TopicPartition(self.workload.topic, partition), start, end_offset)
            while not fetcher.is_finished:
                await self._poll(fetcher)

    async def _poll(self, fetcher: IdFetcher) -> None:
        world = self.world
        asked_ms = world.now_ms
        try:
            batch = await fetcher.next(POLL_MS)
        except ClientError as error:
            world.history.add(PollFailed(world.now_ms, asked_ms, self.name, self.workload.topic, type(error).__name__))
            if isinstance(error, OffsetOutOfRange):
                await self._go_back(error.partition, self._identity(fetcher.refused.get(error.partition)))
            raise
        if batch is not None:
            self._take(batch, asked_ms, self._identity(fetcher.topic_id))

    def _identity(self, topic_id: bytes | None) -> str:
        return self.workload.topic if topic_id is None else self.workload.identity(topic_id)

    def _take(self, batch: FetchedBatch, asked_ms: float, topic: str) -> None:
        world, position = self.world, self.positions[batch.partition]
        if topic != self._read[batch.partition]:
            self.place(batch.partition, position, topic)
        records = [(record.offset, number_of(record)) for record in batch.records]
        self.positions[batch.partition] = records[-1][0] + 1
        world.trace.note(self.running.process.name, "polled", batch.partition, *records)
        world.history.add(Polled(world.now_ms, asked_ms, self.name, topic, batch.partition, position, records))

    async def _go_back(self, partition: TopicPartition, topic: str) -> None:
        """The log ends before the position, or begins behind it."""
        offset = (await self.offsets(LATEST))[partition.partition]
        if offset >= self.positions[partition.partition]:
            offset = (await self.offsets(EARLIEST))[partition.partition]
        self.place(partition.partition, offset, topic)

    async def offsets(self, timestamp: int) -> dict[int, int]:
        """An offset of each partition. Raises ClientError."""
        environment, topic = self.running.environment, self.workload.topic
        wanted = {TopicPartition(topic, index): timestamp for index in range(self.workload.partitions)}
        admin = Admin(self.workload.bootstrap, client_id=self.name, environment=lambda: environment, **CLIENT_SETTINGS)
        async with admin:
            found = await admin.list_offsets(wanted, timeout_ms=5_000)
        return {partition.partition: listed.offset for partition, listed in found.items()}

    @asynccontextmanager
    async def _fetcher(self) -> AsyncGenerator[IdFetcher]:
        environment = self.running.environment
        config = FetchConfig(
            self.workload.bootstrap, client_id=self.name, environment=lambda: environment, **CLIENT_SETTINGS
        )
        settings = FetchSettings(
            isolation_level=self.isolation_level,
            fetch_max_wait_ms=500,
            auto_offset_reset="none",
            request_timeout_ms=config.request_timeout_ms,
            retry_backoff_ms=config.retry_backoff_ms,
            retry_backoff_max_ms=config.retry_backoff_max_ms,
            retry_timeout_ms=None,
        )
        tasks = Tasks(environment.loop)
        cluster = Cluster(config, environment, tasks)
        try:
            await cluster.start()
            async with IdFetcher(cluster, environment, settings) as fetcher:
                yield fetcher
        finally:
            await cluster.close()
            await tasks.close()


def follower(workload: Workload, isolation_level: IsolationLevel = "read_uncommitted") -> Main:
    """Follows all partitions from the beginning, until it is stopped."""

    async def main(running: Running) -> None:
        reader = Reader(workload, running, isolation_level)
        for partition in range(workload.partitions):
            reader.place(partition, 0)
        while not running.is_stopping:
            try:
                await reader.follow()
            except ClientError:
                await running.environment.sleep(RETRY_MS)

    return main


def last_reader(workload: Workload, isolation_level: IsolationLevel = "read_uncommitted") -> Main:
    """Reads all partitions from their beginnings to where they end now, however often it must be tried."""

    async def main(running: Running) -> None:
        reader = Reader(workload, running, isolation_level)
        ends: dict[int, int] = {}
        while True:
            try:
                if not ends:
                    starts = await reader.offsets(EARLIEST)
                    ends = await reader.offsets(LATEST)
                    for partition, offset in starts.items():
                        reader.place(partition, offset, workload.current())
                await reader.read_up_to(ends)
                return
            except ClientError:
                await running.environment.sleep(RETRY_MS)

    return main
