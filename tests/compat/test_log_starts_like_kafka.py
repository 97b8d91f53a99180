"""What a log keeps beside its records is Apache Kafka's own: snapshots, transaction indexes, checkpoints, the marker.

Kafka writes a partition through idempotent and transactional producers, with one transaction left open, and stops. Our
readers and DumpLogSegments are asked about the same files, field by field; then our log opens the directory, goes on
in it, and Kafka starts on what that left.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaAdminClient

from odradek.broker.directories.checkpoints import Checkpoints
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.aborted import TransactionIndex
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.producers import AbortedTxn, ProducedBatch, Producers, ProducerState
from odradek.broker.log.snapshots import SnapshotEntry, encode_snapshot, read_entries
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from processes.apache_kafka import ApacheKafka, run_tool
from processes.dump_log_segments import MAIN_CLASS, dump_log_segments

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

TOPIC = "orders"
DIRECTORY = f"{TOPIC}-0"
VALUE = bytes(60_000)
CONFIG = LogConfig(segment_bytes=1 << 20)
SNAPSHOT_LINE = re.compile(
    r"producerId: (?P<producer_id>\d+) producerEpoch: (?P<epoch>-?\d+) coordinatorEpoch: (?P<coordinator_epoch>-?\d+) "
    r"currentTxnFirstOffset: (?:OptionalLong)?(?:\[(?P<txn>\d+)\]|\.empty) lastTimestamp: (?P<timestamp>-?\d+) ?"
    r"(?:firstSequence: (?P<first_sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    r"lastOffset: (?P<last_offset>-?\d+) offsetDelta: (?P<delta>\d+) timestamp: -?\d+)?"
)
ABORTED_LINE = re.compile(r"version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)")


def dumped(path: Path) -> list[str]:
    """What Kafka's tool says of one file, without the line that names it."""
    output = run_tool(MAIN_CLASS, "--files", str(path), check=False)
    return [line for line in output.splitlines() if line and not line.startswith("Dumping ")]


def dumped_snapshot(path: Path) -> list[tuple[SnapshotEntry, int]]:
    """The producers as Kafka reads them, each with the first sequence of its last batch."""
    found: list[tuple[SnapshotEntry, int]] = []
    for line in dumped(path):
        match = SNAPSHOT_LINE.fullmatch(line)
        assert match is not None, line

        def number(name: str, absent: int, match: re.Match[str] = match) -> int:
            return absent if match[name] is None else int(match[name])

        entry = SnapshotEntry(
            number("producer_id", -1),
            number("epoch", -1),
            number("last_sequence", -1),
            number("last_offset", -1),
            number("delta", 0),
            number("timestamp", -1),
            number("coordinator_epoch", -1),
            number("txn", -1),
        )
        found.append((entry, number("first_sequence", -1)))
    return found


def dumped_aborted(path: Path) -> list[AbortedTxn]:
    lines = [ABORTED_LINE.fullmatch(line) for line in dumped(path)]
    return [AbortedTxn(*map(int, match.groups())) for match in lines if match is not None]


def rows_of(path: Path) -> list[AbortedTxn]:
    return list(TransactionIndex(FileDisk(), str(path), int(path.name[:20]), exists=True).rows())


# -- what Kafka wrote -------------------------------------------------------------------------------------------------


def transactional(kafka: ApacheKafka, name: str) -> Producer:
    producer = producer_of(kafka, {"transactional.id": name, "batch.size": 100_000})
    producer.init_transactions(30)
    return producer


def producer_of(kafka: ApacheKafka, options: Mapping[str, str | int | bool]) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 2, **options})


def write(producer: Producer, *values: bytes) -> None:
    for value in values:
        producer.produce(TOPIC, value, partition=0)
    assert producer.flush(30) == 0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """Stopped, after it wrote a partition of several segments."""
    with ApacheKafka(directory=tmp_path_factory.mktemp("apache-kafka")) as kafka:
        configs = {"segment.bytes": str(1 << 20)}
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 1, "configs": configs}})
        plain = producer_of(kafka, {"enable.idempotence": True})
        one, two, three = (transactional(kafka, name) for name in ("one", "two", "three"))
        two.begin_transaction()
        write(two, b"aborted, over several segments")
        for number in range(12):
            one.begin_transaction()
            write(one, *[VALUE + b"%d" % number] * 4)
            write(plain, b"plain %d" % number)
            write(two, b"aborted %d" % number)
            if number % 3:
                one.commit_transaction(30)
            else:
                one.abort_transaction(30)
        two.abort_transaction(30)
        three.begin_transaction()
        write(three, b"left open")
        write(plain, b"the last one")
        kafka.stop()
        yield kafka


