"""A SIGKILL after every single disk operation of creating, enlarging, configuring, emptying and deleting a topic.

`RecordingDisk` keeps a copy of the whole disk after each operation, halves of writes included, with what had been
answered to the client by then. A broker is started on every copy, as after a SIGKILL at that moment, and must hold what
was acknowledged, whole, and nothing of what was deleted; then it works on, and starts once more.
"""

import posixpath
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.checkpoint import LOG_START_OFFSETS, PARTITION_METADATA
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment
from tests.broker.api.producing import produced
from tests.broker.support import ask, batch
from tests.broker.wire import settings

ROOT = "data"
ONE_DIRECTORY = (ROOT,)
TWO_DIRECTORIES = (f"{ROOT}/a", f"{ROOT}/b")
TOPIC_RESOURCE = 2
RETENTION = "retention.ms"


@dataclass(frozen=True)
class Facts:
    """What a client has been told. None: nothing yet, or a request about it is under way and either is true."""

    partitions: int | None = 0
    retention: str | None = ""
    records: int = 0
    log_start: int | None = 0
    topic_id: bytes | None = None
    gone_ids: tuple[bytes, ...] = ()
    """Ids of topics whose deletion was acknowledged."""


Tree = dict[str, "Tree | bytes"]


@dataclass
class Crash:
    tree: Tree
    facts: Facts
    after: str
    """The operation that was the last one."""


class RecordingDisk(MemoryDisk):
    """Keeps what a SIGKILL after each operation would leave. Whole-file writes and removals take the steps that
    `FileDisk` takes."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = Facts()
        self.crashes: list[Crash] | None = None

    def remember(self, operation: str) -> None:
        if self.crashes is not None:
            self.crashes.append(Crash(tree_of(self), self.facts, operation))

    def open(self, path: str, size_bytes: int | None = None) -> File:
        is_new = not self.exists(path)
        file = super().open(path, size_bytes)
        if is_new:
            self.remember(f"open {path}")
        return file

    def write(self, content: Content, data: Buffer) -> None:
        half = len(data) // 2
        super().write(content, memoryview(data)[:half])
        self.remember("half of a write")
        super().write(content, memoryview(data)[half:])
        self.remember("a write")

    def cut(self, content: Content, size_bytes: int) -> None:
        super().cut(content, size_bytes)
        self.remember("a cut")

    def make_dir(self, path: str) -> None:
        is_new = not self.exists(path)
        super().make_dir(path)
        if is_new:
            self.remember(f"make {path}")

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        self.remember(f"rename {source} {target}")

    def remove(self, path: str) -> None:
        super().remove(path)
        self.remember(f"remove {path}")

    def remove_tree(self, path: str) -> None:
        for name in self.list_dir(path):
            below = posixpath.join(path, name)
            if self.is_dir(below):
                self.remove_tree(below)
            else:
                self.remove(below)
        super().remove_tree(path)
        self.remember(f"remove {path}")

    def write_whole(self, path: str, data: Buffer) -> None:
        temporary = path + ".tmp"
        if self.exists(temporary):
            self.remove(temporary)
        file = self.open(temporary)
        file.append([data])
        file.close()
        self.rename(temporary, path)


class InlineEnvironment(Environment):
    """Helper threads' work is done at once, so that the operations have one order."""

    async def run_blocking(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)


def tree_of(disk: MemoryDisk, path: str = ROOT) -> Tree:
    tree: Tree = {}
    for name in disk.list_dir(path):
        below = posixpath.join(path, name)
        tree[name] = tree_of(disk, below) if disk.is_dir(below) else disk.read_whole(below)
    return tree


def disk_of(tree: Tree, path: str = ROOT, disk: MemoryDisk | None = None) -> MemoryDisk:
    disk = MemoryDisk() if disk is None else disk
    disk.make_dir(path)
    for name, entry in tree.items():
        below = posixpath.join(path, name)
        if isinstance(entry, dict):
            disk_of(entry, below, disk)
        else:
            disk.write_whole(below, entry)
    return disk


