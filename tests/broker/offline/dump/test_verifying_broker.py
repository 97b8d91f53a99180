"""What a broker of ours writes is sound: while it runs, after each append, and after a clean stop, with every codec and
idempotent producers, over rolls, with room preallocated, and after DeleteRecords and a truncation.
"""

from dataclasses import replace

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.offline.dump.partition_check import Report, check_partition
from odradek.protocol.batches.batch import check_batch
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from tests.broker.support import DATA_DIR, append, make_topic, running_broker

ORDERS = f"{DATA_DIR}/orders-0"
CODECS = list(Codec)
T0 = 1_700_000_000_000


def batch(number: int, record_count: int) -> bytes:
    """The one after `number` others of the same size, from one of two idempotent producers or from none."""
    who = number % 3
    producer = (who, 0, number // 3 * record_count) if who else (-1, -1, -1)
    records = [
        Record(index, T0 + 10 * number - 7 * index, b"key-%d" % index, b"value" * index, (("name", b"value"),))
        for index in range(record_count)
    ]
    return build_batch(
        records,
        codec=CODECS[number % len(CODECS)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )


def check(disk: MemoryDisk, *, is_clean: bool = False) -> Report:
    return check_partition(disk, ORDERS, is_clean=is_clean)


@pytest.mark.parametrize("preallocate", [False, True])
async def test_it_is_sound_after_each_append_and_after_a_clean_stop(preallocate: bool) -> None:
    disk = MemoryDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders")
        partition = context.partitions.find("orders", 0)
        small = LogConfig(segment_bytes=2000, index_interval_bytes=300, preallocate=preallocate)
        partition.log.config = small
        for number in range(40):
            append(partition, batch(number, record_count=4))
            report = check(disk)
            assert (report.batches, report.end_offset) == (number + 1, 4 * (number + 1))
            zeros = [note for note in report.notes if "bytes of zeros: preallocated" in note.text]
            assert len(zeros) == (preallocate and report.segments > 1), "the first segment was made before"
            others = [note.text for note in report.notes if note not in zeros]
            assert others == ["epoch 0, which begins at offset 0, is not in it yet: the next start adds it"]
        assert check(disk).segments > 3
        partition.log.config = replace(small, segment_bytes=1 << 30)
    report = check(disk, is_clean=True)
    assert disk.exists(f"{DATA_DIR}/.kafka_cleanshutdown")
    assert (report.batches, report.records, report.end_offset, report.notes) == (40, 160, 160, [])
    assert report.snapshots == report.segments
    assert report.offset_entries > 5
    assert report.time_entries > 5


async def test_it_is_sound_where_records_were_deleted() -> None:
    disk = MemoryDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders")
        partition = context.partitions.find("orders", 0)
        partition.log.config = LogConfig(segment_bytes=1000, index_interval_bytes=300)
        for number in range(20):
            append(partition, batch(number, record_count=4))
        log = partition.log
        start = log.base_offsets[2] + 1
        log.advance_log_start(start)
        assert check(disk).first_offset == log.base_offsets[0] > 0
        log.truncate_to(log.base_offsets[-1] + 5)
        end = log.log_end_offset
        assert check(disk).end_offset == end
    report = check(disk, is_clean=True)
    assert (report.end_offset, report.leader_epochs) == (end, 1)
    (note,) = report.notes
    assert note.text.startswith("left over; a running broker or the next start removes it: ")


def test_the_batches_are_accepted() -> None:
    for number in range(6):
        assert check_batch(memoryview(batch(number, 4))).record_count == 4
