"""`odradek dump` says of a log what Apache Kafka's DumpLogSegments says, thing by thing, and verifies it as sound.

The logs are Kafka's own, with every codec, transactions of three producers at once and compaction; ours, after SIGKILL
and a clean stop; and the sample of the unit tests, whose transactions are made by hand. What Kafka and our broker write
is sound while they write it, too. Damage that DumpLogSegments finds is found.
"""

import random
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.lines import Line, Value
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.places import files_of
from odradek.broker.offline.dump.reading import lines_of
from odradek.broker.offline.dump.verifying import verify
from odradek.protocol.batches.compression import Codec
from processes.apache_kafka import ApacheKafka, run_tool
from processes.dump_log_segments import MAIN_CLASS, SUFFIXES, read_dump
from processes.odradek_broker import OdradekBroker, settings_words
from tests.broker.offline.dump.laid_down import ORDERS, sample_disk
from tests.compat.damage import DAMAGES, damage

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java, pytest.mark.timeout(300)]

CODECS = [codec.name.lower() for codec in Codec]
SEGMENT_BYTES = str(1 << 20)
RECORDS = 1_500
ROUNDS = 30
COMPACTION_TIMEOUT_S = 60.0
NOTHING = "OptionalLong.empty"
HEADERS: list[tuple[str, str | bytes | None]] = [("name", b"value"), ("none", None)]

BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) lastSequence: (-?\d+) producerId: (-?\d+)"
    r" producerEpoch: (-?\d+) partitionLeaderEpoch: (\d+) isTransactional: (\w+) isControl: (\w+)"
    r" deleteHorizonMs: (\S+) position: (\d+) (\w+): (-?\d+) size: (\d+) magic: 2 compresscodec: (\w+) crc: \d+"
    r" isvalid: (\w+)"
)
RECORD = re.compile(
    r"\| offset: (\d+) \w+: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+ headerKeys: \[(.*)\]"
    r"(?: endTxnMarker: (\w+) coordinatorEpoch: (\d+))?"
)
OFFSET_ENTRY = re.compile(r"offset: (\d+) position: (\d+)")
TIME_ENTRY = re.compile(r"timestamp: (\d+) offset: (\d+)")
ABORTED = re.compile(r"version: (0) producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)")
PRODUCER = re.compile(
    r"producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: (\S+)"
    r" lastTimestamp: (-?\d+)(?: firstSequence: -?\d+ lastSequence: (-?\d+) lastOffset: (-?\d+) offsetDelta: (\d+)"
    r" timestamp: -?\d+)? ?"
)

Row = tuple[object, ...]


@dataclass
class Content:
    """What stands in the files of a partition, in their order."""

    batches: list[Row] = field(default_factory=list[Row])
    records: list[Row] = field(default_factory=list[Row])
    markers: list[Row] = field(default_factory=list[Row])
    offset_entries: list[Row] = field(default_factory=list[Row])
    time_entries: list[Row] = field(default_factory=list[Row])
    aborted: list[Row] = field(default_factory=list[Row])
    producers: list[Row] = field(default_factory=list[Row])


def told_by_kafka(directory: Path) -> Content:
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    output = run_tool(MAIN_CLASS, "--deep-iteration", "--files", ",".join(map(str, files)), check=False)
    dump = read_dump(output, expects_gaps=True)
    gaps = [finding for finding in dump.findings if "Non-consecutive" not in finding]
    assert gaps == []
    content = Content()
    for line in output.splitlines():
        if found := BATCH.fullmatch(line):
            content.batches.append(tuple(None if group == NOTHING else group for group in found.groups()))
        elif found := RECORD.fullmatch(line):
            *record, marker, coordinator_epoch = found.groups()
            if marker is None:
                content.records.append(tuple(record))
            else:
                content.markers.append((record[0], record[1], marker, coordinator_epoch))
        for pattern, rows in (
            (OFFSET_ENTRY, content.offset_entries),
            (TIME_ENTRY, content.time_entries),
            (ABORTED, content.aborted),
            (PRODUCER, content.producers),
        ):
            if found := pattern.fullmatch(line):
                rows.append(found.groups())
    return content


def told_by_us(directory: Path) -> Content:
    """In the words of Kafka's tool."""
    disk, content = FileDisk(), Content()
    lines = {
        path: list(lines_of(disk, path, name, with_records=True))
        for path, name in files_of(disk, str(directory))
        if Path(path).suffix in SUFFIXES
    }
    for path in sorted(lines):
        for line in lines[path]:
            add(content, line)
    return content


