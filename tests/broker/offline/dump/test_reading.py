"""What stands in each kind of file is printed as it is; damage is a line of its own, and what follows it is printed
where it can be found.
"""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.lines import Line, text_of
from odradek.broker.offline.dump.places import files_of
from odradek.broker.offline.dump.reading import DAMAGE, lines_of
from tests.broker.log.compacted_logs import T0
from tests.broker.offline.dump.damages import (
    EPOCHS,
    FIRST,
    LAST,
    SECOND,
    Damage,
    add,
    batch,
    cut,
    field,
    put,
    replace,
)
from tests.broker.offline.dump.laid_down import DATA_DIR, ORDERS, RECOVERY_POINTS, sample_disk


def read(disk: MemoryDisk, path: str, *, with_records: bool = False) -> list[Line]:
    ((_, name),) = files_of(disk, path)
    return list(lines_of(disk, path, name, with_records=with_records))


def texts(disk: MemoryDisk, path: str, *, with_records: bool = False) -> list[str]:
    return [text_of(line) for line in read(disk, path, with_records=with_records)]


def test_batches_are_printed_with_all_that_their_headers_say() -> None:
    found = texts(sample_disk(), f"{FIRST}.log")
    assert len(found) == 5
    assert found[0] == (
        f"batch base_offset=0 last_offset=2 position=0 size_bytes=154 record_count=3 codec=none "
        f"timestamp_type=CreateTime base_timestamp={T0} max_timestamp={T0 + 2} leader_epoch=3 "
        "is_transactional=false is_control=false is_crc_valid=true"
    )
    assert found[2] == (
        f"batch base_offset=4 last_offset=5 position=263 size_bytes=129 record_count=2 codec=snappy "
        f"timestamp_type=CreateTime base_timestamp={T0 + 28} max_timestamp={T0 + 29} leader_epoch=3 producer_id=1 "
        "producer_epoch=0 base_sequence=1 last_sequence=2 is_transactional=false is_control=false is_crc_valid=true"
    )
    codecs = [line.fields["codec"] for name in (FIRST, SECOND) for line in read(sample_disk(), f"{name}.log")]
    assert set(codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}
    append_time = read(sample_disk(), f"{SECOND}.log")[2].fields
    assert (append_time["timestamp_type"], append_time["max_timestamp"]) == ("LogAppendTime", T0 + 500)


def test_records_and_markers_are_printed_behind_their_batch() -> None:
    found = texts(sample_disk(), f"{SECOND}.log", with_records=True)
    headers = 'headers=["name": "value", "none": null]'
    kinds = "batch record record batch marker batch record batch marker batch record batch marker"
    assert [line.partition(" ")[0] for line in found] == kinds.split()
    assert found[1:3] == [
        f'record offset=8 timestamp_ms={T0 + 56} key=null value="nine" {headers}',
        f'record offset=9 timestamp_ms={T0 + 57} key="key-1" value="ten" {headers}',
    ]
    assert found[4] == (
        f"marker offset=10 timestamp_ms={T0 + 70} type=ABORT producer_id=9 producer_epoch=0 coordinator_epoch=7"
    )
    assert found[6] == f'record offset=11 timestamp_ms={T0 + 500} key=null value="eleven" {headers}'
    assert "type=COMMIT producer_id=9" in found[-1]


def test_a_delete_horizon_is_printed() -> None:
    disk = sample_disk()
    batch(f"{FIRST}.log", 0, 154, field(21, ">h", 0x40))(disk)
    assert f" delete_horizon_ms={T0} " in texts(disk, f"{FIRST}.log")[0]


def test_control_records_of_other_types_are_printed_as_they_are() -> None:
    disk = sample_disk()
    batch(f"{SECOND}.log", 121, 78, field(61 + 8, ">b", 2))(disk)
    assert 'record offset=10 timestamp_ms=1700000000070 key=0x00000002 value=0x' in texts(
        disk, f"{SECOND}.log", with_records=True
    )[4]  # fmt: skip


def test_what_is_derived_is_printed() -> None:
    disk = sample_disk()
    assert texts(disk, f"{SECOND}.index") == [
        "index_entry offset=10 position=121",
        "index_entry offset=12 position=299",
        "index_entry offset=14 position=468",
    ]
    assert texts(disk, f"{SECOND}.timeindex") == [
        f"time_entry timestamp_ms={T0 + 70} offset=10",
        f"time_entry timestamp_ms={T0 + 500} offset=11",
    ]
    assert texts(disk, f"{SECOND}.txnindex") == [
        "aborted_transaction version=0 producer_id=9 first_offset=7 last_offset=10 last_stable_offset=6",
        "aborted_transaction version=0 producer_id=8 first_offset=6 last_offset=12 last_stable_offset=13",
    ]
    found = texts(disk, f"{SECOND}.snapshot")
    assert found[2:] == [
        f"producer producer_id=9 epoch=0 last_sequence=0 last_offset=7 offset_delta=0 timestamp_ms={T0 + 49} "
        "coordinator_epoch=-1 current_txn_first_offset=7",
        "earlier_batch producer_id=1 base_sequence=0 last_sequence=0 base_offset=3 last_offset=3 "
        f"timestamp_ms={T0 + 21}",
    ]


