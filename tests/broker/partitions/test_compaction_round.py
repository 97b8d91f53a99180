"""A round as it is asked of a worker: which worker is started, what becomes of its answers, and what is left.

The environment starts workers that the test has made up; the last tests have the real process.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.compaction_messages import (
    Counts,
    MapBuilt,
    Nonce,
    Ready,
    Round,
    WriteGroup,
    failed,
    group_written,
    packed,
)
from odradek.broker.log.segments import Standing
from odradek.broker.partitions.compaction_round import CompactionRounds, SegmentGone
from odradek.broker.version import VERSION
from odradek.protocol.codec.schema import Message
from odradek.runtime.environment import Environment
from odradek.runtime.worker import WorkerEnded, WorkerUnavailable
from odradek.runtime.worker_process import WorkerProcess
from tests.broker.log.logs import DIRECTORY, small_log

VERSION_OF_ANOTHER = "9.9"


class VisibleDisk(MemoryDisk):
    @property
    def is_visible_outside(self) -> bool:
        return True


class MadeUp:
    """Answers what it was given."""

    def __init__(self, answers: list[bytes], greeting: bytes) -> None:
        self.greeting = greeting
        self.answers = answers
        self.is_closed = False

    async def ask(self, question: bytes) -> bytes:
        return self.answers.pop(0)

    async def close(self) -> None:
        self.is_closed = True


class World(Environment):
    """Starts processes as `start` does, threads as they are."""

    def __init__(self, start: Callable[[], MadeUp]) -> None:
        super().__init__()
        self.start = start
        self.started: list[bool] = []

    async def start_worker(self, module: str, serve: Any, disk: Any, *, in_process: bool) -> Any:
        self.started.append(in_process)
        if in_process:
            return self.start()
        return await super().start_worker(module, serve, disk, in_process=False)


def ready(*answers: Message | bytes, version: str = "") -> Callable[[], MadeUp]:
    given = [packed(answer) if isinstance(answer, Message) else answer for answer in answers]
    return lambda: MadeUp(given, packed(Ready(program_version=version or VERSION)))


def refused() -> MadeUp:
    raise WorkerUnavailable("the platform has no processes")


def a_round(nonce: Nonce) -> Round:
    return Round(DIRECTORY, nonce, [], {}, 0, 10, 20, 0, 0, 1, 1 << 20, 0.9, 1 << 20)


async def asked(world: World, *, writes: bool = False) -> Any:
    async with CompactionRounds(VisibleDisk(), world).begin(DIRECTORY) as round_:
        if not writes:
            return await round_.build_map(a_round(round_.nonce))
        log, _ = small_log()
        segment = log.segments[0]
        return await round_.write_group([Standing(segment, 0)]), round_


# ------------------------------------------------------------------------------------------------------------- answers
async def test_its_answers_are_taken() -> None:
    built = MapBuilt(end_offset=15, bytes_read=100)
    assert await asked(World(ready(built))) == built
    counts = Counts(5, 4, 3, 2, 1)
    written, round_ = await asked(World(ready(group_written(77, [".log", ".index"], counts))), writes=True)
    assert (written.base_offset, written.replaces, written.size_bytes) == (0, [0], 77)
    assert (written.suffixes, written.nonce, round_.counts) == ([".log", ".index"], round_.nonce, counts)


async def test_what_it_failed_with_is_raised() -> None:
    with pytest.raises(SegmentGone, match="gone: 'x'"):
        await asked(World(ready(failed(FileNotFoundError(2, "gone", "x")))))
    with pytest.raises(OSError, match="full") as raised:
        await asked(World(ready(failed(OSError(28, "full", "x")))), writes=True)
    assert not isinstance(raised.value, SegmentGone)


@pytest.mark.parametrize("end_offset", [9, 21, -1])
async def test_a_map_that_ends_where_it_cannot_is_nonsense(end_offset: int) -> None:
    with pytest.raises(WorkerEnded, match=f"a map up to offset {end_offset}"):
        await asked(World(ready(MapBuilt(end_offset=end_offset, bytes_read=0))))


@pytest.mark.parametrize("answer", [b"", b"\x00", b"hello, world", packed(WriteGroup(base_offsets=[1]))])
@pytest.mark.parametrize("writes", [False, True])
async def test_an_answer_that_nobody_understands_is_nonsense(answer: bytes, writes: bool) -> None:
    with pytest.raises(WorkerEnded, match="its answer cannot be understood"):
        await asked(World(ready(answer)), writes=writes)


async def test_files_that_no_segment_has_are_nonsense() -> None:
    answer = group_written(1, [".log"], Counts(0, 0, 0, 0, 0))
    answer.suffixes = [1]
    with pytest.raises(WorkerEnded, match="its answer cannot be understood"):
        await asked(World(ready(answer)), writes=True)


# ---------------------------------------------------------------------------------------------------- which is started
async def test_files_in_memory_are_compacted_in_helper_threads() -> None:
    world = World(refused)
    async with CompactionRounds(MemoryDisk(), world).begin(DIRECTORY):
        assert world.started == [False]


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (refused, "the platform has no processes"),
        (ready(version=VERSION_OF_ANOTHER), "what is installed has become 9.9 since it was started; start it again"),
        (lambda: MadeUp([], b"Python 3.11"), "says what nobody understands"),
    ],
)
async def test_where_no_process_works_threads_do_and_it_is_said_once(
    start: Callable[[], MadeUp], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(start)
    rounds = CompactionRounds(VisibleDisk(), world)
    for _ in range(3):
        async with rounds.begin(DIRECTORY) as round_:
            assert (await round_.build_map(a_round(round_.nonce))).end_offset == 10
    assert world.started == [True, False] * 3
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert why in record.getMessage()


async def test_a_worker_is_closed_however_its_round_ends() -> None:
    made = ready(b"")()
    with pytest.raises(WorkerEnded):
        await asked(World(lambda: made))
    assert made.is_closed
    other = ready(version=VERSION_OF_ANOTHER)()
    async with CompactionRounds(VisibleDisk(), World(lambda: other)).begin(DIRECTORY):
        assert other.is_closed


# ----------------------------------------------------------------------------------------------------- what is left
@pytest.mark.parametrize("fails", [False, True])
async def test_the_files_of_a_round_go_with_it_and_no_others(fails: bool) -> None:
    disk = MemoryDisk()
    disk.make_dir(DIRECTORY)
    kept = [f"{0:020d}.log", f"{0:020d}.log.fedcba9876543210.cleaned", f"{0:020d}.log.swap"]
    for name in kept:
        disk.write_new(f"{DIRECTORY}/{name}", [b"x"])

    async def work() -> None:
        async with CompactionRounds(disk, Environment()).begin(DIRECTORY) as round_:
            for suffix in (".log", ".index"):
                disk.write_new(f"{DIRECTORY}/{0:020d}{suffix}.{round_.nonce}.cleaned", [b"x"])
            if fails:
                raise asyncio.CancelledError

    (result,) = await asyncio.gather(work(), return_exceptions=True)
    assert isinstance(result, asyncio.CancelledError) == fails
    assert disk.list_dir(DIRECTORY) == sorted(kept)


async def test_rounds_have_names_of_their_own_and_a_directory_may_be_gone() -> None:
    rounds = CompactionRounds(MemoryDisk(), Environment())
    nonces: set[str] = set()
    for _ in range(20):
        async with rounds.begin("data/no-such-0") as round_:
            assert len(round_.nonce) == 16
            nonces.add(round_.nonce)
    assert len(nonces) == 20


# --------------------------------------------------------------------------------------------------------- for real
async def test_a_real_process_does_a_round_and_is_gone(tmp_path: Path) -> None:
    rounds = CompactionRounds(FileDisk(), Environment())
    async with rounds.begin(str(tmp_path)) as round_:
        worker = round_._worker  # pyright: ignore[reportPrivateUsage]
        assert isinstance(worker, WorkerProcess)
        assert (await round_.build_map(a_round(round_.nonce))).end_offset == 10
    with pytest.raises(ProcessLookupError):
        os.kill(worker.pid, 0)


async def test_a_real_process_that_is_killed_is_a_worker_that_ended(tmp_path: Path) -> None:
    async with CompactionRounds(FileDisk(), Environment()).begin(str(tmp_path)) as round_:
        worker = round_._worker  # pyright: ignore[reportPrivateUsage]
        assert isinstance(worker, WorkerProcess)
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerEnded, match=r"by signal 9 \(SIGKILL\)"):
            await round_.build_map(a_round(round_.nonce))
