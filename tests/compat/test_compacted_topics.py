"""A compacted topic, side by side: the same batches go to Apache Kafka and to us, and the same records survive.

Both roll by `segment.ms`, by the timestamps that the batches carry, and compact with `min.cleanable.dirty.ratio` 0.01.
What is left before the active segment is compared, record by record, as soon as it is what it has to be, on both. Then
DumpLogSegments reads our directory after a clean stop, and after SIGKILL, start and stop; so it does our snapshots.
"""

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from processes.apache_kafka import ApacheKafka, run_tool
from processes.dump_log_segments import MAIN_CLASS, SUFFIXES, Dump, read_dump
from processes.odradek_broker import OdradekBroker, settings_words
from tests.broker.api.fetching import request, told, wanted
from tests.compat.peer import Peer

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

TOPIC = "accounts"
SEED = 7
KEYS = 60
BATCHES = 900
SEGMENT_MS = 2_000
STEP_MS = 100
PRODUCERS = {4000: 0, 4001: 3}
"""Ids and epochs."""
CONFIGS = {
    "cleanup_policy": "compact",
    "segment_ms": str(SEGMENT_MS),
    "min_cleanable_dirty_ratio": "0.01",
}
OPTIONS = {"log.cleaner.backoff.ms": "100", "log.index.interval.bytes": "300"}
PATIENCE_S = 60.0
PAUSE_S = 0.1
"""Between two questions, not instead of them."""

Survivor = tuple[int, bytes | None, bytes | None]
"""Offset, key, value."""


def batches(start_ms: int) -> Iterator[bytes]:
    """Of several records, with every codec, idempotent or not; a quarter are tombstones."""
    rng = random.Random(SEED)
    sequences = dict.fromkeys(PRODUCERS, 0)
    for number in range(BATCHES):
        records = [
            Record(
                delta,
                start_ms + number * STEP_MS + delta,
                b"account-%d" % rng.randrange(KEYS),
                None if rng.random() < 0.25 else rng.randbytes(rng.randrange(80)),
                (),
            )
            for delta in range(rng.randrange(1, 6))
        ]
        producer_id = rng.choice((-1, *PRODUCERS))
        if producer_id == -1:
            yield build_batch(records, codec=rng.choice(list(Codec)))
            continue
        yield build_batch(
            records,
            codec=rng.choice(list(Codec)),
            producer_id=producer_id,
            producer_epoch=PRODUCERS[producer_id],
            base_sequence=sequences[producer_id],
        )
        sequences[producer_id] += len(records)


@dataclass
class Side:
    """One broker, as a client and as a directory."""

    peer: Peer
    directory: Path

    def produce(self, data: bytes) -> int:
        partition = PartitionProduceData(index=0, records=data)
        topic = TopicProduceData(name=TOPIC, partition_data=[partition])
        sent = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        (answer,) = self.peer.ask(sent, 9).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        return answer.base_offset

    def survivors(self) -> list[Survivor]:
        """All records, read from the start."""
        found: list[Survivor] = []
        offset = high_watermark = 0
        while True:
            (answer,) = told(self.peer.ask(request(wanted(offset=offset, max_bytes=50_000), topic=TOPIC), 12))
            assert answer.error_code == ErrorCode.NONE
            high_watermark = answer.high_watermark
            if offset >= high_watermark:
                return found
            records = memoryview(answer.records or b"")
            assert len(records), f"nothing at {offset} of {high_watermark}"
            for position, header in iterate_batches(records):
                batch = records[position : position + header.size_bytes]
                found += [(record.offset, record.key, record.value) for record in iterate_records(batch)]
                assert header.last_offset >= offset, "it goes on"
                offset = header.last_offset + 1

    @property
    def active_offset(self) -> int:
        return max(int(path.name[:20]) for path in self.directory.glob("*.log"))


def expected_of(written: list[Survivor], active_offset: int) -> list[Survivor]:
    """Before the active segment, of each key the newest."""
    newest = {key: offset for offset, key, _ in written if offset < active_offset}
    return [record for record in written if record[0] >= active_offset or newest[record[1]] == record[0]]


