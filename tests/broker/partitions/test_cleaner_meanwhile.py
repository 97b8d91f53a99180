"""Compaction through the broker, and what happens while a round is in its helper thread.

On virtual time; the environment of the cleaner holds a helper's work up, before or after it, until the test says so.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.compaction_messages import kind_of
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.partitions.cleaner import Cleaner, Throttle
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from tests.broker.api.fetching import fetched, offsets, request, wanted
from tests.broker.api.producing import produced
from tests.broker.keeping import Read, read
from tests.broker.log.compacted_logs import KeyValue, data_batch
from tests.broker.log.logs import T0
from tests.broker.support import DATA_DIR, append, make_topic, running_broker
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
NO_SETTINGS: Mapping[str, str] = {}
STEPS = ["BuildMap", "WriteGroup", "sync_dir"]


def name_of(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What a helper thread does: a function by its name, and a worker by what it is asked."""
    if args and isinstance(args[0], bytes):
        return kind_of(args[0]).__name__
    return getattr(function, "__name__", "")


class Gate(VirtualEnvironment):
    """Holds up the work of helper threads with this name, before it is done or after."""

    def __init__(self) -> None:
        super().__init__()
        self.held = ""
        self.after = False
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    def hold(self, name: str, *, after: bool) -> None:
        self.held, self.after = name, after

    async def run_blocking(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        is_held = name_of(function, args) == self.held
        if is_held and not self.after:
            await self._wait()
        result = function(*args, **kwargs)
        if is_held and self.after:
            await self._wait()
        return result

    async def _wait(self) -> None:
        self.held = ""
        self.reached.set()
        await self.open.wait()


@dataclass
class Running:
    context: Context
    gate: Gate
    cleaner: Cleaner

    async def topic(self, name: str = "orders", configs: Mapping[str, str] = COMPACT) -> Partition:
        await make_topic(self.context, name, configs=configs)
        self.partition(name).log.config = LogConfig(segment_bytes=160, index_interval_bytes=100)
        return self.partition(name)

    def partition(self, name: str = "orders") -> Partition:
        return self.context.partitions.leader(name, 0)

    def read(self, name: str = "orders") -> Read:
        return read(self.partition(name).log)

    async def fill(self, count: int = 20, name: str = "orders") -> None:
        for number in range(count):
            append(self.partition(name), data_batch(0, (b"key-%d" % (number % 3), b"%d" % number), timestamp_ms=T0))
        await asyncio.sleep(1)  # what was rolled is synced by then

    async def held(self, name: str, *, after: bool) -> asyncio.Task[None]:
        """A round that stands there."""
        self.gate.hold(name, after=after)
        task = asyncio.ensure_future(self.cleaner.clean_what_is_due())
        await self.gate.reached.wait()
        return task

    async def delete(self, name: str = "orders") -> None:
        topic = self.context.metadata.image.topics[name]
        await self.context.metadata.applied(await delete_topic(self.context.metadata.store, topic))

    @property
    def names(self) -> list[str]:
        return self.context.disk.list_dir(f"{DATA_DIR}/orders-0")


@asynccontextmanager
async def running(disk: MemoryDisk | None = None, settings: Mapping[str, str] = NO_SETTINGS) -> AsyncGenerator[Running]:
    async with running_broker(settings, disk=disk) as context:
        gate = Gate()
        gate.jump_ms(T0 - gate.now_ms())
        yield Running(context, gate, Cleaner(context.disk, gate, context.config, context.partitions))


def leftovers(broker: Running) -> list[str]:
    return [name for name in broker.names if name.endswith((".cleaned", ".swap"))]


EVERYWHERE = pytest.mark.parametrize(
    ("step", "after"), [(step, after) for step in STEPS for after in (False, True)], ids=lambda value: str(value)
)


# ------------------------------------------------------------------------------------------------- through the broker
async def test_what_was_produced_is_compacted_and_fetched() -> None:
    async with running() as broker:
        await broker.topic()
        for number in range(20):
            record: KeyValue = (b"key-%d" % (number % 3), b"%d" % number)
            (answer,) = await produced(
                broker.context, (0, data_batch(0, record, timestamp_ms=T0, producer=(7, 0, number)))
            )
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)
        await asyncio.sleep(1)
        await broker.cleaner.clean_what_is_due()
        for offset in (0, 7, 15):
            (answer_,) = await fetched(broker.context, request(wanted(offset=offset)))
            assert offsets(answer_)[0] == 15
            assert (answer_.log_start_offset, answer_.high_watermark) == (0, 20)
        (again,) = await produced(
            broker.context, (0, data_batch(0, (b"key-1", b"19"), timestamp_ms=T0, producer=(7, 0, 19)))
        )
        assert again.base_offset == 19, "a duplicate is known"
        (keyless,) = await produced(broker.context, (0, data_batch(0, (None, b"x"), timestamp_ms=T0)))
        assert keyless.error_code == ErrorCode.INVALID_RECORD


