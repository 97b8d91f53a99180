"""Apache Kafka's own tool reads the logs that we write, and has nothing to complain about; a damaged one it finds.

The log is filled directly, without a broker: every codec, headers, null keys and values, producers, leader epochs,
timestamps that go back and forth, many small segments, a torn tail that recovery cut.
"""

import random
import shutil
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from processes.dump_log_segments import Dump, dump_log_segments
from tests.compat.damage import DAMAGES, damage

pytestmark = [pytest.mark.compat, pytest.mark.java]

T0 = 1_700_000_000_000
BATCH_COUNT = 400
CONFIG = LogConfig(segment_bytes=64 * 1024, index_interval_bytes=1024)
PRODUCER_ID = 77


def record(rng: random.Random, delta: int, timestamp_ms: int) -> Record:
    key = None if rng.random() < 0.2 else rng.randbytes(rng.randrange(20))
    value = None if rng.random() < 0.1 else bytes(rng.choices(b"abcdef", k=rng.randrange(300)))
    headers = tuple((f"h{number}", rng.choice((None, b"", b"x" * 50))) for number in range(rng.randrange(3)))
    return Record(delta, timestamp_ms, key, value, headers)


def fill(log: Log, rng: random.Random, batch_count: int, *, sequence: int = 0) -> int:
    """Appends batches, every third one of an idempotent producer, and returns how many records that were."""
    record_count = 0
    leader_epoch = max(log.epochs.latest, 0)
    for number in range(batch_count):
        timestamp_ms = T0 + number * 10 - rng.randrange(200)
        records = [record(rng, delta, timestamp_ms + rng.randrange(5)) for delta in range(rng.randrange(1, 12))]
        is_idempotent = number % 3 == 0
        batch = build_batch(
            records,
            codec=rng.choice(list(Codec)),
            producer_id=PRODUCER_ID if is_idempotent else -1,
            producer_epoch=0 if is_idempotent else -1,
            base_sequence=sequence if is_idempotent else -1,
        )
        sequence += len(records) if is_idempotent else 0
        leader_epoch += 1 if rng.random() < 0.02 else 0
        log.append(memoryview(batch), read_header(batch), leader_epoch, timestamp_ms)
        record_count += len(records)
    return record_count


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A partition's directory, and how many records are in it."""
    directory = tmp_path_factory.mktemp("data") / "orders-0"
    log = Log.open(FileDisk(), str(directory), CONFIG, T0)
    record_count = fill(log, random.Random(7), BATCH_COUNT)
    log.flush()
    log.close()
    return directory, record_count


def assert_clean(dump: Dump, record_count: int) -> None:
    assert dump.findings == []
    assert dump.record_count == record_count


def test_every_segment_and_index_of_ours_is_clean(written: tuple[Path, int]) -> None:
    directory, record_count = written
    dump = dump_log_segments(directory)
    assert_clean(dump, record_count)
    assert len([file for file in dump.files if file.endswith(".log")]) > 3
    assert dump.index_entry_count > 50
    assert dump.time_index_entry_count > 10
    assert {batch.codec for batch in dump.batches} == {codec.name.lower() for codec in Codec}
    assert len({batch.leader_epoch for batch in dump.batches}) > 3
    assert {batch.producer_id for batch in dump.batches} == {-1, PRODUCER_ID}


def test_a_log_is_clean_after_recovery_cut_a_torn_tail_and_appends_went_on(
    written: tuple[Path, int], tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(written[0], tmp_path / "orders-0"))
    last = max(directory.glob("*.log"))
    torn = build_batch([Record(0, T0, b"k", b"v")])[:-3]
    with last.open("ab") as file:
        file.write(torn)
    assert dump_log_segments(directory).findings, "the torn tail is there"
    log = Log.open(FileDisk(), str(directory), CONFIG, T0)
    rng = random.Random(8)
    again = [build_batch([record(rng, delta, T0 + 10_000) for delta in range(3)]) for _ in range(50)]
    for batch in again:
        log.append(memoryview(batch), read_header(batch), log.epochs.latest + 1, T0 + 10_000)
    log.flush()
    log.close()
    assert_clean(dump_log_segments(directory), written[1] + 3 * len(again))


def test_an_empty_log_is_clean(tmp_path: Path) -> None:
    log = Log.open(FileDisk(), str(tmp_path / "empty-0"), CONFIG, T0)
    log.flush()
    log.close()
    assert_clean(dump_log_segments(tmp_path / "empty-0"), 0)


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_to_a_log_of_ours_is_found(written: tuple[Path, int], tmp_path: Path, kind: str) -> None:
    directory = Path(shutil.copytree(written[0], tmp_path / "orders-0"))
    damage(directory, kind)
    assert dump_log_segments(directory).findings
