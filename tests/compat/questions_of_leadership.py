"""Questions about who leads and who has replicas: elections and reassignments, and what brokers say afterwards.

These go to the broker that Metadata names as the controller, as every client sends them.
"""

import time

from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.clusters import PATIENCE_S, eventually
from tests.compat.peer import Peer
from tests.compat.questions import Answer, name_of
from tests.compat.questions_of_clusters import (
    LATEST,
    NOBODY,
    Peers,
    Told,
    end_of_epoch,
    fetched,
    of_cluster,
    offset_of,
    produced,
)

PREFERRED, UNCLEAN = 0, 1


def controller(peers: Peers) -> Peer:
    answer = peers[1].ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), 12)
    return peers[answer.controller_id]


def elected(peers: Peers, topic: str, *indexes: int, kind: int = PREFERRED) -> Answer:
    wanted = [TopicPartitions(topic=topic, partitions=list(indexes))]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=wanted, timeout_ms=10_000)
    answer = controller(peers).ask(request, 2)
    return name_of(answer.error_code), [
        (one.partition_id, name_of(one.error_code))
        for each in answer.replica_election_results
        for one in sorted(each.partition_result, key=lambda one: one.partition_id)
    ]


def moved(peers: Peers, topic: str, index: int, replicas: list[int] | None) -> Answer:
    wanted = ReassignableTopic(name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)])
    answer = controller(peers).ask(AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[wanted]), 1)
    return name_of(answer.error_code), [
        (one.partition_index, name_of(one.error_code)) for each in answer.responses for one in each.partitions
    ]


def partition_as_seen(peer: Peer, topic: str, index: int) -> tuple[int, int, list[int], list[int]]:
    """Leader, epoch, replicas and those in sync."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    [described] = peer.ask(request, 12).topics
    found = [each for each in described.partitions if each.partition_index == index]
    if not found:
        return -1, -1, [], []  # it has not heard of it yet
    [one] = found
    return one.leader_id, one.leader_epoch, one.replica_nodes, sorted(one.isr_nodes)


def wait_for(peers: Peers, topic: str, index: int, leader: int, replicas: list[int]) -> int:
    """Until all brokers see this leader and these replicas in sync; the epoch."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = [partition_as_seen(peer, topic, index) for peer in peers.values()]
        if all((each[0], each[2], each[3]) == (leader, replicas, sorted(replicas)) for each in seen):
            return seen[0][1]
        assert time.monotonic() < deadline, f"still {seen}"


@of_cluster
def elect_who_leads_already(peers: Peers, topic: str) -> Answer:
    return [elected(peers, topic, 0, 1), elected(peers, topic, 0, kind=UNCLEAN)]


@of_cluster
def elect_leaders_of_what_is_not_there(peers: Peers, topic: str) -> Answer:
    return [elected(peers, f"{topic}-unknown", 0), elected(peers, topic, 7), elected(peers, topic, 7, kind=UNCLEAN)]


@of_cluster
def move_to_replicas_that_cannot_be(peers: Peers, topic: str) -> Answer:
    return [moved(peers, topic, 0, replicas) for replicas in ([1, NOBODY], [1, 1], [-1, 1], [])]


@of_cluster
def move_what_is_not_there(peers: Peers, topic: str) -> Answer:
    return [moved(peers, f"{topic}-unknown", 0, [1]), moved(peers, topic, 7, [1]), moved(peers, topic, 7, None)]


@of_cluster
def cancel_no_move(peers: Peers, topic: str) -> Answer:
    return moved(peers, topic, 0, None)


@of_cluster
def list_moves_of_what_does_not_move_and_what_is_not_there(peers: Peers, topic: str) -> Answer:
    asked = [
        ListPartitionReassignmentsTopics(name=name, partition_indexes=[0, 7]) for name in (topic, f"{topic}-unknown")
    ]
    answer = controller(peers).ask(ListPartitionReassignmentsRequest(topics=asked), 0)
    return name_of(answer.error_code), [(each.name, each.partitions) for each in answer.topics]


@of_cluster
def a_partition_moves_and_everybody_hears_of_it(peers: Peers, topic: str) -> Answer:
    """From 1 and 2 to 3 and 1: broker 1 leads on, until 3, which is the preferred one now, is elected."""
    said = moved(peers, topic, 0, [3, 1])
    before = wait_for(peers, topic, 0, 1, [3, 1])
    election = elected(peers, topic, 0)
    after = wait_for(peers, topic, 0, 3, [3, 1])
    return said, election, after - before


@of_cluster
def what_brokers_say_to_those_who_have_not_heard_of_a_move(peers: Peers, topic: str) -> Answer:
    """The leader goes from 1 to 2. KIP-951 names the new one; epochs are told as the distance from the first."""
    first = partition_as_seen(peers[1], topic, 0)[1]
    moved(peers, topic, 0, [2, 1])
    wait_for(peers, topic, 0, 1, [2, 1])
    elected(peers, topic, 0)
    now = wait_for(peers, topic, 0, 2, [2, 1])
    # The new leader has heard of it, and of its high watermark; then the former one.
    eventually(lambda: offset_of(peers[2], topic, 0, LATEST, epoch=now)[:2], ("NONE", 3))
    eventually(lambda: produced(peers[1], topic, 0)[0], "NOT_LEADER_OR_FOLLOWER")
    return [
        _relative(produced(peers[1], topic, 0), now),
        _relative(fetched(peers[1], topic, 0, epoch=first, version=12), now),
        _relative(fetched(peers[2], topic, 0, epoch=first, version=12), now),
        _relative(fetched(peers[2], topic, 0, epoch=now + 1, version=12), now),
        offset_of(peers[1], topic, 0, LATEST),
        offset_of(peers[2], topic, 0, LATEST, epoch=first)[0],
        end_of_epoch(peers[2], topic, 0, first, epoch=first),
        end_of_epoch(peers[2], topic, 0, first, epoch=now),
    ]


def _relative(answer: Told, epoch: int) -> list[object]:
    """A leader's epoch as the distance from `epoch`."""
    found: list[object] = []
    for each in answer:
        match each:
            case (int() as leader_id, int() as leader_epoch):
                found.append((leader_id, leader_epoch - epoch))
            case _:
                found.append(each)
    return found
