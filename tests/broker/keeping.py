"""What the tests of upkeep share: a broker with one topic, whose clock and helper threads the test holds in its hands.

    kept = Kept({"cleanup.policy": "compact"}, segment_bytes=400)
    kept.append((b"key", b"value"))
    kept.clean()                         # what is due, to its end
    kept.restart()                       # after a clean stop; `kill_and_start` for another end

It runs on a loop of its own with virtual time, and only while one of its methods does; what a helper thread would do is
done at once. Its wall clock is `environment.time_ms`. `Read` is what a consumer finds, from the log's start to its end.
"""

import asyncio
import copy
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar, cast
from weakref import finalize

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.topics import create_topic
from odradek.broker.config.broker_config import BrokerConfig, TopicConfig
from odradek.broker.directories.checkpoints import Checkpoints
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.partitions.cleaner import Cleaner
from odradek.broker.partitions.maintenance import Maintenance
from odradek.broker.partitions.table import Partitions
from odradek.broker.replica.leadership import Leadership
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.batches.records import Record, iterate_records
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks, running_tasks
from tests.broker.alone import hosted, roles_alone
from tests.broker.log.compacted_logs import KeyValue, data_batch
from tests.broker.log.logs import T0, read_all
from tests.broker.support import append
from tests.client.virtual_time import VirtualTimeLoop

R = TypeVar("R")

DATA_DIR = "data"
TOPIC = "orders"
DIRECTORY = f"{DATA_DIR}/{TOPIC}-0"
TOPIC_ID = bytes(range(16))
NODE_ID = 0
COMPACT: Mapping[str, str] = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
DELETE_RETENTION_MS = 1000
COMPACTED: Mapping[str, str] = {**COMPACT, "delete.retention.ms": str(DELETE_RETENTION_MS)}
NONE: Mapping[str, str] = {}


