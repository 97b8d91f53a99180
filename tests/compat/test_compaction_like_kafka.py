"""Apache Kafka compacts the same logs, and leaves the same batches: random ones with producers and transactions, made
by hand, laid into its data directory while it is stopped, compacted in two rounds, and compared with our own rounds.

Between the rounds each log grows, and Kafka's delete horizons (a second, here) pass. What may differ: the horizons
themselves, which hang on the clock; base_timestamp, which Kafka takes from the first record that stays; and a marker
that alone carries its producer's epoch, which Kafka empties after its horizon (compaction.py says why we do not).
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from odradek.broker.log.compaction import LastRecord
from odradek.protocol.batches.batch import BatchHeader, iterate_batches, read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import Record, iterate_records
from processes.apache_kafka import ApacheKafka
from tests.broker.log.compacted_logs import (
    KeyValue,
    MemoryLog,
    MemorySegment,
    data_batch,
    horizon_of,
    last_of_producers,
    marker_batch,
    open_transactions,
)

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java]

TOPIC = "compacted"
LOGS = 12
SEED = 5
FENCED = 4
DELETE_RETENTION_MS = 1000
TOPIC_CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "segment.ms": "604800000",
}
# Without these Kafka reads its logs from the start and makes their indexes and producer states anew.
UNCLEAN = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")
ROUND_TIMEOUT_S = 60.0


class Writer:
    """Appends to a log what a seed says: producer 0 is none, 1 is idempotent, 2 and 3 write transactions, and FENCED
    was fenced before it wrote anything."""

    def __init__(self, rng: random.Random, now_ms: int) -> None:
        self.rng = rng
        self.log = MemoryLog()
        self.now_ms = now_ms
        self.epochs: dict[int, int] = {1: 0, 2: 0, 3: 0, FENCED: 9}
        self.sequences: dict[int, int] = {1: 0, 2: 0, 3: 0}
        self.end(FENCED, is_commit=False, bumps=False)

    def grow(self) -> None:
        """Some dozens of batches in several segments; at the end a segment with one record, which stays active."""
        for _ in range(self.rng.randrange(20, 60)):
            kind = self.rng.random()
            if kind < 0.2:
                self.end(self.rng.choice((2, 3)), is_commit=self.rng.random() < 0.5, bumps=self.rng.random() < 0.2)
            elif kind < 0.3:
                self.log.roll()
            else:
                self.produce(self.rng.randrange(4))
        for producer in open_transactions(self.log.appended):
            self.end(producer, is_commit=self.rng.random() < 0.5, bumps=False)
        self.log.roll()
        self.log.append(data_batch(self.log.next_offset, (b"active", b"1"), timestamp_ms=self.now_ms))

    def produce(self, producer_id: int) -> None:
        rng = self.rng
        records = [self.record() for _ in range(rng.randrange(1, 5))]
        producer = (-1, -1, -1)
        if producer_id:
            producer = producer_id, self.epochs[producer_id], self.sequences[producer_id]
            self.sequences[producer_id] += len(records)
        self.log.append(
            data_batch(
                self.log.next_offset,
                *records,
                timestamp_ms=self.now_ms + rng.randrange(-50, 50),
                producer=producer,
                is_transactional=producer_id >= 2,
                codec=rng.choice((Codec.NONE, *Codec)),
                append_time_ms=self.now_ms if rng.random() < 0.2 else None,
                headers=(("name", b"value"), ("null", None)) if rng.random() < 0.3 else (),
            )
        )

    def record(self) -> KeyValue:
        key = None if self.rng.random() < 0.05 else b"key-%d" % self.rng.randrange(12)
        return key, None if self.rng.random() < 0.3 else self.rng.randbytes(self.rng.randrange(30))

    def end(self, producer_id: int, *, is_commit: bool, bumps: bool) -> None:
        """Also where no transaction is open: a fence."""
        if bumps:
            self.epochs[producer_id] += 1
            self.sequences[producer_id] = 0
        offset, epoch = self.log.next_offset, self.epochs[producer_id]
        self.log.append(marker_batch(offset, producer_id, epoch, is_commit=is_commit, timestamp_ms=self.now_ms))


@dataclass
class Compacted:
    """What is left of a log after a round."""

    ours: list[bytes]
    kafkas: list[bytes]
    producers: dict[int, LastRecord]


@pytest.fixture(scope="module")
def rounds() -> list[list[Compacted]]:
    """Two rounds over all logs."""
    now_ms = time.time_ns() // 1_000_000
    writers = [Writer(random.Random(SEED * 1000 + number), now_ms) for number in range(LOGS)]
    found: list[list[Compacted]] = []
    properties = {"log.cleaner.backoff.ms": "100"}
    with ApacheKafka(properties=properties) as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, LOGS, 1, topic_configs=TOPIC_CONFIGS)])
        directories = [kafka.data_directory / f"{TOPIC}-{number}" for number in range(LOGS)]
        kafka.stop()
        for round_ in range(2):
            for writer, directory in zip(writers, directories, strict=True):
                writer.grow()
                # In the second round the first segment is the one that Kafka has made in the first.
                lay_down(directory, writer.log.segments[round_:], kept=round_)
            for name in UNCLEAN:
                (kafka.data_directory / name).unlink(missing_ok=True)
            kafka.start()
            wait_for_round(kafka.data_directory, [writer.log.segments[-1].base_offset for writer in writers])
            kafka.stop()
            for writer in writers:
                writer.log.clean(now_ms + 10 * round_ * DELETE_RETENTION_MS, delete_retention_ms=DELETE_RETENTION_MS)
            found.append(
                [
                    Compacted(writer.log.batches, batches_in(directory), last_of_producers(writer.log.appended))
                    for writer, directory in zip(writers, directories, strict=True)
                ]
            )
    return found


def lay_down(directory: Path, segments: list[MemorySegment], *, kept: int) -> None:
    """Writes the segments behind the first `kept` of those that are there. All else Kafka makes anew from them."""
    stays = [*sorted(directory.glob("*.log"))[:kept], directory / "partition.metadata"]
    for path in directory.iterdir():
        if path not in stays:
            path.unlink()
    for segment in segments:
        content = b"".join(with_leader_epoch_0(data) for data in segment.batches)
        (directory / f"{segment.base_offset:020d}.log").write_bytes(content)


def with_leader_epoch_0(data: bytes) -> bytes:
    return data[:12] + bytes(4) + data[16:]


def batches_in(directory: Path) -> list[bytes]:
    contents = [path.read_bytes() for path in sorted(directory.glob("*.log"))]
    return [
        data[position : position + header.size_bytes] for data in contents for position, header in iterate_batches(data)
    ]


def wait_for_round(data_directory: Path, ends: list[int]) -> None:
    """Until Kafka's checkpoint says that every log has been compacted up to its active segment."""
    expected = {f"{TOPIC} {number} {end}" for number, end in enumerate(ends)}
    deadline = time.monotonic() + ROUND_TIMEOUT_S
    checkpoint = data_directory / "cleaner-offset-checkpoint"
    while not (checkpoint.exists() and expected <= set(checkpoint.read_text().splitlines())):
        assert time.monotonic() < deadline, f"{checkpoint.read_text()} instead of {expected}"
        time.sleep(0.1)  # between two looks: Kafka tells nobody when it has compacted


