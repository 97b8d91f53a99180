"""`metadata.revision`: written as the metadata moves on, and what is refused because of it."""

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from threading import get_ident

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster.lineage import Commit, Incarnations, KnownHistory, Lineage
from odradek.broker.directories import metadata_revision as module
from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties
from odradek.broker.directories.metadata_revision import (
    FILE_NAME,
    RecordedRevision,
    check_metadata,
    load_followed,
    load_processes,
    load_revision,
)
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.codec.schema import Buffer, uuid_text
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress

PATH = f"data/{FILE_NAME}"
CLUSTER = "b2RyYWRlay10ZXN0cy0wMQ"
KNOWN = MetaProperties(CLUSTER, 0, uuid_text(bytes(range(16))))


INCARNATIONS = st.from_regex(r"[A-Za-z0-9_-]{1,22}", fullmatch=True)
COMMIT = Commit("first", 3, 7)
NOTHING = Lineage()


def disk_with(*partitions: str, revision: int = 0, followed: KnownHistory | None = None) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("data")
    for name in partitions:
        disk.make_dir(f"data/{name}")
    RecordedRevision(disk, "data").write(followed or KnownHistory(revision))
    return disk


# -- the file ---------------------------------------------------------------------------------------------------------


def test_what_was_written_is_read_again_and_there_is_none_at_first() -> None:
    disk = disk_with()
    assert not disk.exists(PATH)
    assert load_revision(disk, "data") == 0
    recorded = RecordedRevision(disk, "data")
    recorded.write(KnownHistory(4711))
    assert disk.read_whole(PATH) == b"version=1\nrevision=4711\n"
    assert load_revision(disk, "data") == 4711
    disk.remove(PATH)
    recorded.write(KnownHistory(4711))
    assert not disk.exists(PATH), "it is not written twice"


def test_the_bytes_of_all_that_can_be_known() -> None:
    followed = KnownHistory(9, "5-abc", {2: Commit("other", 1, 5), 1: COMMIT})
    disk = disk_with(followed=followed)
    assert disk.read_whole(PATH) == (b"version=1\nrevision=9\norigin=5-abc\ncommit.1=7 first 3\ncommit.2=5 other 1\n")
    assert load_followed(disk, "data") == followed


@given(
    st.builds(
        KnownHistory,
        st.integers(1, 2**62),
        st.sampled_from(["", "17-0a1b"]),
        st.dictionaries(
            st.integers(0, 2**31 - 1),
            st.builds(Commit, INCARNATIONS, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)),
            max_size=5,
        ),
    ),
    st.lists(INCARNATIONS, max_size=5).map(tuple),
)
def test_what_is_followed_and_who_used_it_is_read_again(followed: KnownHistory, processes: tuple[str, ...]) -> None:
    disk = MemoryDisk()
    disk.make_dir("data")
    RecordedRevision(disk, "data", processes).write(followed)
    assert (load_followed(disk, "data"), load_processes(disk, "data")) == (followed, processes)


def test_the_bytes_of_the_processes_which_can_be_noted_later_and_stay() -> None:
    disk = disk_with()
    recorded = RecordedRevision(disk, "data", ("a",))
    recorded.write(KnownHistory(7))
    recorded.note(("a", "b"))
    assert disk.read_whole(PATH) == b"version=1\nrevision=7\nprocesses=a b\n"
    recorded.write(KnownHistory(8))
    assert load_processes(disk, "data") == ("a", "b")
    disk.write_whole(PATH, b"version=1\nrevision=7\n")
    assert load_processes(disk, "data") == (), "a former version notes none"
    disk.remove(PATH)
    assert load_processes(disk, "data") == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it has no version"),
        ("version=2\nrevision=1\n", "has version 2"),
        ("version=1\n", "its revision is ''"),
        ("version=1\nrevision=-1\n", "its revision is '-1'"),
        ("version=1\nrevision=\u0661\n", "its revision is"),
        ("version=1\nrevision=1\ncommit.x=1 a 2\n", "its commit.x is 'x'"),
        ("version=1\nrevision=1\ncommit.1=1 a\n", "its commit.1 is '1 a'"),
        ("version=1\nrevision=1\ncommit.1=1  2\n", "its commit.1 is '1  2'"),
        ("version=1\nrevision=1\ncommit.1=-1 a 2\n", "its commit.1 is '-1'"),
        ("version=1\nrevision=1\ncommit.1=1 a b\n", "its commit.1 is 'b'"),
        (f"version=1\nrevision={'1' * 20}\n", f"its revision is '{'1' * 20}'"),
        (f"version=1\nrevision={'1' * 5_000}\n", f"its revision is '{'1' * 100}…'; restore"),
        (f"version=1\nrevision=1\ncommit.{'1' * 5_000}=1 a 2\n", "is '1"),
        ("\0" * 30, "it has no version"),
    ],
)
def test_a_damaged_file_is_refused(text: str, reason: str) -> None:
    disk = disk_with()
    disk.write_whole(PATH, text.encode())
    with pytest.raises(ForeignDirectory, match=rf"^data/metadata\.revision .*{reason}"):
        load_revision(disk, "data")


