"""A data directory that Apache Kafka itself wrote, of all that an adoption has to take over, and what was written.

    codecs  1 partition, each codec, idempotent, retention.ms=-1
    ledger  3 partitions, transactions of 20 records: committed, aborted, committed, …; the last one is left open
    table   2 partitions, compacted by Kafka as it was written

Segments are as small as Kafka allows, 1 MiB. kafka-python writes `codecs`, librdkafka the others.
"""

import random
import time
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, KafkaProducer

from odradek.protocol.batches.compression import Codec
from processes.apache_kafka import ApacheKafka

PARTITIONS: Final = {"codecs": 1, "ledger": 3, "table": 2}
CONFIGS: Final = {
    "codecs": {"segment.bytes": "1048576", "retention.ms": "-1"},
    "ledger": {"segment.bytes": "1048576", "index.interval.bytes": "1024"},
    "table": {
        "segment.bytes": "1048576",
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "max.message.bytes": "2000000",
    },
}
PROPERTIES: Final = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "500"}
CODECS: Final = [codec.name.lower() for codec in Codec]
RECORDS_OF_A_CODEC: Final = 1_000
TRANSACTIONS: Final = 8
RECORDS_OF_A_TRANSACTION: Final = 60
KEYS_OF_THE_TABLE: Final = 100
RECORDS_OF_THE_TABLE: Final = 4_000
PATIENCE_S: Final = 60.0

Place = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record as it was sent and acknowledged."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(slots=True)
class Load:
    """What a Kafka holds. `aborted` and `undecided` are places of records that readers of committed ones do not get."""

    records: dict[Place, Written] = field(default_factory=dict[Place, Written])
    aborted: set[Place] = field(default_factory=set[Place])
    undecided: set[Place] = field(default_factory=set[Place])
    topic_ids: dict[str, str] = field(default_factory=dict[str, str])
    open_producers: list[Producer] = field(default_factory=list[Producer])
    """With a transaction under way. To be closed when their Kafka is gone, which cannot abort it then."""

    @property
    def newest_of_the_table(self) -> dict[tuple[int, bytes], Place]:
        """For each partition and key, where its last record is."""
        newest: dict[tuple[int, bytes], Place] = {}
        for place in sorted(place for place in self.records if place[0] == "table"):
            newest[place[1], self.records[place].key] = place
        return newest


def write(kafka: ApacheKafka) -> Load:
    """Creates the topics and fills them."""
    load, rng = Load(), random.Random(43)
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        topics: dict[str, Any] = {
            name: {"num_partitions": count, "replication_factor": 1, "configs": CONFIGS[name]}
            for name, count in PARTITIONS.items()
        }
        admin.create_topics(topics)
    load.topic_ids = topic_ids(kafka.bootstrap)
    for codec in CODECS:
        write_codec(kafka, codec, rng, load)
    write_table(kafka, rng, load)
    write_transactions(kafka, rng, load)
    wait_for_compaction(kafka)
    return load


def topic_ids(bootstrap: str) -> dict[str, str]:
    """The ids of the three topics, as clients see them."""
    admin: Any = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_topics(TopicCollection(list(PARTITIONS)))
    return {name: str(future.result(30).topic_id) for name, future in described.items()}


def write_codec(kafka: ApacheKafka, codec: str, rng: random.Random, load: Load) -> None:
    compression = None if codec == "none" else codec
    with KafkaProducer(bootstrap_servers=kafka.bootstrap, compression_type=compression) as producer:
        sent: list[tuple[Written, Any]] = []
        for number in range(RECORDS_OF_A_CODEC):
            # Half of it can be compressed: what does not get smaller is sent uncompressed.
            record = Written(
                b"%s %d" % (codec.encode(), number), rng.randbytes(700) + b"." * 700, (("n", b"%d" % number),)
            )
            sent.append((record, producer.send("codecs", record.value, key=record.key, headers=list(record.headers))))
        for record, future in sent:
            told = future.get(timeout=PATIENCE_S)
            load.records[told.topic, told.partition, told.offset] = record


def write_table(kafka: ApacheKafka, rng: random.Random, load: Load) -> None:
    """Keys over and over, so that there is much to compact; idempotent."""
    with Sending(kafka.bootstrap, load, {"enable.idempotence": True, "batch.size": 20_000}) as sending:
        for number in range(RECORDS_OF_THE_TABLE):
            key = b"key %d" % (number % KEYS_OF_THE_TABLE)
            sending.send("table", number % PARTITIONS["table"], Written(key, rng.randbytes(1_200)))


def write_transactions(kafka: ApacheKafka, rng: random.Random, load: Load) -> None:
    settings = {"transactional.id": "adoptable", "batch.size": 20_000}
    with Sending(kafka.bootstrap, load, settings) as sending:
        sending.producer.init_transactions()
        for number in range(TRANSACTIONS):
            sending.producer.begin_transaction()
            sending.newest = set()
            for index in range(RECORDS_OF_A_TRANSACTION):
                record = Written(b"%d" % number, rng.randbytes(3_000), (("transaction", b"%d" % number),))
                sending.send("ledger", index % PARTITIONS["ledger"], record)
            sending.flush()
            if number == TRANSACTIONS - 1:
                load.undecided |= sending.newest
                load.open_producers.append(sending.producer)
            elif number % 2:
                sending.producer.abort_transaction(PATIENCE_S)
                load.aborted |= sending.newest
            else:
                sending.producer.commit_transaction(PATIENCE_S)


def wait_for_compaction(kafka: ApacheKafka) -> None:
    """Until Kafka has written down how far it compacted both partitions of the table."""
    checkpoint = kafka.data_directory / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + PATIENCE_S
    while checkpoint.read_text().count("table ") < PARTITIONS["table"]:
        assert time.monotonic() < deadline, "Kafka compacts nothing"
        time.sleep(0.05)  # a look at the file now and then; nothing is ordered by it


class Sending:
    """librdkafka, and where its records have gone."""

    def __init__(self, bootstrap: str, load: Load, settings: dict[str, Any]) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 2, **settings})
        self.newest: set[Place] = set()
        """Those acknowledged since it was emptied."""
        self.load = load
        self._errors: list[KafkaError] = []

    def __enter__(self) -> "Sending":
        return self

    def __exit__(self, *failure: object) -> None:
        if failure == (None, None, None):
            self.flush()

    def send(self, topic: str, partition: int, record: Written) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._errors.append(error)
                return
            offset = message.offset()
            assert offset is not None
            place = topic, partition, offset
            self.load.records[place] = record
            self.newest.add(place)

        headers: list[tuple[str, Any]] = list(record.headers)
        self.producer.produce(
            topic, record.value, record.key, partition=partition, headers=headers, on_delivery=delivered
        )
        self.producer.poll(0)

    def flush(self) -> None:
        """Returns when all is acknowledged."""
        assert self.producer.flush(PATIENCE_S) == 0
        assert self._errors == []
