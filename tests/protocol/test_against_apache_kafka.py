"""Apache Kafka as the judge of our batches: it accepts those that we build, and refuses those that we refuse.

Kafka decompresses and walks every batch that it is sent. What it stored is read by our own code, by kafka-python and by
librdkafka. Where our answer to a bad batch is another than Kafka's, the table says why.
"""

import socket
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import confluent_kafka
import cramjam
import pytest
from kafka import KafkaConsumer, TopicPartition

from odradek.protocol.batches.batch import check_batch, crc_matches, iterate_batches
from odradek.protocol.batches.compression import Codec, compress
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, check_records, iterate_records
from odradek.protocol.codec import codec
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from processes.apache_kafka import ApacheKafka, receive
from tests.protocol import plain

pytestmark = [pytest.mark.java, pytest.mark.slow]

R = TypeVar("R", bound=Response)
NOW = 1_700_000_000_000
RECORDS = [
    Record(0, NOW, None, b"a value alone"),
    Record(1, NOW - 77, b"key", None),
    Record(2, NOW + 1, b"", b""),
    Record(3, NOW + 2, b"k" * 100, b"v" * 10_000, (("first", b"1"), ("é", b""), ("none", None))),
    *(Record(n, NOW + n, b"%d" % n, b"value %d " % n * (n % 50)) for n in range(4, 2000)),
]


class Asker:
    """Asks Apache Kafka over one connection, with our own messages."""

    def __init__(self, kafka: ApacheKafka) -> None:
        self._sock = socket.create_connection((kafka.host, kafka.port), timeout=30)

    def ask(self, request: Request[R], version: int) -> R:
        header = RequestHeader(request.api_key, version, 1, "odradek")
        parts = request_frame(header, request.is_flexible(version), codec.encode_parts(request, version))
        self._sock.sendall(b"".join(parts))
        frame = receive(self._sock, int.from_bytes(receive(self._sock, 4)))
        _, position = read_response_header(frame, request.response_type.is_flexible(version))
        return codec.decode(request.response_type, version, frame, position)

    def create(self, topic: str) -> None:
        """Creates a topic of one partition, and waits until it has a leader."""
        wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        answer = self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 5)
        assert answer.topics[0].error_code == ErrorCode.NONE
        deadline = time.monotonic() + 30
        while self.fetch(topic) is None:
            assert time.monotonic() < deadline

    def produce(self, topic: str, batch: bytes) -> ErrorCode:
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        answer = self.ask(ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def fetch(self, topic: str) -> bytes | None:
        """All that the topic holds; None before it has a leader. Kafka is let wait, at most 100 ms."""
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 30,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
            forgotten_topics_data=[],
        )
        (answer,) = self.ask(request, 11).responses[0].partitions
        return None if answer.error_code else bytes(answer.records or b"")

    def close(self) -> None:
        self._sock.close()


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka() as running:
        yield running


@pytest.fixture(scope="module")
def asker(kafka: ApacheKafka) -> Iterator[Asker]:
    asking = Asker(kafka)
    asking.create("refused")
    yield asking
    asking.close()


@pytest.mark.parametrize("kind", Codec)
def test_kafka_accepts_our_batches_and_everybody_reads_them_back(kind: Codec, kafka: ApacheKafka, asker: Asker) -> None:
    topic = f"accepted-{kind.name.lower()}"
    asker.create(topic)
    batch = build_batch(RECORDS, codec=kind)
    check_records(batch, check_batch(memoryview(batch)))
    assert asker.produce(topic, batch) is ErrorCode.NONE

    stored = asker.fetch(topic) or b""
    assert stored[21:] == batch[21:]  # what the checksum covers has not been touched
    assert [(position, crc_matches(stored)) for position, _ in iterate_batches(stored)] == [(0, True)]
    assert list(iterate_records(stored)) == RECORDS

    assert librdkafka_reads(kafka.bootstrap, topic) == RECORDS
    if kind in (Codec.NONE, Codec.GZIP):  # kafka-python needs further packages for the others
        assert kafka_python_reads(kafka.bootstrap, topic) == RECORDS


def librdkafka_reads(bootstrap: str, topic: str) -> list[Record]:
    consumer: Any = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "check.crcs": True})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    read: list[Record] = []
    while len(read) < len(RECORDS):
        messages = consumer.consume(len(RECORDS), timeout=20)
        assert messages, f"{len(read)} of {len(RECORDS)} records arrived"
        for one in messages:
            assert one.error() is None
            headers = tuple(one.headers() or ())
            read.append(Record(one.offset(), one.timestamp()[1], one.key(), one.value(), headers))
    consumer.close()
    return read


def kafka_python_reads(bootstrap: str, topic: str) -> list[Record]:
    consumer: Any = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000)
    consumer.assign([TopicPartition(topic, 0)])
    read = [
        Record(one.offset, one.timestamp, one.key, one.value, tuple(one.headers))
        for one in islice(consumer, len(RECORDS))
    ]
    consumer.close()
    return read


class Refusal(NamedTuple):
    """A batch, Kafka's answer to it, and ours where it is another, for a reason."""

    batch: bytes
    kafka: ErrorCode
    ours: ErrorCode | None = None
    because: str = ""


def packed(kind: Codec, payload: bytes, record_count: int = 1) -> bytes:
    return plain.batch(payload=payload, attributes=kind, record_count=record_count)