@pytest.fixture(scope="module")
def directory(kafka: ApacheKafka) -> Path:
    return kafka.data_directory / DIRECTORY


@pytest.fixture
def copy(directory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(directory, tmp_path / DIRECTORY))


def test_snapshots_of_kafka_are_read_as_kafka_reads_them(directory: Path) -> None:
    paths = sorted(directory.glob("*.snapshot"))
    assert len(paths) > 2
    seen = 0
    for path in paths:
        entries, earlier = read_entries(path.read_bytes())
        expected = dumped_snapshot(path)
        assert sorted(entries) == sorted(entry for entry, _ in expected)
        assert earlier == []
        seen += len(entries)
    assert seen > 8
    newest = {entry.producer_id: entry for entry in read_entries(paths[-1].read_bytes())[0]}
    assert len(newest) == 4
    assert sum(entry.current_txn_first_offset >= 0 for entry in newest.values()) == 1
    assert {entry.coordinator_epoch for entry in newest.values()} == {-1, 0}


def test_transaction_indexes_of_kafka_are_read_as_kafka_reads_them(directory: Path) -> None:
    paths = sorted(path for path in directory.glob("*.txnindex") if path.stat().st_size)
    found = [row for path in paths for row in rows_of(path)]
    assert found == [row for path in paths for row in dumped_aborted(path)]
    assert len(found) == 5
    assert len(paths) > 1


def test_our_log_knows_of_a_directory_of_kafka_what_kafka_knew(kafka: ApacheKafka, copy: Path) -> None:
    """From the checkpoints, the marker and the end of the last segment alone."""
    data_dir = copy.parent / "checkpoints"
    data_dir.mkdir()
    for path in kafka.data_directory.iterdir():
        if path.is_file():
            shutil.copy(path, data_dir)
    checkpoints = Checkpoints(FileDisk(), str(data_dir))
    checkpoints.load()
    assert checkpoints.was_clean
    recovery_point = checkpoints.recovery_points[TOPIC, 0]
    expected = dumped_snapshot(max(copy.glob("*.snapshot")))
    rows = [row for path in sorted(copy.glob("*.txnindex")) if path.stat().st_size for row in dumped_aborted(path)]
    log = Log.open(FileDisk(), str(copy), CONFIG, 0, recovery_point=recovery_point, is_clean=True)
    assert log.log_end_offset == recovery_point == checkpoints.high_watermarks[TOPIC, 0]
    for entry, first_sequence in expected:
        state = log.producers.get(entry.producer_id)
        assert state is not None
        assert (state.epoch, state.coordinator_epoch, state.last_sequence) == (
            entry.epoch,
            entry.coordinator_epoch,
            entry.last_sequence,
        )
        assert state.current_txn_first_offset == entry.current_txn_first_offset
        if entry.last_offset >= 0:
            assert state.batches[-1].base_sequence == first_sequence
    (still_open,) = [entry.current_txn_first_offset for entry, _ in expected if entry.current_txn_first_offset >= 0]
    assert log.producers.first_undecided_offset == still_open
    for offset in range(0, log.log_end_offset, 3):
        data = log.fetch(offset, 1 << 18, log.log_end_offset, True).records
        end = offset_after(bytes(data))
        overlapping = [row for row in rows if row.first_offset < end and row.last_offset >= offset]
        assert log.aborted_transactions(offset, data) == overlapping
    log.close()


@pytest.mark.parametrize("lost", ["snapshots", "transaction indexes", "everything but the log"])
def test_what_is_lost_is_built_as_kafka_had_built_it(copy: Path, lost: str) -> None:
    """From all batches. Kafka keeps only the last one of each producer in its files."""
    before = {path.name: rows_of(path) for path in copy.glob("*.txnindex") if path.stat().st_size}
    expected = sorted(entry for entry, _ in dumped_snapshot(max(copy.glob("*.snapshot"))))
    suffixes = {
        "snapshots": (".snapshot",),
        "transaction indexes": (".txnindex",),
        "everything but the log": (".snapshot", ".txnindex", ".index", ".timeindex"),
    }[lost]
    for path in copy.iterdir():
        if path.suffix in suffixes:
            path.unlink()
    log = Log.open(FileDisk(), str(copy), CONFIG, 0)
    assert {path.name: rows_of(path) for path in copy.glob("*.txnindex") if path.stat().st_size} == before
    entries, _ = read_entries(encode_snapshot(log.producers))
    known = {entry.producer_id: entry for entry in expected}
    for entry in entries:
        assert entry == known.pop(entry.producer_id)
    assert known == {}
    log.close()
    assert dump_log_segments(copy).findings == []