@dataclass
class Compacted:
    """Both sides when they had compacted everything, and ours while it still runs."""

    written: list[Survivor]
    active_offsets: tuple[int, int]
    ours: list[Survivor]
    kafkas: list[Survivor]
    broker: OdradekBroker
    directory: Path


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compacted]:
    data_dir = tmp_path_factory.mktemp("compacted") / "data"
    options = settings_words(OPTIONS)
    with ApacheKafka(properties=OPTIONS) as kafka, OdradekBroker(data_dir, *options) as broker:
        sides = [
            Side(Peer(broker.host, broker.port), data_dir / f"{TOPIC}-0"),
            Side(Peer(kafka.host, kafka.port), kafka.data_directory / f"{TOPIC}-0"),
        ]
        written: list[Survivor] = []
        for side in sides:
            side.peer.create_topic(TOPIC, 1, **CONFIGS)
        for data in batches(int(time.time() * 1000) - BATCHES * STEP_MS):
            base_offsets = [side.produce(data) for side in sides]
            assert base_offsets == [len(written), len(written)]
            written += [(base_offsets[0] + record.offset, record.key, record.value) for record in iterate_records(data)]
        found = [wait_until_compacted(side, written) for side in sides]
        yield Compacted(
            written, (sides[0].active_offset, sides[1].active_offset), found[0], found[1], broker, sides[0].directory
        )
        for side in sides:
            side.peer.close()


def wait_until_compacted(side: Side, written: list[Survivor]) -> list[Survivor]:
    """Until what is read is what has to be left, or is what it stays at."""
    expected = expected_of(written, side.active_offset)
    deadline = time.monotonic() + PATIENCE_S
    while (found := side.survivors()) != expected and time.monotonic() < deadline:
        time.sleep(PAUSE_S)  # between two looks: no broker tells when it has compacted
    return found


def test_the_same_records_survive(compacted: Compacted) -> None:
    ours, kafkas = compacted.active_offsets
    assert ours == kafkas, "both rolled at the same batches"
    assert compacted.ours == compacted.kafkas
    assert compacted.ours == expected_of(compacted.written, ours)
    before = [record for record in compacted.ours if record[0] < ours]
    assert len(before) <= KEYS
    assert len(compacted.written) > 2000
    assert any(value is None for _, _, value in before), "tombstones are kept for a day"


def test_kafkas_tool_has_nothing_to_complain_about_in_our_directory(compacted: Compacted) -> None:
    """After a clean stop; after SIGKILL, a start and a stop; and after what was produced and compacted then."""
    broker, directory = compacted.broker, compacted.directory
    stopped: list[tuple[Dump, str]] = []
    broker.restart()
    assert broker.terminate() == 0
    stopped.append(dumped(directory))
    broker.start()
    broker.kill()
    broker.start()
    assert broker.terminate() == 0
    stopped.append(dumped(directory))
    for dump, output in stopped:
        assert [finding for finding in dump.findings if not is_gap(finding)] == []
        assert dump.record_count == len(compacted.ours)
        assert dump.index_entry_count > 0
        assert dump.time_index_entry_count > 0
        states = re.findall(r"producerId: (\d+) producerEpoch: (\d+) .*lastSequence: (\d+) lastOffset: (\d+)", output)
        assert {(int(state[0]), int(state[1])) for state in states} == set(PRODUCERS.items())
    assert [batch.base_offset for batch in stopped[0][0].batches] == [
        batch.base_offset for batch in stopped[1][0].batches
    ]
    broker.start()
    side = Side(Peer(broker.host, broker.port), directory)
    assert side.survivors() == compacted.ours
    side.peer.close()


def is_gap(finding: str) -> bool:
    """The tool calls the offsets of any compacted log non-consecutive; they have to increase."""
    match = re.fullmatch(r"Non-consecutive offsets in \S+: (-?\d+) is followed by (\d+)", finding)
    return match is not None and int(match[1]) < int(match[2])


def dumped(directory: Path) -> tuple[Dump, str]:
    """What DumpLogSegments says, of a log with gaps."""
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    output = run_tool(MAIN_CLASS, "--deep-iteration", "--files", ",".join(map(str, files)), check=False)
    dump = read_dump(output, expects_gaps=True)
    assert dump.files == [path.name for path in files]
    assert {path.suffix for path in files} >= {".log", ".index", ".timeindex", ".snapshot"}
    return dump, output
