"""A cluster in one process as a child process: `odradek cluster run`, and what it takes until it keeps a record.

    with ClusterProcess(directory) as cluster:
        acknowledged(cluster.address, "first")

The topic has three replicas and min.insync.replicas 2, which are the defaults of such a cluster.
"""

import re
import sys
from pathlib import Path
from typing import Final

from benchmarks.wire import Wire, check, patiently
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_encoding import build_batch
from protocol.records import Record
from tests.child_process import ChildProcess

READY: Final = re.compile(r"odradek \S+ cluster ready on (?P<host>[^:,]+):(?P<port>\d+),.*")
BROKERS: Final = 3
ACKS_ALL: Final = -1
TIMEOUT_MS: Final = 30_000
Address = tuple[str, int]


class ClusterProcess(ChildProcess):
    """Three brokers, on free ports of loopback. `address` is the first one's, once it was started."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__("odradek-cluster")
        self.directory = directory
        self.options = options
        self.address: Address = "", 0

    def command(self) -> list[str]:
        where = ["--brokers", str(BROKERS), "--listen", "127.0.0.1:0", "--data-dir", str(self.directory)]
        return [sys.executable, "-m", "odradek", "cluster", "run", *where, *self.options]

    def is_ready_line(self, line: str) -> bool:
        ready = READY.match(line)
        if ready is not None:
            self.address = ready["host"], int(ready["port"])
        return ready is not None


def create_replicated(address: Address, topic: str, partitions: int = 1) -> None:
    """Creates a topic with as many replicas as there are brokers. Raises KafkaError, OSError."""
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[])
    with Wire(*address) as wire:
        (created,) = wire.ask(CreateTopicsRequest(topics=[wanted]), 5).topics
        check(created.error_code, created.error_message)


def acknowledged(address: Address, topic: str, now_ms: int) -> int:
    """Writes one record to partition 0, by acks=all, asking any broker who leads it; the record's offset.

    Raises KafkaError, OSError.
    """
    with Wire(*address) as wire:
        host, port = patiently(lambda: _leader(wire, topic))
    batch = build_batch([Record(0, now_ms, None, b"first")])
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
    with Wire(host, port) as wire:
        return patiently(lambda: _produced(wire, ProduceRequest(acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=data)))


def _leader(wire: Wire, topic: str) -> Address:
    """Raises KafkaError while there is none."""
    answered = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    (found,) = answered.topics
    check(found.error_code)
    check(found.partitions[0].error_code)
    addresses = {broker.node_id: (broker.host, broker.port) for broker in answered.brokers}
    leader = addresses.get(found.partitions[0].leader_id)
    if leader is None:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-0 is led by nobody yet")
    return leader


def _produced(wire: Wire, request: ProduceRequest) -> int:
    """The offset. Raises KafkaError."""
    (answered,) = wire.ask(request, 9).responses[0].partition_responses
    check(answered.error_code, answered.error_message)
    return answered.base_offset
