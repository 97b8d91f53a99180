"""The topics of the client runs, by hand over a `Wire`: created with all partitions, counted, read from end to end."""

import time
from collections.abc import Iterator

from benchmarks.contenders.client_load import PARTITION_COUNT
from benchmarks.load.wire import FETCH_BYTES, LATEST, LEADER_TIMEOUT_S, RETRY_S, Wire, check
from benchmarks.produce import LogDiffers
from odradek.protocol.batches.batch import crc_matches, iterate_batches
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.primitives import Buffer


def create_topic(wire: Wire, name: str) -> None:
    """Creates an empty topic and waits until all its partitions have leaders. Raises KafkaError."""
    topic = CreatableTopic(name=name, num_partitions=PARTITION_COUNT, replication_factor=1, assignments=[], configs=[])
    (created,) = wire.ask(CreateTopicsRequest(topics=[topic]), 5).topics
    check(created.error_code, created.error_message)
    deadline = time.monotonic() + LEADER_TIMEOUT_S
    while True:
        try:
            assert record_count(wire, name) == 0
            return
        except KafkaError as error:
            if not error.code.retriable or time.monotonic() > deadline:
                raise
        time.sleep(RETRY_S)  # between two questions, not instead of them


def record_count(wire: Wire, topic: str) -> int:
    """In all partitions together. Raises KafkaError."""
    return sum(end_offset(wire, topic, partition) for partition in range(PARTITION_COUNT))


def records_of(wire: Wire, topic: str, partition: int) -> Iterator[Record]:
    """The records of a partition, from 0 to its end, without a gap. Raises LogDiffers, KafkaError, OSError."""
    end = end_offset(wire, topic, partition)
    offset = 0
    while offset < end:
        data = memoryview(fetch(wire, topic, partition, offset))
        before = offset
        for position, header in iterate_batches(data):
            if header.base_offset != offset:
                raise LogDiffers(f"{topic}-{partition}: offset {header.base_offset} is read instead of {offset}")
            batch = data[position : position + header.size_bytes]
            if not crc_matches(batch):
                raise LogDiffers(f"{topic}-{partition}: the checksum of the batch at offset {offset} is wrong")
            yield from iterate_records(batch)
            offset += header.record_count
        if offset == before:
            raise LogDiffers(f"{topic}-{partition}: nothing is read at offset {offset} of {end}")


def end_offset(wire: Wire, topic: str, partition: int) -> int:
    """Raises KafkaError."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    (answered,) = wire.ask(request, 5).topics[0].partitions
    check(answered.error_code)
    return answered.offset


def fetch(wire: Wire, topic: str, partition: int, offset: int) -> Buffer:
    """Batches from `offset` on; the last one may be cut off. Raises KafkaError."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    response = wire.ask(FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics), 11)
    check(response.error_code)
    (answered,) = response.responses[0].partitions
    check(answered.error_code)
    return answered.records or b""
