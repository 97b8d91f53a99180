"""What makes a data directory a dead one: which errors raise suspicion, and what a probe says then. On virtual time."""

import asyncio
import errno
from collections.abc import Callable, Generator
from pathlib import Path
from uuid import UUID

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import PartitionState
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.directories import meta_properties
from odradek.broker.directories.data_directory import PROBE_FILE, PROBE_INTERVAL_MS, DataDirectory
from odradek.broker.directories.partition_directories import DELETE_SUFFIX, renamed
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.checkpoint import RECOVERY_POINTS, encode_offsets, read_offsets, write_partition_metadata
from odradek.runtime.tasks import Tasks
from tests.broker.failing_disk import FailingDisk
from tests.broker.keeping import HandEnvironment, abandon
from tests.broker.log.logs import T0
from tests.client.virtual_time import VirtualTimeLoop


class CountingProbes(FailingDisk):
    """Counts the probes that were begun."""

    probes = 0

    def write_whole(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self.probes += path.endswith(PROBE_FILE)
        super().write_whole(path, data)


class Watched:
    """The directory `a`, identified, and what is said of it."""

    def __init__(self) -> None:
        self.loop = VirtualTimeLoop(seconds_max=1e6)
        self.disk = CountingProbes()
        self.tasks = Tasks(self.loop)
        self.directory = DataDirectory(self.disk, "a", HandEnvironment(self.loop, T0), self.tasks)
        self.directory.take()
        self.directory.identify("cluster", 1)
        self.failed: list[str | None] = []
        self.directory.on_failed = lambda directory: self.failed.append(directory.failure)

    def suspect(self, number: int = errno.EIO) -> None:
        self.directory.suspect(OSError(number, "something failed"))

    def pass_ms(self, delay_ms: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(delay_ms / 1000))


@pytest.fixture
def watched() -> Generator[Watched]:
    made = Watched()
    yield made
    abandon(made.loop)


def test_checkpoints_forget_an_interrupted_deletion_before_its_last_trace_goes(watched: Watched) -> None:
    """A process died between the new name of the directory and the checkpoints; the next one may, too. Not forgotten
    is what has a directory, as a topic made anew under the name, and what nobody deleted."""
    disk, directory, long = watched.disk, watched.directory, "l" * 249
    known = {("orders", 0): 7, ("orders", 1): 8, (long, 0): 9, ("other", 0): 10}
    disk.write_whole(f"a/{RECOVERY_POINTS}", encode_offsets(known))
    for name in ("orders-0", "orders-1", f"{long}-0"):
        disk.make_dir(f"a/{renamed(name, '0' * 32, DELETE_SUFFIX)}")
    disk.make_dir("a/orders-1")
    topic_id = UUID(int=1).bytes
    write_partition_metadata(disk, "a/orders-1", topic_id)
    state = PartitionState(topic_id, (1,), (1,), 1)
    directory.checkpoints.load()
    assert directory.sweep(ClusterImage(topics={"orders": TopicImage("orders", topic_id, (state, state))})) == {
        ("orders", 1)
    }
    assert read_offsets(disk, f"a/{RECOVERY_POINTS}") == {("orders", 1): 8, ("other", 0): 10}
    assert not any(name.endswith(DELETE_SUFFIX) for name in disk.list_dir("a"))


def test_an_error_of_one_file_is_not_that_of_the_directory(watched: Watched) -> None:
    watched.suspect()
    watched.pass_ms(1)
    assert watched.disk.probes == 1
    assert watched.directory.is_online
    assert watched.failed == []
    assert not watched.disk.exists(f"a/{PROBE_FILE}"), "nothing is left behind"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_want_of_room_raises_no_suspicion_and_a_probe_that_has_none_says_nothing(watched: Watched, number: int) -> None:
    watched.suspect(number)
    watched.pass_ms(1)
    assert watched.disk.probes == 0
    watched.disk.fail("a", number)
    watched.suspect(errno.EIO)
    watched.pass_ms(1)
    assert watched.disk.probes == 1
    assert watched.directory.is_online


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EACCES])
def test_a_probe_that_fails_is_the_end_and_is_told_once(watched: Watched, number: int) -> None:
    watched.disk.fail("a", number, reads=False)
    for _ in range(3):
        watched.suspect(number)
    watched.pass_ms(2 * PROBE_INTERVAL_MS)
    watched.suspect(number)
    watched.disk.mend("a")
    watched.suspect(number)
    watched.pass_ms(2 * PROBE_INTERVAL_MS)
    assert watched.disk.probes == 1
    assert len(watched.failed) == 1
    assert watched.directory.failure == watched.failed[0]
    assert not watched.directory.is_online


def _remove(disk: FailingDisk) -> None:
    disk.rename("a", "elsewhere")


def _unmount(disk: FailingDisk) -> None:
    disk.unmount("a")


def _of_another(disk: FailingDisk) -> None:
    found = meta_properties.load(disk, "a")
    assert found is not None
    meta_properties.store(disk, "a", meta_properties.MetaProperties("cluster", 1, "AAAAAAAAAAAAAAAAAAAAAQ"))


def _damaged(disk: FailingDisk) -> None:
    disk.write_whole("a/meta.properties", b"\xff\xff")


@pytest.mark.parametrize(
    "happens",
    [_remove, _unmount, _of_another, _damaged],
    ids=["gone", "empty", "other", "damaged"],
)
def test_what_is_not_the_directory_of_the_start_any_more_has_failed(
    watched: Watched, happens: Callable[[FailingDisk], None]
) -> None:
    happens(watched.disk)
    watched.suspect(errno.ENOENT)
    watched.pass_ms(1)
    assert len(watched.failed) == 1


def test_errors_that_go_on_are_looked_into_once_in_a_while_and_none_is_forgotten(watched: Watched) -> None:
    """The device dies between two probes, and the last error comes before the second one."""
    for _ in range(20):
        watched.suspect()
        watched.pass_ms(1)
    assert watched.disk.probes == 1
    watched.disk.fail("a")
    watched.pass_ms(2 * PROBE_INTERVAL_MS)
    assert watched.disk.probes == 2
    assert len(watched.failed) == 1


def test_when_the_broker_stops_nothing_is_looked_into(watched: Watched) -> None:
    watched.directory.stop_watching()
    watched.disk.fail("a")
    watched.suspect()
    watched.pass_ms(1)
    assert watched.failed == []
    assert len(watched.tasks) == 0


def test_a_directory_that_others_may_look_into_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """At each start, and one that the broker has made is none."""
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o750)
    loop = VirtualTimeLoop(seconds_max=1e6)
    for path in (there, tmp_path / "new"):
        directory = DataDirectory(FileDisk(), str(path), HandEnvironment(loop, T0), Tasks(loop))
        directory.take()
        directory.release()
    assert caplog.messages == [
        f"the directory {there} holds records and secrets and has mode 0750, so its group may read it: "
        f"chmod 700 {there}"
    ]
    loop.close()
