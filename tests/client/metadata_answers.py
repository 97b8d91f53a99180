"""Answers to Metadata as a broker would give them, in short: for tests of what a client makes of them."""

from collections.abc import Sequence

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID_A = b"a" * 16
ID_B = b"b" * 16


def broker(node_id: int, host: str = "", port: int = 9092) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=host or f"broker-{node_id}", port=port)


def partition(
    index: int, leader: int, epoch: int = 0, error: int = ErrorCode.NONE, replicas: Sequence[int] = ()
) -> MetadataResponsePartition:
    nodes = list(replicas or ([leader] if leader >= 0 else []))
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=epoch,
        replica_nodes=nodes,
        isr_nodes=nodes,
    )


def topic(
    name: str | None,
    *leaders: int | tuple[int, int],
    topic_id: bytes = ID_A,
    error: int = ErrorCode.NONE,
    partitions: Sequence[MetadataResponsePartition] | None = None,
) -> MetadataResponseTopic:
    """A topic by the leaders of its partitions, each with the leader's epoch if it matters. -1: there is none."""
    if partitions is None:
        pairs = [each if isinstance(each, tuple) else (each, 0) for each in leaders]
        partitions = [
            partition(index, leader, epoch, ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE)
            for index, (leader, epoch) in enumerate(pairs)
        ]
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, partitions=list(partitions))


def failing(name: str, error: int) -> MetadataResponseTopic:
    """A topic of which the broker tells an error alone."""
    return topic(name, topic_id=ZERO_UUID, error=error)


def answer(
    *topics: MetadataResponseTopic,
    brokers: Sequence[int | MetadataResponseBroker] = (1, 2, 3),
    controller_id: int = 1,
    cluster_id: str | None = "cluster",
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[each if isinstance(each, MetadataResponseBroker) else broker(each) for each in brokers],
        cluster_id=cluster_id,
        controller_id=controller_id,
        topics=list(topics),
    )
