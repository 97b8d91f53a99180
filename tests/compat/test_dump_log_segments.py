"""That the judge judges: a log which Apache Kafka wrote itself is clean, and each kind of damage is found.

Damage is done by hand to copies of the directory: a flipped bit, an offset gap, wrong index entries, a torn tail.
"""

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from processes.apache_kafka import ApacheKafka
from processes.dump_log_segments import Dump, dump_log_segments, read_dump

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java]

RECORD_COUNT = 2_500
VALUE = os.urandom(1000)
BATCH_HEADER_SIZE = 61


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A partition of three segments with dense indexes, written by Apache Kafka through kafka-python."""
    with ApacheKafka(directory=tmp_path_factory.mktemp("apache-kafka")) as kafka:
        configs = {"segment.bytes": str(1024 * 1024), "index.interval.bytes": "4096"}
        admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        admin.create_topics({"judged": {"num_partitions": 1, "replication_factor": 1, "configs": configs}})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all", batch_size=16384, linger_ms=5)
        for number in range(RECORD_COUNT):
            producer.send("judged", key=str(number).encode(), value=VALUE)
        producer.flush()
        producer.close()
        kafka.stop()
        yield kafka.data_directory / "judged-0"


@pytest.fixture
def damaged(written: Path, tmp_path: Path) -> Path:
    """A copy of the partition, to be damaged."""
    return Path(shutil.copytree(written, tmp_path / written.name))


def segments(directory: Path, suffix: str = ".log") -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix == suffix)


def batch_positions(segment: Path) -> list[int]:
    data = segment.read_bytes()
    positions = [0]
    while positions[-1] < len(data):
        (batch_length,) = struct.unpack_from(">i", data, positions[-1] + 8)
        positions.append(positions[-1] + 12 + batch_length)
    return positions[:-1]


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def finds(dump: Dump, text: str) -> bool:
    return any(text in finding for finding in dump.findings)


def test_a_log_of_apache_kafka_is_clean(written: Path) -> None:
    dump = dump_log_segments(written)
    assert dump.findings == []
    assert dump.record_count == RECORD_COUNT
    assert len(segments(written)) >= 3
    assert dump.index_entry_count > 10
    assert dump.time_index_entry_count > 3
    assert len(dump.batches) > 100


def test_a_flipped_bit_is_found(damaged: Path) -> None:
    segment = segments(damaged)[1]
    position = batch_positions(segment)[3] + BATCH_HEADER_SIZE + 200
    overwrite(segment, position, bytes([segment.read_bytes()[position] ^ 0x10]))
    assert finds(dump_log_segments(damaged), "isvalid: false")


def test_an_offset_gap_inside_a_segment_is_found(damaged: Path) -> None:
    segment = segments(damaged)[1]
    position = batch_positions(segment)[-1]
    (base_offset,) = struct.unpack_from(">q", segment.read_bytes(), position)
    overwrite(segment, position, struct.pack(">q", base_offset + 1))
    assert finds(dump_log_segments(damaged), "Non-consecutive")


def test_a_gap_before_a_segment_s_first_record_is_found(damaged: Path) -> None:
    """The one place where the tool's own complaint is passed over when the offset is the one in the file's name."""
    segment = segments(damaged)[1]
    (base_offset,) = struct.unpack_from(">q", segment.read_bytes(), 0)
    overwrite(segment, 0, struct.pack(">q", base_offset + 1))
    dump = dump_log_segments(damaged)
    assert finds(dump, f"{segment.name} starts with offset {base_offset + 1}")
    assert finds(dump, f"-1 is followed by {base_offset + 1}")


def test_a_missing_segment_is_found(damaged: Path) -> None:
    for path in damaged.glob(segments(damaged)[1].stem + ".*"):
        path.unlink()
    dump = dump_log_segments(damaged)
    assert finds(dump, "is followed by")
    assert not finds(dump, "Non-consecutive"), "the tool looks across segments now: ours can go"


def test_an_index_entry_with_a_wrong_offset_is_found(damaged: Path) -> None:
    index = segments(damaged, ".index")[0]
    (relative_offset,) = struct.unpack_from(">i", index.read_bytes(), 8)
    overwrite(index, 8, struct.pack(">i", relative_offset + 1))
    assert finds(dump_log_segments(damaged), "Mismatches in")


def test_an_index_entry_with_a_wrong_position_is_found(damaged: Path) -> None:
    index = segments(damaged, ".index")[0]
    (position,) = struct.unpack_from(">i", index.read_bytes(), 12)
    overwrite(index, 12, struct.pack(">i", position + 7))
    assert dump_log_segments(damaged).findings


def test_a_time_index_entry_with_a_wrong_timestamp_is_found(damaged: Path) -> None:
    index = segments(damaged, ".timeindex")[0]
    (timestamp,) = struct.unpack_from(">q", index.read_bytes(), 0)
    overwrite(index, 0, struct.pack(">q", timestamp - 1))
    assert finds(dump_log_segments(damaged), "timestamp mismatch")


def test_a_torn_tail_is_found(damaged: Path) -> None:
    segment = segments(damaged)[-1]
    overwrite(segment, segment.stat().st_size, segment.read_bytes()[:100])
    assert finds(dump_log_segments(damaged), "invalid bytes at the end")


def test_a_directory_without_segments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no segment"):
        dump_log_segments(tmp_path)


def test_a_line_that_is_not_known_is_a_finding() -> None:
    dump = read_dump("Dumping /d/00000000000000000000.log\nLog starting offset: 0\nException in thread main\n")
    assert dump.findings == ["Exception in thread main"]
