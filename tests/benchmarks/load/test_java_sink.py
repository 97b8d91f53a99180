"""The sink for Java clients, asked by ours: it knows every topic, counts what is produced, and is full of its load."""

import pytest

from benchmarks.harness.readback import batches_in
from benchmarks.load.frames import Load, batches_of
from benchmarks.load.java_sink import running_java_sink
from benchmarks.load.wire import EARLIEST, LATEST, Wire, new_producer, offset_at
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LOAD = Load("t", 5000 * 16 * 1024, timestamp_ms=5, record_bytes=108)


def test_a_producer_finds_its_topic_and_gets_an_id_and_offsets() -> None:
    with running_java_sink() as port, Wire("127.0.0.1", port) as wire:
        metadata = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="any")]), 9)
        (broker,) = metadata.brokers
        assert broker.port == port
        assert [partition.leader_id for partition in metadata.topics[0].partitions] == [broker.node_id]
        assert new_producer(wire) == (1, 0)
        for number in range(3):
            data = [PartitionProduceData(index=0, records=batches_of(LOAD)[0])]
            request = ProduceRequest(
                acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="any", partition_data=data)]
            )
            (partition,) = wire.ask(request, 9).responses[0].partition_responses
            assert partition.base_offset == number * LOAD.records_per_batch


@pytest.mark.parametrize("place", [EARLIEST, LATEST])
def test_a_consumer_finds_where_the_load_begins_and_ends(place: int) -> None:
    with running_java_sink(LOAD) as port, Wire("127.0.0.1", port) as wire:
        assert offset_at(wire, "any", place) == (0 if place == EARLIEST else LOAD.record_count)


def test_all_of_the_load_is_read_without_a_gap_and_with_its_checksums() -> None:
    with running_java_sink(LOAD) as port, Wire("127.0.0.1", port) as wire:
        headers = [header for header, _batch in batches_in(wire, "any", 0, LOAD.record_count)]
    assert len(headers) == LOAD.batch_count
    assert sum(header.record_count for header in headers) == LOAD.record_count