def add(content: Content, line: Line) -> None:
    fields = line.fields
    match line.kind:
        case "batch":
            append_time = fields["timestamp_type"]
            content.batches.append(
                (
                    *texts(fields["base_offset"], fields["last_offset"], fields["record_count"]),
                    *texts(fields.get("base_sequence", -1), fields.get("last_sequence", -1)),
                    *texts(fields.get("producer_id", -1), fields.get("producer_epoch", -1), fields["leader_epoch"]),
                    *texts(fields["is_transactional"], fields["is_control"]),
                    optional(fields.get("delete_horizon_ms")),
                    *texts(fields["position"], append_time, fields["max_timestamp"], fields["size_bytes"]),
                    *texts(fields["codec"], fields["is_crc_valid"]),
                )
            )
        case "record":
            headers = fields["headers"]
            assert isinstance(headers, tuple)
            sizes = [len(each) if isinstance(each, bytes) else -1 for each in (fields["key"], fields["value"])]
            names = ",".join(name for name, _ in headers)
            content.records.append((*texts(fields["offset"], fields["timestamp_ms"], *sizes), names))
        case "marker":
            content.markers.append(
                texts(*(fields[name] for name in ("offset", "timestamp_ms", "type", "coordinator_epoch")))
            )
        case "index_entry":
            content.offset_entries.append(texts(*fields.values()))
        case "time_entry":
            content.time_entries.append(texts(*fields.values()))
        case "aborted_transaction":
            content.aborted.append(texts(*fields.values()))
        case "producer":
            txn = fields["current_txn_first_offset"]
            known = texts(*(fields[name] for name in ("last_sequence", "last_offset", "offset_delta")))
            content.producers.append(
                (
                    *texts(fields["producer_id"], fields["epoch"], fields["coordinator_epoch"]),
                    NOTHING if txn == -1 else optional(txn),
                    *texts(fields["timestamp_ms"]),
                    *(known if fields["last_offset"] != -1 else (None, None, None)),
                )
            )
        case kind:
            assert kind == "earlier_batch", line


def texts(*values: Value) -> tuple[str, ...]:
    assert not any(isinstance(value, bytes) for value in values)
    return tuple(str(value).lower() if isinstance(value, bool) else str(value) for value in values)


def optional(value: Value) -> str | None:
    return None if value is None else f"OptionalLong[{texts(value)[0]}]"


def reports(data: Path) -> dict[str, Report]:
    """What verifying says of each partition. Raises Inconsistency."""
    return {Path(each.path).name: each for each in verify(FileDisk(), str(data)) if isinstance(each, Report)}


# -- Apache Kafka's logs ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory of Kafka, verified while it runs, after a kill, and stopped cleanly in the end."""
    directory = tmp_path_factory.mktemp("apache-kafka")
    with ApacheKafka(directory=directory, properties={"log.cleaner.backoff.ms": "100"}) as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
            admin.create_topics(
                [
                    NewTopic("codecs", 2, 1, topic_configs={"segment.bytes": SEGMENT_BYTES}),
                    NewTopic("transfers", 1, 1, topic_configs={"segment.bytes": SEGMENT_BYTES}),
                    NewTopic("compacted", 1, 1, topic_configs={"segment.bytes": SEGMENT_BYTES, **compacted}),
                ]
            )
        rng = random.Random(5)
        for codec in CODECS:
            send(kafka.bootstrap, codec, rng, "codecs", 2)
        transact(kafka, rng)
        wait_for_compaction(kafka)
        kafka.kill()
        assert reports(kafka.data_directory)["transfers-0"].records > 0
        kafka.start()
        kafka.stop()
        yield kafka.data_directory