@asynccontextmanager
async def started(disk: MemoryDisk, data_dirs: Sequence[str]) -> AsyncGenerator[Context]:
    broker = Broker(settings(data_dirs), InlineEnvironment(), disk)
    await broker.start()
    try:
        yield broker.context
    finally:
        await broker.stop()


# -- what is done -----------------------------------------------------------------------------------------------------


async def create(context: Context, partitions: int = 2, retention: str = "") -> ErrorCode:
    configs = [CreatableTopicConfig(name=RETENTION, value=retention)] if retention else []
    topic = CreatableTopic(
        name="orders", num_partitions=partitions, replication_factor=1, assignments=[], configs=configs
    )
    answer = await ask(context, CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    return ErrorCode(answer.topics[0].error_code)


async def delete(context: Context) -> ErrorCode:
    answer = await ask(context, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=10_000), 5)
    return ErrorCode(answer.responses[0].error_code)


async def enlarge(context: Context, count: int) -> ErrorCode:
    topic = CreatePartitionsTopic(name="orders", count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False)
    return ErrorCode((await ask(context, request, 3)).results[0].error_code)


async def configure(context: Context, retention: str) -> ErrorCode:
    config = AlterableConfig(name=RETENTION, config_operation=0, value=retention)
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name="orders", configs=[config])
    answer = await ask(context, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    return ErrorCode(answer.responses[0].error_code)


async def empty(context: Context, offset: int) -> ErrorCode:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="orders", partitions=[partition])
    answer = await ask(context, DeleteRecordsRequest(topics=[topic], timeout_ms=10_000), 2)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def append(context: Context, count: int) -> ErrorCode:
    (answer,) = await produced(context, (0, batch(*[b"x"] * count)))
    return ErrorCode(answer.error_code)


@dataclass
class Flow:
    """Steps, each with what is unknown while it runs, and what is known once it was answered."""

    disk: RecordingDisk
    context: Context
    steps: list[str] = field(default_factory=list[str])

    async def do(self, work: Awaitable[ErrorCode], during: Facts, after: Facts) -> None:
        self.disk.facts = during
        assert await work == ErrorCode.NONE
        topic = self.context.metadata.image.topics.get("orders")
        gone = during.gone_ids
        if topic is None and self._last_id is not None:
            gone = (*gone, self._last_id)
        self._last_id = None if topic is None else topic.topic_id
        self.disk.facts = Facts(
            after.partitions, after.retention, after.records, after.log_start, self._last_id, gone_ids=gone
        )
        self.disk.remember("the answer")

    _last_id: bytes | None = None


async def flow(disk: RecordingDisk, data_dirs: Sequence[str]) -> None:
    """A topic created, filled, enlarged, configured, emptied, deleted, created again, and deleted again."""
    async with started(disk, data_dirs) as context:
        disk.crashes = []
        run = Flow(disk, context)
        both = Facts(None, None)
        await run.do(create(context, 2, "1000"), both, Facts(2, "1000"))
        await run.do(append(context, 3), disk.facts, Facts(2, "1000", 3))
        await run.do(enlarge(context, 4), with_(disk.facts, partitions=None), Facts(4, "1000", 3))
        await run.do(configure(context, "5000"), with_(disk.facts, retention=None), Facts(4, "5000", 3))
        await run.do(empty(context, 2), with_(disk.facts, log_start=None), Facts(4, "5000", 3, 2))
        gone = with_(both, records=0, log_start=None)
        await run.do(delete(context), gone, Facts())
        await run.do(create(context, 3), with_(both, gone_ids=disk.facts.gone_ids), Facts(3))
        await run.do(append(context, 1), disk.facts, Facts(3, "", 1))
        await run.do(delete(context), with_(gone, gone_ids=disk.facts.gone_ids), Facts())


def with_(facts: Facts, **changes: Any) -> Facts:
    return Facts(**{**facts.__dict__, **changes})


# -- what must hold ---------------------------------------------------------------------------------------------------


