"""A compacted topic beside the load, whose workers are killed: the newest value of each key stays.

topic = CompactedTopic(cluster)
topic.killed(cluster, rng)          # a fault: writes, and kills a worker while it compacts what was written
"""

import itertools
import os
import random
import signal
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from processes.compaction_workers import workers_of
from tests.cluster.real_cluster import NODES, create_topic
from tests.cluster.rounds import lasts
from tests.cluster.supervised import Supervised
from tests.compat.watermarks import log_ends

NAME: Final = "state"
OPTIONS: Final = ("--set", "log.cleaner.backoff.ms=200")
CONFIGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "min.insync.replicas": "1",
}
RECORDS: Final = 10_000
KEYS: Final = 900
"""As many in each partition, and always the same: a multiple of their number."""
VALUE_BYTES: Final = 400
"""Of all records about 4 MB, so that a segment of each partition is full."""
WORKS_S: Final = (0.0, 0.3)
FLUSH_S: Final = 60.0
READ_TIMEOUT_S: Final = 30.0


class CompactedTopic:
    """One partition on each broker, and what was acknowledged."""

    def __init__(self, cluster: Supervised) -> None:
        self._newest: dict[bytes, bytes] = {}
        self._written_count = 0
        self._numbers = itertools.count()
        create_topic(cluster, NAME, assignments=[[node] for node in NODES], configs=CONFIGS)

    def worker_killed(self, cluster: Supervised, rng: random.Random) -> None:
        """Compaction goes on with another worker, and the newest of each key is there."""
        self._write(cluster)
        while not self._kill_one(cluster, rng):
            self._write(cluster)
        said = len(cluster.whole.output)
        self._write(cluster)
        lines = [f"{NAME}-{index}: compacted up to offset" for index in range(len(NODES))]
        cluster.wait_until(lambda: all(line in cluster.said_since(said) for line in lines))
        self._check(cluster)

    def _kill_one(self, cluster: Supervised, rng: random.Random) -> bool:
        """Kills a worker that was seen a moment ago; False if it is done by then."""
        cluster.wait_until(lambda: bool(_workers(cluster)))
        found = _workers(cluster)
        lasts(rng.uniform(*WORKS_S))
        working = sorted({*found} & {*_workers(cluster)})
        if not working:
            return False
        cluster.happened("process crash", "compaction worker", "SIGKILL")
        try:
            os.kill(rng.choice(working), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _write(self, cluster: Supervised) -> None:
        """Returns when all is acknowledged."""
        failed: list[KafkaError] = []
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 3})
        for _ in range(RECORDS):
            number = next(self._numbers)
            key, value = b"%d" % (number % KEYS), b"%d " % number + bytes(VALUE_BYTES)
            producer.produce(
                NAME, value, key, partition=number % len(NODES), on_delivery=partial(_note_failure, failed)
            )
            self._newest[key] = value
            producer.poll(0)
        assert producer.flush(FLUSH_S) == 0
        assert failed == []
        self._written_count += RECORDS

    def _check(self, cluster: Supervised) -> None:
        offsets: dict[int, list[int]] = defaultdict(list)
        newest: dict[bytes, bytes] = {}
        ends = log_ends(cluster.bootstrap, NAME, range(len(NODES)))
        for message in _read(cluster, ends):
            index, offset, key, value = message.partition(), message.offset(), message.key(), message.value()
            assert index is not None
            assert offset is not None
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            offsets[index].append(offset)
            newest[key] = value
        assert all(each == sorted(set(each)) for each in offsets.values()), "records stand there twice"
        assert newest == self._newest
        assert sum(map(len, offsets.values())) < self._written_count, "nothing was compacted"


def _workers(cluster: Supervised) -> list[int]:
    return [worker for pid in cluster.whole.pids().values() for worker in workers_of(pid)]


def _read(cluster: Supervised, ends: Mapping[int, int]) -> Iterator[Message]:
    """From the beginning to these ends, whatever is missing in between."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(NAME, partition, 0) for partition in ends])
        left = set(ends)
        while left:
            messages = consumer.consume(10_000, READ_TIMEOUT_S)
            assert messages, f"nothing more of partitions {left}"
            for message in messages:
                assert message.error() is None, message.error()
                yield message
            positions = consumer.position([TopicPartition(NAME, partition) for partition in left])
            left = {each.partition for each in positions if each.offset < ends[each.partition]}
    finally:
        consumer.close()


def _note_failure(failed: list[KafkaError], error: KafkaError | None, message: Message) -> None:
    del message
    if error is not None:
        failed.append(error)
