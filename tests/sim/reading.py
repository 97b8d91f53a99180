"""Who reads in a world: our own fetcher, on machines of its own. All it hands out goes to the history.

Readers follow all partitions from the beginning. The last one, `FINAL`, reads when all is repaired and all writing
has ended, from the beginning to the end: the history's last word on what the logs hold.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal

from client.admin.admin import Admin
from client.cluster.cluster import Cluster
from client.errors import ClientError
from client.fetching.config import FetchConfig
from client.fetching.fetch_settings import FetchSettings, Start
from client.fetching.fetched import FetchedBatch
from client.fetching.fetcher import Fetcher
from client.fetching.list_offsets import EARLIEST, LATEST
from client.fetching.positions import OffsetOutOfRange
from client.tasks import Tasks
from client.topic_partition import TopicPartition
from tests.sim.history import Placed, Polled, PollFailed
from tests.sim.machine import Main, Running
from tests.sim.workload import CLIENT_SETTINGS, RETRY_MS, Workload, number_of

FINAL: Final = "final"
POLL_MS: Final = 500.0


class Reader:
    """One reader of one process."""

    def __init__(self, workload: Workload, running: Running) -> None:
        self.workload = workload
        self.world = workload.world
        self.running = running
        self.name = running.machine.name
        self.positions: dict[int, int] = {}

    def place(self, partition: int, offset: int) -> None:
        """Begins a partition at an offset, or goes back there since the broker has told that it must."""
        why: Literal["start", "out of range"] = "out of range" if partition in self.positions else "start"
        self.positions[partition] = offset
        self.world.history.add(Placed(self.world.now_ms, self.name, self.workload.topic, partition, offset, why))

    async def follow(self) -> None:
        """Until the process is to stop. Raises ClientError, after which it may be called again."""
        async with self._fetcher() as fetcher:
            for partition, offset in self.positions.items():
                fetcher.assign(TopicPartition(self.workload.topic, partition), Start.at_offset(offset))
            while not self.running.is_stopping:
                await self._poll(fetcher)

    async def read_up_to(self, ends: Mapping[int, int]) -> None:
        """Raises ClientError, after which it may be called again."""
        async with self._fetcher() as fetcher:
            for partition, end_offset in ends.items():
                start = Start.at_offset(self.positions[partition])
                fetcher.assign(TopicPartition(self.workload.topic, partition), start, end_offset)
            while not fetcher.is_finished:
                await self._poll(fetcher)

    async def _poll(self, fetcher: Fetcher) -> None:
        world = self.world
        asked_ms = world.now_ms
        try:
            batch = await fetcher.next(POLL_MS)
        except ClientError as error:
            world.history.add(PollFailed(world.now_ms, asked_ms, self.name, self.workload.topic, type(error).__name__))
            if isinstance(error, OffsetOutOfRange):
                await self._go_back(error.partition)
            raise
        if batch is not None:
            self._take(batch, asked_ms)

    def _take(self, batch: FetchedBatch, asked_ms: float) -> None:
        world, position = self.world, self.positions[batch.partition]
        records = [(record.offset, number_of(record)) for record in batch.records]
        self.positions[batch.partition] = records[-1][0] + 1
        world.trace.note(self.running.process.name, "polled", batch.partition, *records)
        world.history.add(Polled(world.now_ms, asked_ms, self.name, batch.topic, batch.partition, position, records))

    async def _go_back(self, partition: TopicPartition) -> None:
        """The log ends before the position, or begins behind it."""
        offset = (await self.offsets(LATEST))[partition.partition]
        if offset >= self.positions[partition.partition]:
            offset = (await self.offsets(EARLIEST))[partition.partition]
        self.place(partition.partition, offset)

    async def offsets(self, timestamp: int) -> dict[int, int]:
        """An offset of each partition. Raises ClientError."""
        environment, topic = self.running.environment, self.workload.topic
        wanted = {TopicPartition(topic, index): timestamp for index in range(self.workload.partitions)}
        admin = Admin(self.workload.bootstrap, client_id=self.name, environment=lambda: environment, **CLIENT_SETTINGS)
        async with admin:
            found = await admin.list_offsets(wanted, timeout_ms=5_000)
        return {partition.partition: listed.offset for partition, listed in found.items()}

    @asynccontextmanager
    async def _fetcher(self) -> AsyncGenerator[Fetcher]:
        environment = self.running.environment
        config = FetchConfig(
            self.workload.bootstrap, client_id=self.name, environment=lambda: environment, **CLIENT_SETTINGS
        )
        settings = FetchSettings(
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
            async with Fetcher(cluster, environment, settings) as fetcher:
                yield fetcher
        finally:
            await cluster.close()
            await tasks.close()


def follower(workload: Workload) -> Main:
    """Follows all partitions from the beginning, until it is stopped."""

    async def main(running: Running) -> None:
        reader = Reader(workload, running)
        for partition in range(workload.partitions):
            reader.place(partition, 0)
        while not running.is_stopping:
            try:
                await reader.follow()
            except ClientError:
                await running.environment.sleep(RETRY_MS)

    return main


def last_reader(workload: Workload) -> Main:
    """Reads all partitions from their beginnings to where they end now, however often it must be tried."""

    async def main(running: Running) -> None:
        reader = Reader(workload, running)
        ends: dict[int, int] = {}
        while True:
            try:
                if not ends:
                    starts = await reader.offsets(EARLIEST)
                    ends = await reader.offsets(LATEST)
                    for partition, offset in starts.items():
                        reader.place(partition, offset)
                await reader.read_up_to(ends)
                return
            except ClientError:
                await running.environment.sleep(RETRY_MS)

    return main