def essence(data: bytes) -> tuple[BatchHeader, bool, list[Record]]:
    """All of a batch but what may differ: a header without them, whether there is a horizon, the records."""
    header = read_header(data)
    plain = header._replace(batch_length=0, crc=0, base_timestamp=0, partition_leader_epoch=0)
    return plain, horizon_of(header) is not None, list(iterate_records(data))


def carries_epoch(data: bytes, producers: dict[int, LastRecord]) -> bool:
    header = read_header(data)
    return header.is_control and producers.get(header.producer_id) == LastRecord(None, header.producer_epoch)


@pytest.mark.parametrize("round_", [0, 1])
def test_the_same_batches_are_left(rounds: list[list[Compacted]], round_: int) -> None:
    for log in rounds[round_]:
        assert [read_header(data).base_offset for data in log.ours] == [
            read_header(data).base_offset for data in log.kafkas
        ]
        for ours, kafkas in zip(log.ours, log.kafkas, strict=True):
            is_emptied = read_header(kafkas).is_control and not read_header(kafkas).record_count
            assert is_emptied == (round_ == 1 and read_header(kafkas).producer_id == FENCED)
            if is_emptied:
                assert carries_epoch(ours, log.producers)
                assert read_header(ours).record_count == 1
            else:
                assert essence(ours) == essence(kafkas)


def test_what_was_compared_is_what_compaction_is_about(rounds: list[list[Compacted]]) -> None:
    """Each kind of batch was left at least once: otherwise the seed has to be another one."""
    for logs in rounds:
        headers = [read_header(data) for log in logs for data in log.kafkas]
        data = [header for header in headers if not header.is_control]
        assert any(header.record_count < header.last_offset_delta + 1 for header in data if header.record_count)
        assert any(header.record_count and horizon_of(header) for header in data)
        assert any(not header.record_count for header in data)
        assert any(header.is_control and header.record_count for header in headers)
        assert any(header.is_control and horizon_of(header) for header in headers)
    gone = {offset_of(data) for data in rounds[0][0].kafkas} - {offset_of(data) for data in rounds[1][0].kafkas}
    assert gone, "the second round removed batches that the first had left"


def offset_of(data: bytes) -> int:
    return read_header(data).base_offset
