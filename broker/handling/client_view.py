"""The cluster as the clients of one listener see it: what Metadata, DescribeCluster and DescribeTopicPartitions say.

A client can use a broker that is there and has an address on its listener. A leader without such an address is no
leader to it: -1, with an error that says why (Kafka's KRaftMetadataCache).
"""

from typing import NamedTuple

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, BrokerState, NodeState, PartitionState
from odradek.broker.handling.context import Call, Context, Endpoint
from odradek.protocol.errors import ErrorCode

NO_CONTROLLER = -1


def usable_brokers(image: ClusterImage, listener: str) -> list[BrokerState]:
    """The brokers that a client of the listener can talk to, in order of their ids."""
    return [broker for _, broker in sorted(image.brokers.items()) if listener in broker.endpoints]


def fenced_nodes(image: ClusterImage, listener: str) -> list[tuple[int, NodeState]]:
    """The brokers that had an address on the listener and are not there, in order of their ids."""
    return [
        (broker_id, node)
        for broker_id, node in sorted(image.nodes.items())
        if broker_id not in image.brokers and listener in node.endpoints
    ]


def controller_for(image: ClusterImage, listener: str) -> int:
    """The broker that admin clients send their requests to: one of `usable_brokers`, or -1.

    Any will do, for any forwards; they do not find one that Metadata does not list.
    """
    usable = usable_brokers(image, listener)
    if any(broker.broker_id == image.controller_id for broker in usable):
        return image.controller_id
    return usable[0].broker_id if usable else NO_CONTROLLER


def leader_for(image: ClusterImage, partition: PartitionState, listener: str) -> tuple[int, ErrorCode]:
    """The leader, and NONE; or -1 and LEADER_NOT_AVAILABLE (there is none) or LISTENER_NOT_FOUND."""
    leader = image.brokers.get(partition.leader)
    if leader is None:
        return NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
    if listener not in leader.endpoints:
        return NO_LEADER, ErrorCode.LISTENER_NOT_FOUND
    return partition.leader, ErrorCode.NONE


def last_known(partition: PartitionState) -> list[int]:
    """Who led last, where nobody is in sync or eligible any more: an unclean election prefers that one (KIP-966)."""
    if partition.isr or partition.elr or partition.last_known_leader == NO_LEADER:
        return []
    return [partition.last_known_leader]


def offline_replicas(image: ClusterImage, partition: PartitionState, listener: str) -> list[int]:
    """The replicas that nobody can use now: their broker is not there, or their data directory has failed."""
    return [
        broker_id
        for broker_id in partition.replicas
        if (broker := image.brokers.get(broker_id)) is None
        or listener not in broker.endpoints
        or broker_id in partition.offline
    ]


def cluster_operations(context: Context, call: Call) -> int:
    """What the caller may do with the cluster, as a bit field (KIP-430): nothing, for who may not describe it
    (AuthHelper.computeDescribeClusterResponse)."""
    if not context.permits(call, Operation.DESCRIBE, CLUSTER):
        return 0
    return context.access.authorized_operations(call, CLUSTER)


class CurrentLeader(NamedTuple):
    """The leader as this broker knows it. `endpoint`: on the listener that was asked, None where it has none there."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None
    rack: str | None


def current_leader(context: Context, call: Call, topic: str, index: int) -> CurrentLeader | None:
    """Who leads a partition, for a client that asked somebody else: it spares it a Metadata request (KIP-951).

    None for an unknown partition.
    """
    image = context.metadata.image
    state = image.partition(topic, index)
    if state is None:
        return None
    broker = image.brokers.get(state.leader)
    endpoint = image.endpoint(state.leader, call.caller.listener)
    return CurrentLeader(
        state.leader,
        state.leader_epoch,
        None if endpoint is None else Endpoint(*endpoint),
        None if broker is None else broker.rack,
    )