def send(bootstrap: str, codec: str, rng: random.Random, topic: str, partitions: int) -> None:
    """Idempotent, in many batches. Half of a value can be compressed."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.size": 10_000,
            "log_level": 2,
        }
    )
    for number in range(RECORDS):
        value = rng.randbytes(400) + b"." * 400
        producer.produce(topic, value, str(number), partition=number % partitions, headers=HEADERS)
        producer.poll(0)
    assert producer.flush(60) == 0


def transact(kafka: ApacheKafka, rng: random.Random) -> None:
    """Three producers whose transactions overlap; a third of them is aborted."""
    producers: list[Producer] = []
    for number in range(3):
        settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"txn-{number}", "log_level": 2}
        producers.append(Producer(settings))
        producers[-1].init_transactions(60)
    for _ in range(ROUNDS):
        for producer in producers:
            producer.begin_transaction()
        for number in range(90):
            producer = producers[number % 3]
            producer.produce("transfers", rng.randbytes(500), str(number))
            value = None if number % 7 == 0 else rng.randbytes(500)
            producer.produce("compacted", value, str(rng.randrange(50)))
        for producer in rng.sample(producers, 3):
            producer.flush(60)
            if rng.random() < 0.33:
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
        assert reports(kafka.data_directory / "transfers-0"), "sound while Kafka writes the markers"


def wait_for_compaction(kafka: ApacheKafka) -> None:
    checkpoint = kafka.data_directory / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + COMPACTION_TIMEOUT_S
    while "compacted 0" not in checkpoint.read_text():
        assert time.monotonic() < deadline, "Kafka has not compacted"
        reports(kafka.data_directory / "compacted-0")
        time.sleep(0.2)  # Kafka tells nobody when it has compacted


def test_kafkas_directory_is_sound(kafkas: Path) -> None:
    found = reports(kafkas)
    assert found["codecs-0"].records + found["codecs-1"].records == len(CODECS) * RECORDS
    assert found["transfers-0"].segments > 1
    assert found["transfers-0"].aborted_transactions > 10
    assert found["transfers-0"].gaps == 0
    assert found["compacted-0"].gaps > 10
    assert found["compacted-0"].records < found["transfers-0"].records / 2
    assert all(report.leader_epochs for report in found.values())
    assert {"__cluster_metadata-0", "__transaction_state-0"} <= found.keys()


@pytest.mark.parametrize("name", ["codecs-0", "transfers-0", "compacted-0", "__transaction_state-0"])
def test_we_say_of_kafkas_log_what_kafka_says(kafkas: Path, name: str) -> None:
    theirs = told_by_kafka(kafkas / name)
    assert told_by_us(kafkas / name) == theirs
    assert len(theirs.batches) > 10
    assert len(theirs.offset_entries) > 3
    assert len(theirs.time_entries) > 3
    counts = reports(kafkas)[name]
    assert counts.batches == len(theirs.batches)
    assert counts.records == len(theirs.records) + len(theirs.markers)
    assert (counts.offset_entries, counts.time_entries) == (len(theirs.offset_entries), len(theirs.time_entries))
    assert counts.aborted_transactions == len(theirs.aborted)
    if name in ("transfers-0", "compacted-0"):
        assert theirs.markers and theirs.aborted and theirs.producers


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_that_kafkas_tool_finds_is_found(kafkas: Path, tmp_path: Path, kind: str) -> None:
    directory = Path(shutil.copytree(kafkas / "codecs-0", tmp_path / "codecs-0"))
    assert reports(directory)
    damage(directory, kind)
    with pytest.raises(Inconsistency):
        reports(directory)


# -- our logs ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory of ours, verified while it is written to, after a kill, and stopped cleanly in the end."""
    data = tmp_path_factory.mktemp("dumped") / "data"
    options = {"log.segment.bytes": SEGMENT_BYTES, "log.index.interval.bytes": "1000", "log.preallocate": "true"}
    with OdradekBroker(data, *settings_words(options)) as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
        rng = random.Random(7)
        for codec in CODECS:
            send_and_verify(broker, codec, rng, data)
        broker.kill()
        assert sum(report.records for report in reports(data).values()) == len(CODECS) * RECORDS
        broker.start()
        assert broker.terminate() == 0
    yield data


def send_and_verify(broker: OdradekBroker, codec: str, rng: random.Random, data: Path) -> None:
    """librdkafka sends from a thread of its own, while we look at the files again and again."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.size": 10_000,
            "log_level": 2,
        }
    )
    for number in range(RECORDS):
        producer.produce("orders", rng.randbytes(400) + b"." * 400, str(number), partition=number % 2)
    looks = 0
    while len(producer):
        producer.poll(0)
        assert len(reports(data)) == 2
        looks += 1
    assert looks > 1


def test_our_directory_is_sound(ours: Path) -> None:
    found = reports(ours)
    assert sum(report.records for report in found.values()) == len(CODECS) * RECORDS
    for report in found.values():
        assert report.segments > 1
        assert report.snapshots > 1
        assert report.notes == []


@pytest.mark.parametrize("name", ["orders-0", "orders-1"])
def test_we_say_of_our_log_what_kafka_says(ours: Path, name: str) -> None:
    theirs = told_by_kafka(ours / name)
    assert told_by_us(ours / name) == theirs
    assert len(theirs.batches) > 100
    assert len(theirs.offset_entries) > 100
    assert len(theirs.producers) > len(CODECS), "of more than one snapshot"


def test_we_say_of_transactions_made_by_hand_what_kafka_says(tmp_path: Path) -> None:
    disk = sample_disk()
    for name in disk.sizes(ORDERS):
        (tmp_path / name).write_bytes(disk.read_whole(f"{ORDERS}/{name}"))
    theirs = told_by_kafka(tmp_path)
    assert told_by_us(tmp_path) == theirs
    assert len(theirs.batches) == 13
    assert len(theirs.markers) == len(theirs.aborted) + 1 == 3
