"""Questions to the coordinators of groups of a cluster under test, by the protocol itself.

node = coordinator_of(cluster, "rounds")            # all that answer agree on it
offsets = offsets_at(node, "rounds", "shared", 12)  # what that broker says is committed
moved(cluster, "rounds", 3)                         # broker 3 coordinates from now on
"""

import socket
import time
from typing import Final

from odradek.broker.coordinator.key_partition import partition_of
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from processes.apache_kafka import ask
from processes.odradek_broker import OdradekBroker
from tests.cluster.operator_faults import asked
from tests.cluster.real_cluster import (
    LOOK_S,
    NODES,
    PATIENCE_S,
    Address,
    RealCluster,
    is_whole,
    node_id,
    partitions_in,
)

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
FIND_COORDINATOR: Final = 10
FIND_COORDINATOR_VERSION: Final = 2
OF_GROUPS: Final = 0
OF_TRANSACTIONS: Final = 1
OFFSET_FETCH: Final = 9
OFFSET_FETCH_VERSION: Final = 5
PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""What a coordinator may say for a while."""


def found_coordinator(address: Address, key: str, key_type: int = OF_GROUPS) -> FindCoordinatorResponse:
    """What one broker says, which may create the topic. Raises OSError."""
    request = FindCoordinatorRequest(key=key, key_type=key_type)
    body = b"".join(encode_parts(request, FIND_COORDINATOR_VERSION))
    with socket.create_connection(address, timeout=PATIENCE_S) as connection:
        answer = ask(connection, api_key=FIND_COORDINATOR, api_version=FIND_COORDINATOR_VERSION, body=body)
    return decode(FindCoordinatorResponse, FIND_COORDINATOR_VERSION, answer)


def create_coordinators_topics(cluster: RealCluster) -> None:
    """Those of groups and of transactions. Returns when all their replicas are in sync."""
    for key_type in (OF_GROUPS, OF_TRANSACTIONS):

        def is_there(key_type: int = key_type) -> bool:
            return found_coordinator(cluster.addresses()[0], "any", key_type).error_code == 0

        cluster.wait_until(is_there)
    for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        wait_until_topic_is_whole(cluster, topic)


def create_offsets_topic(cluster: RealCluster, group: str) -> None:
    """By asking for a coordinator. Returns when all its replicas are in sync."""
    cluster.wait_until(lambda: found_coordinator(cluster.addresses()[0], group).error_code == 0)
    wait_until_offsets_are_whole(cluster)


def wait_until_offsets_are_whole(cluster: RealCluster) -> None:
    wait_until_topic_is_whole(cluster, OFFSETS_TOPIC)


def wait_until_topic_is_whole(cluster: RealCluster, topic: str) -> None:
    cluster.wait_until(lambda: is_whole(cluster.answers(topic)))


def coordinator_of(cluster: RealCluster, key: str, topic: str = OFFSETS_TOPIC) -> OdradekBroker:
    """The leader of the group's partition, or the transactional id's, as soon as all that answer agree on one that is
    there."""
    found: list[OdradekBroker] = []

    def is_agreed() -> bool:
        leaders: set[int] = set()
        for answer in cluster.answers(topic):
            partitions = partitions_in(answer)
            leaders.add(partitions[partition_of(key, len(partitions))].leader_id)
        there = (each for each in cluster.brokers if each.is_running and not each.is_paused)
        found[:] = [each for each in there if {node_id(each)} == leaders]
        return bool(found)

    cluster.wait_until(is_agreed)
    return found[0]


def offsets_at(broker: OdradekBroker, group: str, topic: str, partitions: int) -> dict[int, int]:
    """What this broker says is committed, once it has loaded the group. Raises AssertionError for another error, and
    when it takes too long."""
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(partitions)))]
    )
    body = b"".join(encode_parts(request, OFFSET_FETCH_VERSION))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as connection:
            answer = ask(connection, api_key=OFFSET_FETCH, api_version=OFFSET_FETCH_VERSION, body=body)
        response = decode(OffsetFetchResponse, OFFSET_FETCH_VERSION, answer)
        if response.error_code == 0:
            [answered] = response.topics
            assert all(each.error_code == 0 for each in answered.partitions), answered
            return {each.partition_index: each.committed_offset for each in answered.partitions}
        assert ErrorCode(response.error_code) in PASSING, ErrorCode(response.error_code)
        assert time.monotonic() < deadline, ErrorCode(response.error_code)
        time.sleep(LOOK_S)  # between two questions


def moved(cluster: RealCluster, group: str, node: int) -> OdradekBroker:
    """Has this broker lead the group's partition, by a reassignment of its preferred leader and an election."""
    [answer, *_] = cluster.answers(OFFSETS_TOPIC)
    index = partition_of(group, len(partitions_in(answer)))
    partition = TopicPartition(OFFSETS_TOPIC, index)
    replicas = [node, *(each for each in NODES if each != node)]
    cluster.happened("operator", "", f"has broker {node} lead {partition}")
    asked(cluster, lambda admin: admin.alter_partition_reassignments({partition: replicas}))
    cluster.wait_until(
        lambda: all(partitions_in(each)[index].replica_nodes == replicas for each in cluster.answers(OFFSETS_TOPIC))
    )
    asked(cluster, lambda admin: admin.elect_leaders([partition]))
    cluster.wait_until(lambda: node_id(coordinator_of(cluster, group)) == node)
    return coordinator_of(cluster, group)
