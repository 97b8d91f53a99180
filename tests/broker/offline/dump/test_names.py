"""Names say what a file holds, and to which offset it belongs; other names say nothing."""

import pytest

from odradek.broker.offline.dump.names import Kind, Name, base_name, in_order, name_of, partitions_in_order

TWELVE = f"{12:020d}"

NAMES = {
    "meta.properties": Name(Kind.META_PROPERTIES),
    ".kafka_cleanshutdown": Name(Kind.CLEAN_SHUTDOWN),
    "metadata.log": Name(Kind.METADATA),
    "metadata.revision": Name(Kind.METADATA),
    "replication-offset-checkpoint": Name(Kind.OFFSETS),
    "log-start-offset-checkpoint": Name(Kind.OFFSETS),
    "partition.metadata": Name(Kind.PARTITION_METADATA),
    "leader-epoch-checkpoint": Name(Kind.LEADER_EPOCHS),
    f"{TWELVE}.snapshot": Name(Kind.SNAPSHOT, 12),
    f"{TWELVE}.log": Name(Kind.LOG, 12),
    f"{TWELVE}.index": Name(Kind.OFFSET_INDEX, 12),
    f"{TWELVE}.timeindex": Name(Kind.TIME_INDEX, 12),
    f"{TWELVE}.txnindex": Name(Kind.TXN_INDEX, 12),
    f"{TWELVE}.log.deleted": Name(Kind.LOG, 12, is_left_over=True),
    f"{TWELVE}.index.swap": Name(Kind.OFFSET_INDEX, 12, is_left_over=True),
    f"{2**63 - 1:020d}.log": Name(Kind.LOG, 2**63 - 1),
}


@pytest.mark.parametrize(("file_name", "name"), NAMES.items(), ids=NAMES.keys())
def test_a_name_says_what_the_file_holds(file_name: str, name: Name) -> None:
    assert name_of(file_name) == name


@pytest.mark.parametrize(
    "file_name",
    ["12.log", f"{2**63:020d}.log", f"{TWELVE}.data", TWELVE, "log", "offset-checkpoint", "\u0660" * 20 + ".log"],
)
def test_other_names_say_nothing(file_name: str) -> None:
    assert name_of(file_name) is None


def test_the_files_of_a_segment_stand_together() -> None:
    names = [name for name in NAMES if not name.endswith((".deleted", ".swap"))]
    assert [file_name for file_name, _ in in_order(reversed([*NAMES, "other"]))] == [
        "meta.properties",
        ".kafka_cleanshutdown",
        "metadata.log",
        "metadata.revision",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        *(name for name in names if names.index(name) > 5),
    ]


def test_partitions_come_by_topic_and_number() -> None:
    found = ["b-1", "a-10", "a-9", "a-b-0", "lost+found", f"a-1.{'0' * 32}-delete", "a-"]
    assert partitions_in_order(found) == ["a-9", "a-10", "a-b-0", "b-1"]


def test_the_last_part_of_a_path_is_a_name() -> None:
    assert [base_name(path) for path in ("a/b", "a/b/", "b", "a//b//")] == ["b"] * 4
