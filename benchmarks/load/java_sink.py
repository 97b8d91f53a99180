"""What a Java client meets instead of a broker, to show how fast it can go itself, a process of its own.

    python -m benchmarks.load.java_sink [LOAD]      prints its port, serves until it is killed

It knows every topic, with one partition each, and forgets all that is produced but how many records that were. What is
fetched are batches of the load, over and over, until the offset at which the load ends.
"""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Generator

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.answering import Answering, Served
from benchmarks.load.frames import DISTINCT_BATCHES, Load, batches_of
from benchmarks.load.wire import EARLIEST
from odradek.protocol.batches.batch import read_header
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

NODE_ID = 1


@contextlib.contextmanager
def running_java_sink(load: Load | None = None) -> Generator[int, None, None]:
    """A sink process, and its port."""
    command = [sys.executable, "-m", "benchmarks.load.java_sink", *([] if load is None else [load.to_json()])]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


class Sink:
    """The answers."""

    def __init__(self, host: str, port: int, load: Load | None = None) -> None:
        self._broker = MetadataResponseBroker(node_id=NODE_ID, host=host, port=port)
        self._ends: dict[str, int] = {}
        self._load = load
        self._batches = b"" if load is None else b"".join(batches_of(load))

    @property
    def served(self) -> list[Served]:
        return [
            Served(MetadataRequest, (0, 9), self.metadata),
            Served(InitProducerIdRequest, (0, 4), self.init_producer_id),
            Served(ProduceRequest, (3, 9), self.produce),
            Served(ListOffsetsRequest, (1, 5), self.list_offsets),
            Served(FetchRequest, (4, 11), self.fetch),
        ]

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        del version
        topics = [
            MetadataResponseTopic(
                name=topic.name,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=0, leader_id=NODE_ID, replica_nodes=[NODE_ID], isr_nodes=[NODE_ID]
                    )
                ],
            )
            for topic in request.topics or ()
        ]
        return MetadataResponse(brokers=[self._broker], cluster_id="sink", controller_id=NODE_ID, topics=topics)

    def init_producer_id(self, request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
        del request, version
        return InitProducerIdResponse(producer_id=1, producer_epoch=0)

    def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        del version
        responses: list[TopicProduceResponse] = []
        for topic in request.topic_data:
            (partition,) = topic.partition_data
            assert partition.records is not None
            offset = self._ends.get(topic.name, 0)
            self._ends[topic.name] = offset + read_header(partition.records).record_count
            answered = PartitionProduceResponse(index=0, base_offset=offset, log_start_offset=0)
            responses.append(TopicProduceResponse(name=topic.name, partition_responses=[answered]))
        return ProduceResponse(responses=responses)

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        del version
        assert self._load is not None
        topics: list[ListOffsetsTopicResponse] = []
        for topic in request.topics:
            (partition,) = topic.partitions
            offset = 0 if partition.timestamp == EARLIEST else self._load.record_count
            answered = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=[answered]))
        return ListOffsetsResponse(topics=topics)

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        del version
        assert self._load is not None
        end = self._load.record_count
        responses: list[FetchableTopicResponse] = []
        for topic in request.topics:
            (partition,) = topic.partitions
            records = self._records_at(partition.fetch_offset, min(partition.partition_max_bytes, request.max_bytes))
            answered = PartitionData(
                partition_index=0, high_watermark=end, last_stable_offset=end, log_start_offset=0, records=records
            )
            responses.append(FetchableTopicResponse(topic=topic.topic, partitions=[answered]))
        return FetchResponse(responses=responses)

    def _records_at(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from an offset on, of which no checksum covers the base offset."""
        load = self._load
        assert load is not None
        left = (load.record_count - offset) // load.records_per_batch
        count = min(left, max(1, bytes_max // load.batch_bytes))
        repeated = self._batches * (count // DISTINCT_BATCHES + 1)
        records = bytearray(repeated[: count * load.batch_bytes])
        for number in range(count):
            base_offset = offset + number * load.records_per_batch
            records[number * load.batch_bytes : number * load.batch_bytes + 8] = base_offset.to_bytes(8, "big")
        return bytes(records)


def main(text: str | None = None) -> None:
    load = None if text is None else Load.from_json(text)
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        Answering(Sink(host, port, load).served).run(server)


if __name__ == "__main__":
    main(*sys.argv[1:])