class FailingDisk(MemoryDisk):
    """Has no room for as long as a test says so."""

    is_failing = False

    def write_whole(self, path: str, data: Buffer) -> None:
        if self.is_failing:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().write_whole(path, data)


class Stepped(Environment):
    """The time between two writes is over when a test says so, which can wait until it has begun."""

    __slots__ = ("_begun", "_over", "delays_ms")

    def __init__(self) -> None:
        super().__init__()
        self.delays_ms: list[float] = []
        self._begun = asyncio.Semaphore(0)
        self._over = asyncio.Semaphore(0)

    async def sleep(self, delay_ms: float) -> None:
        self.delays_ms.append(delay_ms)
        self._begun.release()
        await self._over.acquire()

    async def written(self) -> None:
        await asyncio.wait_for(self._begun.acquire(), 10)

    def pass_time(self) -> None:
        self._over.release()


@asynccontextmanager
async def following(disk: MemoryDisk, revision: Progress, environment: Environment) -> AsyncGenerator[RecordedRevision]:
    recorded = RecordedRevision(disk, "data")
    following = recorded.follow(revision, lambda: KnownHistory(revision.value), environment)
    task = asyncio.get_running_loop().create_task(following)
    try:
        yield recorded
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Waited(Progress):
    """Says when somebody waits for more than there is."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.is_waited_for = asyncio.Event()

    async def reach(self, value: int, timeout_ms: float | None = None) -> None:
        if value > self.value:
            self.is_waited_for.set()
        await super().reach(value, timeout_ms)


async def test_it_follows_the_metadata_once_a_second_and_takes_the_newest() -> None:
    disk, revision, environment = disk_with(), Waited(0), Stepped()
    async with following(disk, revision, environment) as recorded:
        revision.advance(3)
        await environment.written()
        assert (load_revision(disk, "data"), environment.delays_ms) == (3, [module.RENEWAL_MS])
        revision.advance(4)
        revision.advance(9)
        assert load_revision(disk, "data") == 3
        environment.pass_time()
        await environment.written()
        assert load_revision(disk, "data") == 9, "the newest, and one write for both"
        revision.is_waited_for.clear()
        environment.pass_time()
        await asyncio.wait_for(revision.is_waited_for.wait(), 10)
    assert len(environment.delays_ms) == 2, "nothing has happened since, so nothing is written"
    recorded.write(KnownHistory(9))
    recorded.write(KnownHistory(10))
    assert load_revision(disk, "data") == 10


async def test_it_waits_for_the_device_in_a_helper_thread() -> None:
    threads: list[int] = []

    class Watched(MemoryDisk):
        def write_whole(self, path: str, data: Buffer) -> None:
            threads.append(get_ident())
            super().write_whole(path, data)

    disk, environment = Watched(), Stepped()
    disk.make_dir("data")
    async with following(disk, Progress(5), environment):
        await environment.written()
    assert len(threads) == 1
    assert threads[0] != get_ident()


async def test_a_disk_that_fails_is_told_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    disk, environment = FailingDisk(), Stepped()
    disk.make_dir("data")
    disk.is_failing = True
    with caplog.at_level(logging.WARNING):
        async with following(disk, Progress(5), environment):
            for _ in range(2):
                await environment.written()
                environment.pass_time()
            await environment.written()
            assert not disk.exists(PATH)
            disk.is_failing = False
            environment.pass_time()
            await environment.written()
            assert load_revision(disk, "data") == 5
    (record,) = caplog.records
    assert record.getMessage().startswith("data/metadata.revision cannot be written; it is tried again: [Errno 28]")


# -- what is refused --------------------------------------------------------------------------------------------------


def check(disk: MemoryDisk, known: MetaProperties | None, cluster_id: str | None, revision: int) -> None:
    check_metadata(disk, "data", known, cluster_id, revision, NOTHING)


def test_metadata_that_the_directory_followed_passes() -> None:
    check(disk_with(), None, None, 0)  # a new directory
    check(disk_with(), KNOWN, None, 0)  # one that was formatted and never used
    check(disk_with(), None, CLUSTER, 1)  # a first start that did not come to its end
    check(disk_with("orders-0", revision=7), KNOWN, CLUSTER, 7)
    check(disk_with("orders-0", revision=7), KNOWN, CLUSTER, 8)
    check(disk_with("orders-0"), KNOWN, CLUSTER, 1)  # from before revisions were written down


def test_a_directory_of_a_former_version_takes_metadata_that_has_a_lineage_and_none() -> None:
    lineage = Lineage(None, {1: COMMIT}, {1: Incarnations("first", revision=5)})
    for found in (NOTHING, lineage):
        check_metadata(disk_with("orders-0", revision=7), "data", KNOWN, CLUSTER, 7, found)
        check_metadata(disk_with("orders-0"), "data", KNOWN, CLUSTER, 7, found)


def refused(disk: MemoryDisk, known: MetaProperties | None, cluster_id: str | None, revision: int) -> str:
    with pytest.raises(ForeignDirectory) as error:
        check(disk, known, cluster_id, revision)
    return str(error.value)


@pytest.mark.parametrize("known", [None, KNOWN])
def test_partitions_without_any_metadata_are_refused_with_all_ways_out(known: MetaProperties | None) -> None:
    assert refused(disk_with("orders-0"), known, None, 0) == (
        "data has the partition orders-0, and no metadata says which topics there are: restore that from a backup, or "
        "find it again by `odradek cluster rebuild`; if Apache Kafka has left this directory, run "
        "`odradek adopt data`. Nothing was changed"
    )
    assert "data has 2 partitions (__cluster_metadata-0, …), and" in refused(
        disk_with("__cluster_metadata-0", "orders-0", "notes"), known, None, 0
    )


def test_partitions_without_meta_properties_are_refused() -> None:
    assert refused(disk_with("orders-0"), None, CLUSTER, 9).startswith(
        f"data has the partition orders-0, and no meta.properties: nothing says that they belong to cluster {CLUSTER}"
    )


def test_metadata_of_another_cluster_is_refused_with_and_without_partitions() -> None:
    for disk in (disk_with(), disk_with("orders-0")):
        assert refused(disk, KNOWN, "another", 9).startswith(
            f"data belongs to cluster {CLUSTER}, and its metadata to cluster another"
        )


@pytest.mark.parametrize(("cluster_id", "revision"), [(None, 0), (CLUSTER, 6)])
def test_metadata_that_is_behind_is_refused_even_without_partitions(cluster_id: str | None, revision: int) -> None:
    assert refused(disk_with(revision=7), KNOWN, cluster_id, revision) == (
        f"the metadata does not follow the one that data knows: it is at revision {revision}, and was at 7 before "
        "(data/metadata.revision). It "
        "was lost, or replaced by an older copy that does not know what was created since: put the newest one back; if "
        "there is none, stop all brokers, and rebuild the metadata from their data directories (odradek cluster "
        "rebuild), or bring a backup of it back (odradek cluster restore). Nothing was changed"
    )


def test_metadata_that_lacks_a_commit_is_refused_however_high_its_revision_is() -> None:
    disk = disk_with("orders-0", followed=KnownHistory(7, "", {1: COMMIT}))
    with pytest.raises(ForeignDirectory, match="knows: it lacks what broker 1 wrote at revision 7"):
        check_metadata(disk, "data", KNOWN, CLUSTER, 4711, Lineage(None, {1: Commit("first", 2, 6)}, {}))


def test_a_file_or_a_directory_of_another_kind_is_no_partition() -> None:
    disk = disk_with("notes", f"orders-0.{'0' * 32}-stray")
    disk.write_whole("data/file-0", b"")
    check(disk, None, None, 0)