GOOD = plain.batch()
THREE = [plain.record(offset) for offset in range(3)]
NONE, INVALID, CORRUPT = ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
UNEXPECTED = ErrorCode.UNKNOWN_SERVER_ERROR
UNSUPPORTED = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
CANNOT_HELP = "sending again cannot help, so the code is one that is not retried"
NOT_EXPECTED = "an error that Kafka does not expect, and so does not name"
CLEARED = "Kafka clears the bit, which no client sets"

REFUSALS = {
    "nothing": Refusal(b"", INVALID),
    "cut": Refusal(GOOD[:-1], INVALID),
    "two batches": Refusal(GOOD + GOOD, INVALID),
    "a byte too many": Refusal(GOOD + b"\x00", NONE, INVALID, "Kafka cuts it off"),
    "magic 0": Refusal(plain.batch(magic=0), INVALID),
    "magic 1": Refusal(plain.batch(magic=1), INVALID),
    "magic 3": Refusal(plain.batch(magic=3), CORRUPT, INVALID, CANNOT_HELP),
    "length below the header's": Refusal(plain.batch(batch_length=48), CORRUPT),
    "negative length": Refusal(plain.batch(batch_length=-1), CORRUPT),
    "wrong checksum": Refusal(plain.batch(crc=0), CORRUPT),
    "base offset 1": Refusal(plain.batch(base_offset=1), INVALID),
    "no records": Refusal(plain.batch((), record_count=0), INVALID),
    "negative count": Refusal(plain.batch(record_count=-5), INVALID),
    "fewer offsets than records": Refusal(plain.batch(THREE, last_offset_delta=1), INVALID),
    "more offsets than records": Refusal(plain.batch(THREE, last_offset_delta=3), INVALID),
    "control": Refusal(plain.batch(attributes=0x20), INVALID),
    "codec 5": Refusal(plain.batch(attributes=5), UNEXPECTED, UNSUPPORTED, NOT_EXPECTED),
    "no sequence": Refusal(plain.batch(producer_id=1, producer_epoch=0), INVALID),
    "no producer epoch": Refusal(plain.batch(producer_id=1, base_sequence=0), NONE, INVALID, "no client sends it"),
    "LogAppendTime": Refusal(plain.batch(attributes=8), NONE, ErrorCode.INVALID_TIMESTAMP, CLEARED),
    "LogAppendTime, no timestamps": Refusal(
        plain.batch(attributes=8, base_timestamp=-1, max_timestamp=-1), ErrorCode.INVALID_TIMESTAMP
    ),
    "a record in 6 bytes": Refusal(plain.batch(payload=bytes(6)), INVALID),
    "fewer records than announced": Refusal(plain.batch(THREE, record_count=4), INVALID),
    "more records than announced": Refusal(plain.batch(THREE, record_count=2), INVALID),
    "a byte after the records": Refusal(plain.batch(payload=plain.record() + b"\x00", record_count=1), INVALID),
    "a record shorter than it says": Refusal(plain.batch([plain.record(length=8)]), INVALID),
    "a header that is not there": Refusal(plain.batch([plain.record(header_count=1)]), INVALID),
    "negative header count": Refusal(plain.batch([plain.record(header_count=-1)]), INVALID),
    "a header without a key": Refusal(plain.batch([plain.record(headers=[(None, b"v")])]), INVALID),
    "an offset left out": Refusal(
        plain.batch([plain.record(0), plain.record(2)]),
        NONE,
        INVALID,
        "Kafka looks at offsets in compressed batches only",
    ),
    "later than max_timestamp": Refusal(plain.batch([plain.record(timestamp_delta=1)]), NONE),
    "linked lz4 blocks": Refusal(
        packed(Codec.LZ4, bytes(cramjam.lz4.compress(plain.record()))), UNEXPECTED, CORRUPT, NOT_EXPECTED
    ),
} | {
    f"{kind.name.lower()}: {name}": refusal
    for kind in Codec
    if kind is not Codec.NONE
    for name, refusal in {
        "never compressed": Refusal(packed(kind, b"this was never compressed"), UNEXPECTED, CORRUPT, NOT_EXPECTED),
        "cut": Refusal(
            packed(kind, compress(kind, plain.record(value=bytes(300)))[:-2]), UNEXPECTED, CORRUPT, NOT_EXPECTED
        ),
        "fewer records than announced": Refusal(packed(kind, compress(kind, b"".join(THREE)), 4), INVALID),
        "more records than announced": Refusal(packed(kind, compress(kind, b"".join(THREE)), 2), INVALID),
        "an offset left out": Refusal(
            packed(kind, compress(kind, plain.record(0) + plain.record(2)), 2), UNEXPECTED, INVALID, NOT_EXPECTED
        ),
        "a record shorter than it says": Refusal(
            packed(kind, compress(kind, plain.record(length=8))), NONE, INVALID, "Kafka does not compare in these"
        ),
    }.items()
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_batches_are_refused_as_kafka_does(case: str, asker: Asker) -> None:
    batch, kafkas, other, because = REFUSALS[case]
    assert asker.produce("refused", batch) is kafkas
    ours = ErrorCode.NONE
    try:
        check_records(batch, check_batch(memoryview(batch)))
    except KafkaError as error:
        ours = error.code
    assert ours is (kafkas if other is None else other), because