async def test_the_dirtiest_log_goes_first_and_all_have_their_turn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "odradek.broker.partitions.cleaner")
    async with running() as broker:
        for name in ("half", "clean", "full"):
            await broker.topic(name)
        await broker.fill(name="half")
        await broker.cleaner.clean_what_is_due()
        caplog.clear()
        await broker.fill(4, name="half")
        await broker.fill(name="full")
        await broker.cleaner.clean_what_is_due()
        lines = [record.getMessage().partition(":")[0] for record in caplog.records]
        assert lines == [f"{DATA_DIR}/full-0", f"{DATA_DIR}/half-0"]


async def test_a_log_that_cannot_be_compacted_is_left_alone_and_named_once(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    async with running(disk) as broker:
        for name in ("bad", "good"):
            await broker.topic(name)
            await broker.fill(name=name)
        path = f"{DATA_DIR}/bad-0/{4:020d}.log"
        content = bytearray(disk.read_whole(path))
        content[-1] ^= 1
        file = disk.open(path)
        file.truncate(0)
        file.append([content])
        before = disk.sizes(f"{DATA_DIR}/bad-0")
        for _ in range(3):
            await broker.cleaner.clean_what_is_due()
            await broker.fill(name="bad", count=3)
        assert caplog.text.count("the batch at offset 5 cannot be compacted") == 1
        assert "does not have the checksum" in caplog.text
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert broker.read("good").offsets == [15, 16, 17, 18, 19]
        after = disk.sizes(f"{DATA_DIR}/bad-0")
        assert {name: after[name] for name in before if name.endswith(".log")} == {
            name: size for name, size in before.items() if name.endswith(".log")
        } | {f"{18:020d}.log": after[f"{18:020d}.log"]}


# --------------------------------------------------------------------------------------------------------- meanwhile
@EVERYWHERE
async def test_appends_and_rolls_meanwhile_are_all_there(step: str, after: bool) -> None:
    async with running() as broker:
        await broker.topic()
        await broker.fill()
        task = await broker.held(step, after=after)
        await broker.fill(9)
        broker.gate.open.set()
        await task
        assert broker.read().offsets[-3:] == [26, 27, 28]
        assert broker.read().values == {b"key-0": b"6", b"key-1": b"7", b"key-2": b"8"}
        assert broker.partition().log.base_offsets[-1] == 28
        assert leftovers(broker) == []


@EVERYWHERE
@pytest.mark.parametrize("offset", [1, 5, 17, 19, 20])
async def test_records_deleted_meanwhile_do_not_come_back(offset: int, step: str, after: bool) -> None:
    async with running() as broker:
        partition = await broker.topic()
        await broker.fill()
        task = await broker.held(step, after=after)
        await broker.context.partitions.delete_records(partition, offset)
        broker.gate.open.set()
        await task
        found = broker.read()
        assert partition.log.log_start_offset == offset
        assert min(found.offsets, default=offset) >= offset
        assert found.values == {b"key-%d" % (at % 3): b"%d" % at for at in range(max(offset, 17), 20)}
        assert leftovers(broker) == []
        await broker.fill(4)
        await broker.cleaner.clean_what_is_due()
        assert broker.read().values == {b"key-0": b"3", b"key-1": b"1", b"key-2": b"2"}


@EVERYWHERE
@pytest.mark.parametrize("comes_back", [False, True])
async def test_a_topic_deleted_meanwhile_takes_nothing_along(
    comes_back: bool, step: str, after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does it, or its checkpoint, get into the way of another one that has its name by then."""
    async with running() as broker:
        for name in ("orders", "other"):
            await broker.topic(name)
            await broker.fill(name=name)
        await broker.context.partitions.delete_records(broker.partition("other"), 18)
        task = await broker.held(step, after=after)
        await broker.delete()
        if comes_back:
            await broker.topic()
            await broker.fill(5)
        broker.gate.open.set()
        await task
        assert broker.read("other").offsets == [18, 19]
        if comes_back:
            assert broker.read().values == {b"key-0": b"3", b"key-1": b"4", b"key-2": b"2"}
            assert leftovers(broker) == []
            await broker.cleaner.clean_what_is_due()
            assert broker.read().offsets == [1, 2, 3, 4]
            assert broker.context.partitions.directories.first.checkpoints.cleaned["orders", 0] == 4
        else:
            assert ("orders", 0) not in broker.context.partitions.directories.first.checkpoints.cleaned
        assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []


@EVERYWHERE
@pytest.mark.parametrize("offset", [0, 4, 5, 7])
async def test_a_log_cut_meanwhile_and_filled_again_keeps_what_it_holds(
    offset: int, step: str, after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an unclean election. Its segments have the base offsets of those that were read, and other records."""
    async with running() as broker:
        partition = await broker.topic()
        await broker.fill()
        bases = list(partition.log.segments.base_offsets)
        task = await broker.held(step, after=after)
        partition.log.truncate_to(offset)
        for number in range(20 - offset):
            record: KeyValue = (b"key-%d" % number, b"other-%d" % number)
            append(partition, data_batch(0, record, timestamp_ms=T0))
        assert set(bases) & set(partition.log.segments.base_offsets)
        broker.gate.open.set()
        await task
        kept = {b"key-%d" % number: b"other-%d" % number for number in range(20 - offset)}
        found = broker.read().values
        assert {key: found[key] for key in kept} == kept
        assert leftovers(broker) == []
        assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
        await broker.cleaner.clean_what_is_due()
        assert {key: broker.read().values[key] for key in kept} == kept


async def test_how_far_it_came_is_known_as_soon_as_the_last_segment_is_in_place() -> None:
    """A log that is cut later than that lowers it again."""
    async with running() as broker:
        await broker.topic()
        await broker.fill()
        task = await broker.held("remove_cleaned", after=False)
        assert broker.context.partitions.directories.first.checkpoints.cleaned["orders", 0] == 18
        broker.gate.open.set()
        await task


@EVERYWHERE
async def test_a_broker_that_stops_meanwhile_finds_everything_at_its_next_start(step: str, after: bool) -> None:
    disk = MemoryDisk()
    async with running(disk) as broker:
        await broker.topic()
        await broker.fill()
        task = await broker.held(step, after=after)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        directory, end = (
            broker.partition().log.directory,
            dict(broker.context.partitions.directories.first.checkpoints.cleaned),
        )
    assert end == {}
    assert directory == f"{DATA_DIR}/orders-0"
    log = reopened(disk)
    assert log.values == {b"key-0": b"18", b"key-1": b"19", b"key-2": b"17"}
    assert log.offsets in (list(range(20)), [15, 16, 17, 18, 19])
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in disk.list_dir(directory))


def reopened(disk: MemoryDisk) -> Read:
    """The log as a start finds it."""
    return read(Log.open(disk, f"{DATA_DIR}/orders-0", LogConfig(), T0, is_clean=True))


async def test_options_that_change_meanwhile_count_from_the_next_round() -> None:
    async with running() as broker:
        partition = await broker.topic()
        await broker.fill()
        task = await broker.held("WriteGroup", after=False)
        partition.configure(broker.context.config.topic({"cleanup.policy": "delete"}))
        broker.gate.open.set()
        await task
        assert broker.read().offsets == [15, 16, 17, 18, 19]
        await broker.fill(6)
        await broker.cleaner.clean_what_is_due()
        assert broker.read().offsets == [15, *range(16, 26)]


async def test_a_pause_of_the_compaction_is_not_made_up_for() -> None:
    """100 bytes a second, and the device stands still for a minute in between."""
    environment = VirtualEnvironment()
    throttle = Throttle(environment, 100)
    began_ms = environment.monotonic_ms()
    await throttle.moved(200)
    assert environment.monotonic_ms() - began_ms == pytest.approx(2_000)
    await asyncio.sleep(60)
    await throttle.moved(300)
    began_ms = environment.monotonic_ms()
    await throttle.moved(900)
    assert environment.monotonic_ms() - began_ms == pytest.approx(6_000)
