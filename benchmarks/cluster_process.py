"""What it takes until a cluster in one process (`odradek cluster run`) keeps a record.

    with OdradekCluster(directory) as cluster:
        create_replicated((cluster.host, cluster.port), "first")
        acknowledged((cluster.host, cluster.port), "first", now_ms)

The topic has three replicas and min.insync.replicas 2, which are the defaults of such a cluster.
"""

from benchmarks.load.wire import Wire, ask_for_topic, check, produce_record, repeat_until_answered
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

Address = tuple[str, int]


def create_replicated(address: Address, topic: str, partitions: int = 1) -> None:
    """Creates a topic with as many replicas as there are brokers. Raises KafkaError, OSError."""
    with Wire(*address) as wire:
        ask_for_topic(wire, topic, partitions, replication_factor=-1)


def acknowledged(address: Address, topic: str, now_ms: int) -> int:
    """Writes one record to partition 0, by acks=all, asking any broker who leads it; the record's offset.

    Raises KafkaError, OSError.
    """
    with Wire(*address) as wire:
        host, port = repeat_until_answered(lambda: _leader(wire, topic))
    with Wire(host, port) as wire:
        return repeat_until_answered(lambda: produce_record(wire, topic, 0, b"first", now_ms))


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
