"""What a start finds of what the broker had, in one data directory and in several."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NodeState, PartitionState
from odradek.broker.cluster.lineage import Incarnations, KnownHistory, Lineage
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.directories.data_directories import DataDirectories
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.directories.metadata_revision import RecordedRevision
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.leftovers import UNSYNCED
from odradek.broker.membership.startup_losses import Findings, Found, look, look_at_all, note_boot
from odradek.protocol.codec.schema import uuid_text
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

DIR = "data"
OURS, OTHER = b"1" * 16, b"2" * 16
NODE = NodeState((OURS,))
TOPIC_ID = bytes(range(16))
HERE, LEADER = 2, 1
STATE = PartitionState(TOPIC_ID, (LEADER, HERE, 3), (LEADER, HERE, 3), LEADER, leader_epoch=4)


def disk_after(*, boot_id: str | None = None, is_clean: bool = False, used_by: tuple[str, ...] = ()) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir(DIR)
    RecordedRevision(disk, DIR, used_by).write(KnownHistory(1))
    if boot_id is not None:
        note_boot(disk, [DIR], boot_id)
    if is_clean:
        disk.write_whole(f"{DIR}/{CLEAN_SHUTDOWN}", b"")
    return disk


@pytest.mark.parametrize(
    ("disk", "directory_id", "boot_id", "node", "found"),
    [
        (disk_after(), OURS, "b1", None, Found.FIRST),
        (disk_after(boot_id="b1", is_clean=True), OTHER, "b1", NODE, Found.NOTHING),
        (disk_after(boot_id="b1", is_clean=True), OURS, "b2", NODE, Found.ALL),
        (disk_after(is_clean=True), OURS, None, NODE, Found.ALL),
        (disk_after(boot_id="b1"), OURS, "b1", NODE, Found.ALL),
        (disk_after(boot_id="b1"), OURS, "b2", NODE, Found.NOT_THE_NEWEST),
        (disk_after(boot_id="b1"), OURS, None, NODE, Found.NOT_THE_NEWEST),
        (disk_after(), OURS, "b1", NODE, Found.NOT_THE_NEWEST),
        (disk_after(boot_id=""), OURS, None, NODE, Found.NOT_THE_NEWEST),
    ],
)
def test_what_a_start_finds(
    disk: MemoryDisk, directory_id: bytes, boot_id: str | None, node: NodeState | None, found: Found
) -> None:
    assert look(disk, DIR, directory_id, boot_id, node) is found


@pytest.mark.parametrize(
    ("disk", "directory_id", "current", "found"),
    [
        (disk_after(boot_id="b1", is_clean=True, used_by=("p", "q")), OURS, "q", Found.ALL),
        (disk_after(boot_id="b1", is_clean=True, used_by=("p", "q")), OURS, "p", Found.ALL),
        (disk_after(boot_id="b1", is_clean=True, used_by=("p", "q")), OURS, "r", Found.OLDER),
        (disk_after(boot_id="b1", used_by=("p", "q")), OURS, "r", Found.OLDER),
        (disk_after(used_by=("p", "q")), OURS, "r", Found.OLDER),
        (disk_after(used_by=("p", "q")), OURS, "q", Found.NOT_THE_NEWEST),
        (disk_after(boot_id="b1", used_by=("p", "q")), OTHER, "r", Found.NOTHING),
        (disk_after(boot_id="b1", used_by=("p", "q")), OURS, None, Found.ALL),
        (disk_after(boot_id="b1", is_clean=True), OURS, "r", Found.ALL),
    ],
)
def test_a_directory_that_the_brokers_last_process_did_not_use_is_an_older_one(
    disk: MemoryDisk, directory_id: bytes, current: str | None, found: Found
) -> None:
    """Whatever its marker and the boot of the machine say. A former version, and a restored store, say nothing."""
    assert look(disk, DIR, directory_id, "b1", NODE, current) is found


def test_a_boot_that_is_unknown_is_never_the_same_as_another_one_that_was() -> None:
    disk = disk_after()
    note_boot(disk, [DIR], None)
    assert look(disk, DIR, OURS, "", NODE) is Found.NOT_THE_NEWEST


@pytest.mark.parametrize("content", [b"version=9\nboot.id=b1\n", b"boot.id=b1", b"\xff\x00"])
def test_a_boot_file_that_cannot_be_read_says_nothing(content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """The start is not refused for it: the newest may be missing, as after any loss of power."""
    disk = disk_after()
    disk.write_whole(f"{DIR}/boot.id", content)
    assert look(disk, DIR, OURS, "b1", NODE) is Found.NOT_THE_NEWEST
    assert f"{DIR}/boot.id" in caplog.text


AWAY, NEW = b"3" * 16, b"4" * 16
BOTH = NodeState((OURS, OTHER))
ALONE = PartitionState(TOPIC_ID, (HERE,), (HERE,), HERE)
IMAGE = ClusterImage(
    nodes={HERE: BOTH},
    topics={"orders": TopicImage("orders", TOPIC_ID, (STATE, ALONE, STATE))},
    lineage=Lineage(incarnations={HERE: Incarnations("last")}),
)
"""Of orders-1 nobody else has a replica."""
A, B, NOWHERE = ("orders", 0), ("orders", 1), ("orders", 2)


def directories_of(
    ids: Mapping[str, bytes],
    *,
    clean: Sequence[str] = (),
    dead: Sequence[str] = (),
    unsynced: Sequence[str] = (),
    older: Sequence[str] = (),
) -> Findings:
    """What is found in data directories with these ids, some of them clean, and in some that cannot be used: orders-0
    lies in `a`, orders-1 in `b`, orders-2 nowhere. All have been up under another boot of the machine. `unsynced`: of
    which partitions a sync failed. `older`: which were not in use when the broker ran last."""
    disk = MemoryDisk()
    environment = Environment()
    directories = DataDirectories(disk, ["a", "b", "c"][: len(ids) + len(dead)], environment, Tasks(environment.loop))
    for directory in directories:
        disk.make_dir(f"{directory.path}/orders-{'abc'.index(directory.path)}" if directory.path != "c" else "c")
        note_boot(disk, [directory.path], "former")
        noted = "former" if directory.path in older else "last"
        RecordedRevision(disk, directory.path, (noted,)).write(KnownHistory(1))
        if directory.path in clean:
            disk.write_whole(f"{directory.path}/{CLEAN_SHUTDOWN}", b"")
        if directory.path in dead:
            directory.fail(OSError("gone"))
        else:
            directory.properties = MetaProperties("cluster", HERE, uuid_text(ids[directory.path]))
    for path in unsynced:
        disk.write_whole(f"{path}/{UNSYNCED}", b"")
    return look_at_all(disk, directories, "present", IMAGE, HERE)


@pytest.mark.parametrize(
    ("findings", "in_a", "in_b", "nowhere", "missing"),
    [
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="ab"),
            *(Found.ALL, Found.ALL, Found.ALL, ()),
            id="all is well",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="a"),
            *(Found.ALL, Found.NOT_THE_NEWEST, Found.NOT_THE_NEWEST, ()),
            id="one was not closed, and a name in it may be gone that was not synced",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}),
            *(Found.NOT_THE_NEWEST, Found.NOT_THE_NEWEST, Found.NOT_THE_NEWEST, ()),
            id="none was closed",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS}, dead="b"),
            *(Found.NOT_THE_NEWEST, Found.OFFLINE, Found.OFFLINE, (OTHER,)),
            id="one was not closed, and one cannot be used",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="ab", unsynced=("a/orders-0",)),
            *(Found.NOT_THE_NEWEST, Found.ALL, Found.ALL, ()),
            id="a sync failed",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="ab", unsynced=("b/orders-1",)),
            *(Found.ALL, Found.ALL, Found.ALL, ()),
            id="a sync failed of what nobody else has",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="ab", older="b"),
            *(Found.ALL, Found.OLDER, Found.NOTHING, ()),
            id="one is an older copy, which lacks what was made since",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, older="ab"),
            *(Found.OLDER, Found.OLDER, Found.NOTHING, ()),
            id="both are older copies",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS}, clean="a", older="a", dead="b"),
            *(Found.OLDER, Found.OFFLINE, Found.OFFLINE, (OTHER,)),
            id="one is an older copy, and one cannot be used",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": NEW}, clean="a"),
            *(Found.ALL, Found.NOTHING, Found.NOTHING, ()),
            id="one was replaced, whatever lies in it",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS}, clean="a"),
            *(Found.ALL, Found.NOTHING, Found.NOTHING, ()),
            id="one was taken away",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS}, clean="a", dead="b"),
            *(Found.ALL, Found.OFFLINE, Found.OFFLINE, (OTHER,)),
            id="one cannot be used",
        ),
        pytest.param(
            lambda: directories_of({"a": NEW}, dead="b"),
            *(Found.NOTHING, Found.OFFLINE, Found.OFFLINE, (OURS, OTHER)),
            id="one was replaced, and one cannot be used: who knows which is which",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER, "c": NEW}, clean="ab"),
            *(Found.ALL, Found.ALL, Found.ALL, ()),
            id="one was added",
        ),
        pytest.param(
            lambda: directories_of({"a": OURS, "b": OTHER}, clean="ab", dead="c"),
            *(Found.ALL, Found.ALL, Found.ALL, ()),
            id="one cannot be used that never was",
        ),
    ],
)
async def test_what_a_start_finds_of_each_partition(
    findings: Callable[[], Findings], in_a: Found, in_b: Found, nowhere: Found, missing: tuple[bytes, ...]
) -> None:
    found = findings()
    assert (found.of(A), found.of(B), found.of(NOWHERE)) == (in_a, in_b, nowhere)
    assert found.missing_ids == missing