def offset_after(data: bytes) -> int:
    position = end = 0
    while position < len(data):
        header = read_header(data, position)
        position, end = position + header.size_bytes, header.last_offset + 1
    return end


# -- what we wrote ----------------------------------------------------------------------------------------------------


def test_a_snapshot_of_ours_with_earlier_batches_is_read_by_kafka(tmp_path: Path) -> None:
    full = ProducerState(3)
    for number in range(5):
        sequence, offset = (2**31 - 4 + number) % 2**31, 10 + number
        full.batches.append(ProducedBatch(sequence, sequence, offset, offset, 100))
    full.last_timestamp_ms, full.coordinator_epoch, full.current_txn_first_offset = 100, 9, 10
    bare = ProducerState(0)
    bare.last_timestamp_ms = 5
    path = tmp_path / f"{20:020d}.snapshot"
    path.write_bytes(encode_snapshot(Producers([(4001, full), (4002, bare)])))
    entries, earlier = read_entries(path.read_bytes())
    assert len(earlier) == 4
    assert [entry for entry, _ in dumped_snapshot(path)] == entries
    assert [first for _, first in dumped_snapshot(path)] == [0, -1]


def test_a_transaction_index_of_ours_is_read_by_kafka(tmp_path: Path) -> None:
    rows = [AbortedTxn(4001, 3, 10, 5), AbortedTxn(2**62, 5, 2**40, 2**40 + 1)]
    path = tmp_path / f"{0:020d}.txnindex"
    index = TransactionIndex(FileDisk(), str(path), 0, exists=False)
    for row in rows:
        index.append(row)
    index.close()
    assert dumped_aborted(path) == rows


def test_kafka_goes_on_in_a_directory_in_which_we_went_on(kafka: ApacheKafka, tmp_path: Path) -> None:
    """Our log opens it after Kafka's clean stop, appends, rolls and stops; then Kafka starts, and serves all of it."""
    home = Path(shutil.copytree(kafka.directory, tmp_path / "kafka"))
    directory = home / "data" / DIRECTORY
    log = Log.open(FileDisk(), str(directory), CONFIG, 0)
    first_unstable = log.producers.first_undecided_offset
    assert first_unstable is not None
    ours = range(log.log_end_offset, log.log_end_offset + 40)
    for number in range(40):
        record = Record(0, 1_700_000_000_000 + number, None, VALUE, ())
        data = build_batch([record], producer_id=990, producer_epoch=0, base_sequence=number)
        log.append(memoryview(data), read_header(data), log.epochs.latest, 0)
    assert log.base_offsets[-1] in ours
    log.close()
    assert read_entries((directory / f"{ours.stop:020d}.snapshot").read_bytes())[1], "earlier batches of our producer"
    assert dump_log_segments(directory).findings == []
    with ApacheKafka(directory=home) as other:
        seen = consumed(other, "read_uncommitted")
        assert [offset for offset in seen if offset >= ours.start] == [*ours]
        assert consumed(other, "read_committed")[-1] < first_unstable
        write(producer_of(other, {}), b"Kafka's turn")
        assert consumed(other, "read_uncommitted") == [*seen, ours.stop]
        assert "orrupt" not in other.output
        other.stop()
        assert dump_log_segments(directory).findings == []


def consumed(kafka: ApacheKafka, isolation_level: str) -> list[int]:
    """The offsets that a consumer sees, up to the end that its isolation allows."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "nobody",
            "isolation.level": isolation_level,
            "enable.partition.eof": True,
            "log_level": 2,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    offsets: list[int] = []
    try:
        while (message := consumer.poll(30)) is not None:
            error = message.error()
            if error is None:
                offset = message.offset()
                assert offset is not None
                offsets.append(offset)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            return offsets
        pytest.fail("the end was not reached")
    finally:
        consumer.close()
