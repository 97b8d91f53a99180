"""What it takes until a cluster in one process (`odradek cluster run`) keeps a record.

    with OdradekCluster(directory) as cluster:
        create_replicated((cluster.host, cluster.port), "first")
        acknowledged((cluster.host, cluster.port), "first", now_ms)

The topic has three replicas and min.insync.replicas 2, which are the defaults of such a cluster.
"""

from typing import Final

from benchmarks.wire import Wire, check, patiently
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_encoding import build_batch
from protocol.records import Record

ACKS_ALL: Final = -1
TIMEOUT_MS: Final = 30_000
Address = tuple[str, int]


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