def test_small_files_are_printed() -> None:
    disk = sample_disk()
    disk.write_whole("data/metadata.log", b"12345")
    assert texts(disk, EPOCHS) == [
        "leader_epoch epoch=3 start_offset=0",
        "leader_epoch epoch=5 start_offset=8",
        "leader_epoch epoch=6 start_offset=18",
    ]
    assert texts(disk, RECOVERY_POINTS) == [
        "offset topic=orders partition=0 offset=18",
        "offset topic=others partition=1 offset=0",
    ]
    assert texts(disk, f"{ORDERS}/partition.metadata") == ["partition_metadata topic_id=AAECAwQFBgcICQoLDA0ODw"]
    assert texts(disk, "data/meta.properties") == [
        "meta_properties cluster_id=b2RyYWRlay10ZXN0cy0wMQ node_id=0 directory_id=AAAAAAAAAAAAAAAAAAAAAQ"
    ]
    assert texts(disk, "data/.kafka_cleanshutdown") == ['clean_shutdown content="{}"']
    assert texts(disk, "data/metadata.log") == ['metadata size_bytes=5 note="the cluster\'s metadata is not printed"']


DAMAGED: dict[str, tuple[Damage, str, str]] = {
    "a torn batch": (
        cut(f"{LAST}.log", 200),
        f"{LAST}.log",
        'damage position=130 reason="the batch has 92 bytes, of which 70 are there"',
    ),
    "records": (
        batch(f"{LAST}.log", 130, 92, field(57, ">i", 2)),
        f"{LAST}.log",
        "damage position=130 reason=",
    ),
    "an index": (add(f"{LAST}.index", b"x"), f"{LAST}.index", 'damage position=8 reason="1 bytes are no whole row"'),
    "a time index": (add(f"{LAST}.timeindex", b"x"), f"{LAST}.timeindex", "damage position=12"),
    "a transaction index": (add(f"{SECOND}.txnindex", b"x"), f"{SECOND}.txnindex", "damage position=68"),
    "a snapshot": (add(f"{LAST}.snapshot", b"x"), f"{LAST}.snapshot", 'damage reason="it does not have the checksum'),
    "epochs": (replace(EPOCHS, b"0\n1\n3 x\n"), EPOCHS, "damage reason="),
    "offsets": (replace(RECOVERY_POINTS, b"9\n"), RECOVERY_POINTS, "damage reason="),
    "an id": (replace(f"{ORDERS}/partition.metadata", b"?"), f"{ORDERS}/partition.metadata", "damage reason="),
    "properties": (replace("data/meta.properties", b"version=1"), "data/meta.properties", "damage reason="),
}


@pytest.mark.parametrize(("damage", "path", "told"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_the_last_line(damage: Damage, path: str, told: str) -> None:
    disk = sample_disk()
    intact = texts(disk, path, with_records=True)
    damage(disk)
    found = texts(disk, path, with_records=True)
    assert found[-1].startswith(told), found[-1]
    assert len([line for line in found if line.startswith(DAMAGE)]) == 1
    assert found[0] == intact[0] or len(found) == 1


def test_behind_a_wrong_checksum_the_next_batch_is_read() -> None:
    disk = sample_disk()
    put(f"{FIRST}.log", 100, ">B", 1)(disk)
    assert [line.fields["is_crc_valid"] for line in read(disk, f"{FIRST}.log")] == [False, True, True, True, True]


def test_a_codec_that_is_none_is_printed_by_its_number() -> None:
    disk = sample_disk()
    batch(f"{FIRST}.log", 0, 154, field(21, ">h", 6))(disk)
    found = read(disk, f"{FIRST}.log", with_records=True)
    assert found[0].fields["codec"] == "unknown-6"
    assert found[1].kind == DAMAGE
    assert found[2].kind == "batch"


def test_zeros_are_told_with_their_size() -> None:
    disk = sample_disk()
    for path, size_bytes, told in (
        (f"{LAST}.log", 1000, "zeros position=222 size_bytes=1000"),
        (f"{LAST}.index", 800, "zeros rows=100"),
        (f"{LAST}.timeindex", 1200, "zeros rows=100"),
    ):
        add(path, bytes(size_bytes))(disk)
        assert texts(disk, path)[-1] == told


def test_all_of_a_directory_is_printed() -> None:
    disk = sample_disk()
    kinds = {
        line.kind for path, name in files_of(disk, DATA_DIR) for line in lines_of(disk, path, name, with_records=True)
    }
    assert kinds == {
        "aborted_transaction", "batch", "clean_shutdown", "earlier_batch", "index_entry", "leader_epoch", "marker",
        "meta_properties", "offset", "partition_metadata", "producer", "record", "time_entry",
    }  # fmt: skip