class HandEnvironment(Environment):
    """The wall clock is `time_ms`. Helper threads' work is done at once. Pauses are written down in `slept_ms`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, time_ms: int) -> None:
        super().__init__(loop)
        self.time_ms = time_ms
        self.slept_ms: list[float] = []

    def now_ms(self) -> int:
        return self.time_ms

    def give_way(self) -> None:
        return

    async def sleep(self, delay_ms: float) -> None:
        self.slept_ms.append(delay_ms)
        await super().sleep(delay_ms)

    async def run_blocking(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


class WatchedTasks(Tasks):
    """A process that dies does so in whatever task: `death` is what it died of."""

    death: BaseException | None = None

    def start(self, coroutine: Coroutine[Any, Any, R], name: str) -> "asyncio.Task[R]":
        task = super().start(coroutine, name)
        task.add_done_callback(self._look)
        return task

    def _look(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Exception):
            self.death = error


class Read(NamedTuple):
    """What stands in a log."""

    batches: list[bytes]
    records: list[Record]

    @property
    def headers(self) -> list[BatchHeader]:
        return [read_header(data) for data in self.batches]

    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self.records]

    @property
    def values(self) -> dict[bytes | None, bytes | None]:
        """Of each key the newest."""
        return {record.key: record.value for record in self.records}


def read(log: Log) -> Read:
    """Read as a consumer does. Offsets only increase, and no batch comes twice."""
    data, batches, position = read_all(log), list[bytes](), 0
    last_offset = -1
    while position < len(data):
        header = read_header(data, position)
        assert header.base_offset > last_offset, "offsets increase"
        last_offset = header.last_offset
        batches.append(data[position : position + header.size_bytes])
        position += header.size_bytes
    return Read(batches, [record for batch in batches for record in iterate_records(batch)])


async def image_of(configs: Mapping[str, str], leader_epoch: int) -> ClusterImage:
    """The metadata: one topic with one partition, led here."""
    store = MemoryStore()
    state = PartitionState(TOPIC_ID, (NODE_ID,), (NODE_ID,), NODE_ID, leader_epoch)
    await create_topic(store, TOPIC, TOPIC_ID, [state], dict(configs))
    return ClusterImage.from_snapshot(await store.read("/"))


def with_segment_bytes(config: TopicConfig, segment_bytes: int) -> TopicConfig:
    """The same options, with less than `segment.bytes` may be."""
    changed = copy.copy(config)
    changed.__dict__["segment_bytes"] = segment_bytes
    return changed


def abandon(loop: VirtualTimeLoop) -> None:
    """Tests need not end what they began. Another loop may be running here, so that nothing can be awaited."""
    for task in (*asyncio.all_tasks(loop), *running_tasks(loop)):
        cast(Any, task)._log_destroy_pending = False
        cast(Any, task.get_coro()).close()
    loop.close()


class Kept:
    """A broker with the topic `orders` of one partition on a disk."""

    def __init__(
        self,
        configs: Mapping[str, str] = COMPACT,
        settings: Mapping[str, str] = NONE,
        *,
        disk: Disk | None = None,
        data_dir: str = DATA_DIR,
        segment_bytes: int = 1 << 20,
        group_bytes: int | None = None,
        index_interval_bytes: int = 100,
        time_ms: int = T0,
    ) -> None:
        """`group_bytes`: how large compaction makes a segment, where that is not `segment_bytes`."""
        self.configs = configs
        self.disk = MemoryDisk() if disk is None else disk
        self.data_dir = data_dir
        self.directory = f"{data_dir}/{TOPIC}-0"
        self.loop = VirtualTimeLoop(seconds_max=1e9)
        finalize(self, abandon, self.loop)
        self.environment = HandEnvironment(self.loop, time_ms)
        self.config = BrokerConfig(settings)
        self.log_config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=index_interval_bytes)
        self._group_bytes = segment_bytes if group_bytes is None else group_bytes
        self.syncs_rolled = True
        """Whether a helper thread gets to the segments that were rolled, to sync them."""
        self.leader_epoch = -1
        self.disk.make_dir(data_dir)
        self.tasks = WatchedTasks(self.loop)
        self.start()

    def start(self) -> None:
        """A process begins; the last one has come to its end."""
        self.leader_epoch += 1
        self.tasks = WatchedTasks(self.loop)
        roles = roles_alone(NODE_ID, self.environment, self.tasks)
        self.partitions = Partitions(
            DataDirectories(self.disk, [self.data_dir], self.environment, self.tasks),
            hosted(self.environment, self.tasks, NODE_ID),
            self.config,
            roles,
            Leadership(),
        )
        self.partitions.load(self.run(image_of(self.configs, self.leader_epoch)))
        self.upkeep = Maintenance(self.disk, self.environment, self.tasks, self.config, self.partitions)
        self.cleaner = Cleaner(self.disk, self.environment, self.config, self.partitions)
        self.partition.configure(with_segment_bytes(self.partition.config, self._group_bytes))
        self.log.config = self.log_config

    @property
    def partition(self) -> Partition:
        return self.partitions.leader(TOPIC, 0)

    @property
    def log(self) -> Log:
        return self.partition.log

    @property
    def read(self) -> Read:
        return read(self.log)

    @property
    def names(self) -> list[str]:
        return self.disk.list_dir(self.directory)

    @property
    def checkpoints(self) -> Checkpoints:
        """Those of the data directory."""
        return self.partitions.directories.first.checkpoints

    @property
    def checkpoint(self) -> int | None:
        """The cleaner's."""
        return self.checkpoints.cleaned.get((TOPIC, 0))

    # -- what is done ---------------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Runs the loop until this has come to its end."""
        result = self.loop.run_until_complete(coroutine)
        if self.tasks.death is not None:
            raise self.tasks.death
        return result

    def pass_s(self, seconds: float) -> None:
        """So much virtual time passes: pauses end. The wall clock is another one."""
        self.run(asyncio.sleep(seconds))

    def append(self, *records: KeyValue, timestamp_ms: int | None = None, **more: Any) -> int:
        """Appends one batch as the leader, and returns its base offset."""
        time_ms = self.environment.time_ms if timestamp_ms is None else timestamp_ms
        return self.append_batch(data_batch(0, *records, timestamp_ms=time_ms, **more))

    def append_batch(self, data: bytes) -> int:
        base_offset = append(self.partition, data)
        if len(self.tasks):
            if not self.syncs_rolled:
                self._cancel("sync ")
            self.run(self.loop.settle())
        return base_offset

    def _cancel(self, name: str) -> None:
        for task in running_tasks(self.loop):
            if task.get_name().startswith(name):
                task.cancel()

    def roll(self) -> None:
        self.log.roll(self.environment.time_ms)

    def clean(self) -> None:
        """Compacts what is due. What was replaced goes with `remove_retired`."""
        self.run(self.cleaner.clean_what_is_due())

    def retain(self) -> None:
        """Deletes what is not retained any more; its files go after their delay."""
        self.run(self.upkeep.delete_old_segments())

    def remove_retired(self) -> None:
        """With the delay."""
        self.upkeep.remove_retired(self.partition)
        self.pass_s(self.partition.config.file_delete_delay_ms / 1000 + 1)

    def settle(self) -> None:
        """Writes down up to where the log is on the device."""
        self.run(self.upkeep.write_recovery_points())

    def delete_records(self, offset: int) -> None:
        self.run(self.partitions.delete_records(self.partition, offset))

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self.run(self.tasks.close())
        self.partitions.close()

    def kill(self) -> None:
        """SIGKILL: what was written stays, and nobody closes anything."""
        self.tasks.death = None
        self.run(self.tasks.close())

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill_and_start(self) -> None:
        self.kill()
        self.start()


def compacted(*records: KeyValue, segment_bytes: int = 160, settings: Mapping[str, str] = NONE) -> Kept:
    """A compacted topic with a batch for each record, two in a segment, of which the last one is active.

    Compaction makes one segment of all.
    """
    kept = Kept(COMPACTED, settings, segment_bytes=segment_bytes, group_bytes=1 << 20)
    for record in records:
        kept.append(record)
    return kept


def keyed(count: int, keys: int = 3) -> list[KeyValue]:
    return [(b"key-%d" % (number % keys), b"%d" % number) for number in range(count)]