def check(context: Context, facts: Facts) -> None:
    """The topic is wholly there or wholly absent, as was acknowledged, on disk as in the metadata."""
    topic = context.metadata.image.topics.get("orders")
    if facts.partitions is not None:
        assert (0 if topic is None else len(topic.partitions)) == facts.partitions
    found = [
        name
        for place in context.partitions.directories
        for name in context.disk.list_dir(place.path)
        if name.startswith("orders-")
    ]
    directories = set(found)
    assert len(directories) == len(found), "no partition is in two places"
    ours = {name for name in directories if name.rpartition("-")[2].isdigit()}
    assert not [name for name in directories if name.endswith("-delete")], "the start finishes deletions"
    if topic is None:
        assert ours == set()
        assert len(context.partitions) == 0
        return
    assert topic.topic_id not in facts.gone_ids
    assert ours == {f"orders-{index}" for index in range(len(topic.partitions))}
    assert len(context.partitions) == len(topic.partitions)
    for index, state in enumerate(topic.partitions):
        partition = context.partitions.leader("orders", index)
        assert partition.topic_id == state.topic_id == topic.topic_id
        assert partition.leader_epoch == state.leader_epoch
        assert context.disk.exists(f"{partition.log.directory}/{PARTITION_METADATA}")
    if facts.retention is not None:
        assert topic.configs.get(RETENTION, "") == facts.retention
    else:
        assert topic.configs.get(RETENTION, "") in ("", "1000", "5000")
    log = context.partitions.leader("orders", 0).log
    assert log.log_end_offset >= facts.records
    if facts.log_start is not None:
        assert log.log_start_offset == facts.log_start
    if facts.topic_id == topic.topic_id and facts.records:
        data = bytes(log.fetch(log.log_start_offset, 1 << 20, log.log_end_offset, True).records)
        assert data, "what was acknowledged can be read"


async def works_on(context: Context) -> bytes:
    """A topic with the same name, created now if there is none, is empty then, and takes records."""
    if "orders" not in context.metadata.image.topics:
        assert await create(context) == ErrorCode.NONE
        log = context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert await append(context, 1) == ErrorCode.NONE
    return context.metadata.image.topics["orders"].topic_id


def distinct(crashes: Sequence[Crash]) -> Iterator[Crash]:
    """One of those that follow one another with the same disk and the same facts."""
    last: Crash | None = None
    for crash in crashes:
        if last is None or (crash.tree, crash.facts) != (last.tree, last.facts):
            yield crash
        last = crash


@pytest.mark.parametrize("data_dirs", [ONE_DIRECTORY, TWO_DIRECTORIES], ids=["one directory", "two"])
async def test_a_kill_after_any_disk_operation_leaves_the_topic_whole_or_absent(
    caplog: pytest.LogCaptureFixture, data_dirs: Sequence[str]
) -> None:
    disk = RecordingDisk()
    await flow(disk, data_dirs)
    crashes = list(distinct(disk.crashes or []))
    assert len(crashes) > 120
    operations = " ".join(crash.after for crash in crashes)
    for seen in (
        "half of a write",
        "-delete",
        "remove",
        f"rename {data_dirs[0]}/{LOG_START_OFFSETS}.tmp",
        "the answer",
    ):
        assert seen in operations, seen
    for number, crash in enumerate(crashes):
        caplog.clear()
        after = disk_of(crash.tree)
        try:
            async with started(after, data_dirs) as context:
                check(context, crash.facts)
                ended = context.partitions.leader("orders", 0).log.log_end_offset if len(context.partitions) else 0
                topic_id = await works_on(context)
                before_second = tree_of(after)
            async with started(disk_of(before_second), data_dirs) as context:  # killed again, with the new topic there
                topic = context.metadata.image.topics["orders"]
                assert topic.topic_id == topic_id
                assert context.partitions.leader("orders", 0).log.log_end_offset == ended + 1
            assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
        except BaseException as error:
            error.add_note(f"after operation {number} of {len(crashes)}: {crash.after}; known: {crash.facts}")
            raise
