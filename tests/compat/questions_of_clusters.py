"""What three brokers are asked to find out whether they answer alike: a function a question, by name in `OF_CLUSTERS`.

A question gets a connection to each broker, by its id, and the name of a topic of its own with two partitions: number 0
is on brokers 1 and 2, number 1 on 2 and 3, the first of each leads, and partition 0 holds three records. So broker 1
leads partition 0, broker 2 follows, and broker 3 is a stranger to it. Answers can be compared: errors by name, offsets,
epochs, ids.
"""

from collections.abc import Callable, Mapping
from typing import Final

from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.compat.clusters import eventually
from tests.compat.peer import Peer
from tests.compat.questions import Answer, batch, name_of
from tests.compat.questions_of_admin import created, new_topic

Peers = Mapping[int, Peer]
Told = tuple[object, ...]
OfCluster = Callable[[Peers, str], Answer]

OF_CLUSTERS: Final[dict[str, OfCluster]] = {}

LEADER, FOLLOWER, STRANGER = 1, 2, 3
NOBODY = 99
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
BROKER_RESOURCE = 4


def of_cluster(function: OfCluster) -> OfCluster:
    assert function.__name__ not in OF_CLUSTERS
    OF_CLUSTERS[function.__name__] = function
    return function


def produced(peer: Peer, topic: str, index: int, *, acks: int = -1, version: int = 11) -> Told:
    """The error, who is said to lead, and which nodes come with it."""
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch())])
    answer = peer.ask(ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data]), version)
    [partition] = answer.responses[0].partition_responses
    told = partition.current_leader
    return (
        name_of(partition.error_code),
        None if told is None else (told.leader_id, told.leader_epoch),
        sorted((each.node_id, each.rack) for each in answer.node_endpoints),
    )


def fetched(
    peer: Peer, topic: str, index: int, *, offset: int = 0, epoch: int = -1, rack: str = "", version: int = 12
) -> Told:
    """The error, the high watermark, where else to read, who is said to lead, and whether records came."""
    wanted = FetchPartition(
        partition=index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[wanted])], rack_id=rack
    )
    answer = peer.ask(request, version)
    [partition] = answer.responses[0].partitions
    told = partition.current_leader
    return (
        name_of(partition.error_code),
        partition.high_watermark,
        partition.preferred_read_replica,
        None if told is None else (told.leader_id, told.leader_epoch),
        len(partition.records or b"") > 0,
    )


def offset_of(peer: Peer, topic: str, index: int, timestamp: int, *, epoch: int = -1, version: int = 7) -> Told:
    wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    [partition] = peer.ask(request, version).topics[0].partitions
    return name_of(partition.error_code), partition.offset, partition.leader_epoch


def end_of_epoch(peer: Peer, topic: str, index: int, leader_epoch: int, *, epoch: int = -1) -> Told:
    wanted = OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=leader_epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])])
    [partition] = peer.ask(request, 4).topics[0].partitions
    return name_of(partition.error_code), partition.leader_epoch, partition.end_offset


# -- whoever is asked -----------------------------------------------------------------------------------------------
@of_cluster
def produce_to_whoever_does_not_lead(peers: Peers, topic: str) -> Answer:
    return [[produced(peers[each], topic, 0, version=version) for version in (9, 10, 11)] for each in (2, 3)]


@of_cluster
def produce_with_any_acks_to_whoever_does_not_lead(peers: Peers, topic: str) -> Answer:
    return [produced(peers[each], topic, index, acks=1) for each, index in ((2, 0), (3, 0), (3, 1), (1, 1))]


@of_cluster
def fetch_from_each(peers: Peers, topic: str) -> Answer:
    """From version 11 on consumers may read from followers, too."""
    return [[fetched(peers[each], topic, 0, version=version) for version in (10, 11, 12)] for each in (1, 2, 3)]


@of_cluster
def fetch_at_the_end_and_beyond(peers: Peers, topic: str) -> Answer:
    return [[fetched(peers[each], topic, 0, offset=offset) for offset in (3, 4, 99)] for each in (1, 2)]


@of_cluster
def fetch_with_an_epoch_that_is_not_the_leaders(peers: Peers, topic: str) -> Answer:
    return [[fetched(peers[each], topic, 0, epoch=epoch) for epoch in (0, 1, 7)] for each in (1, 2, 3)]


@of_cluster
def fetch_with_a_rack_where_nobody_selects(peers: Peers, topic: str) -> Answer:
    return [fetched(peers[each], topic, 0, rack="rack-2") for each in (1, 2, 3)]


@of_cluster
def offsets_from_each(peers: Peers, topic: str) -> Answer:
    return [[offset_of(peers[each], topic, 0, at) for at in (EARLIEST, LATEST, MAX_TIMESTAMP)] for each in (1, 2, 3)]


@of_cluster
def offsets_with_an_epoch_that_is_not_the_leaders(peers: Peers, topic: str) -> Answer:
    return [[offset_of(peers[each], topic, 0, LATEST, epoch=epoch) for epoch in (0, 1)] for each in (1, 2, 3)]


@of_cluster
def the_end_of_an_epoch_from_each(peers: Peers, topic: str) -> Answer:
    return [
        [end_of_epoch(peers[each], topic, 0, asked, epoch=epoch) for asked, epoch in ((0, -1), (0, 0), (0, 1), (5, 0))]
        for each in (1, 2, 3)
    ]


@of_cluster
def delete_records_at_each(peers: Peers, topic: str) -> Answer:
    wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    request = DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000)
    answers = [peers[each].ask(request, 2).topics[0].partitions[0] for each in (3, 2, 1)]
    return [(name_of(each.error_code), each.low_watermark) for each in answers]


@of_cluster
def the_directories_of_each(peers: Peers, topic: str) -> Answer:
    """Which partitions of the topic each broker has, and how far behind they are."""
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=[0, 1])])
    return [
        [
            (partition.partition_index, partition.partition_size > 0, partition.offset_lag, partition.is_future_key)
            for directory in peers[each].ask(request, 4).results
            for found in directory.topics
            for partition in sorted(found.partitions, key=lambda one: one.partition_index)
        ]
        for each in (1, 2, 3)
    ]


@of_cluster
def options_of_another_broker(peers: Peers, topic: str) -> Answer:
    """Each broker knows its own alone, and the default of all."""
    asked = [
        DescribeConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name=name, configuration_keys=["num.partitions"]
        )
        for name in ("1", "2", "99", "")
    ]
    return [
        [(each.resource_name, name_of(each.error_code)) for each in peers[node].ask(request, 4).results]
        for node in (1, 2)
        for request in (DescribeConfigsRequest(resources=asked),)
    ]


# -- what all know --------------------------------------------------------------------------------------------------
@of_cluster
def metadata_from_each(peers: Peers, topic: str) -> Answer:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    found: list[Answer] = []
    for node in (1, 2, 3):
        answer = peers[node].ask(request, 12)
        [described] = answer.topics
        found.append((
            sorted((each.node_id, each.rack) for each in answer.brokers),
            answer.controller_id in peers,
            [
                (name_of(one.error_code), one.partition_index, one.leader_id, one.leader_epoch, one.replica_nodes)
                for one in sorted(described.partitions, key=lambda one: one.partition_index)
            ],
            [(sorted(one.isr_nodes), one.offline_replicas) for one in described.partitions],
        ))  # fmt: skip
    return found


@of_cluster
def the_cluster_from_each(peers: Peers, topic: str) -> Answer:
    found: list[Answer] = []
    for node in (1, 2, 3):
        answer = peers[node].ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 1)
        found.append(
            (
                name_of(answer.error_code),
                answer.endpoint_type,
                answer.controller_id in peers,
                sorted((each.broker_id, each.rack) for each in answer.brokers),
            )
        )
    return found


@of_cluster
def topic_partitions_from_each(peers: Peers, topic: str) -> Answer:
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=topic)])
    return [
        [
            (
                name_of(one.error_code), one.partition_index, one.leader_id, one.leader_epoch, one.replica_nodes,
                sorted(one.isr_nodes), one.eligible_leader_replicas, one.last_known_elr, one.offline_replicas,
            )
            for one in peers[node].ask(request, 0).topics[0].partitions
        ]
        for node in (1, 2, 3)
    ]  # fmt: skip


# -- topics and partitions over several brokers -----------------------------------------------------------------------
@of_cluster
def create_with_impossible_replicas_at_each(peers: Peers, topic: str) -> Answer:
    """Whoever is asked: too many, none, or brokers that are not there, named twice, or unevenly many."""
    return [
        created(
            peers[node],
            new_topic(f"{topic}-{node}-many", 1, 4),
            new_topic(f"{topic}-{node}-none", 1, 0),
            new_topic(f"{topic}-{node}-unknown", -1, -1, [1, NOBODY]),
            new_topic(f"{topic}-{node}-negative", -1, -1, [1, -1]),
            new_topic(f"{topic}-{node}-twice", -1, -1, [1, 1]),
            new_topic(f"{topic}-{node}-uneven", -1, -1, [1, 2], [3]),
            new_topic(f"{topic}-{node}-empty", -1, -1, []),
            new_topic(f"{topic}-{node}-both", 1, 1, [1]),
        )
        for node in (1, 2, 3)
    ]


@of_cluster
def create_at_each(peers: Peers, topic: str) -> Answer:
    """With three replicas, and with the default number."""
    found: list[Answer] = []
    for node in (1, 2, 3):
        topics = [new_topic(f"{topic}-{node}-three", 3, 3), new_topic(f"{topic}-{node}-default", -1, -1)]
        answer = peers[node].ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=False), 7)
        found.append([(name_of(one.error_code), one.num_partitions, one.replication_factor) for one in answer.topics])
    return found


def enlarged(peer: Peer, topic: str, count: int, *assigned: list[int]) -> str:
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in assigned]
    wanted = CreatePartitionsTopic(name=topic, count=count, assignments=assignments or None)
    answer = peer.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000, validate_only=False), 3)
    return name_of(answer.results[0].error_code)


@of_cluster
def enlarge_with_assignments_at_each(peers: Peers, topic: str) -> Answer:
    return [
        (
            enlarged(peers[node], topic, node + 2, [1, NOBODY]),
            enlarged(peers[node], topic, node + 2, [1, 1]),
            enlarged(peers[node], topic, node + 2, [1]),
            enlarged(peers[node], topic, node + 2, [1, 2], [2, 3]),
            enlarged(peers[node], topic, node + 2, []),
            enlarged(peers[node], topic, node + 2, [3, 1]),
        )
        for node in (1, 2, 3)
    ]


@of_cluster
def more_in_sync_wanted_than_there_are_replicas(peers: Peers, topic: str) -> Answer:
    """KIP-966: it is enough if all are in sync."""
    wanted: CreatableTopic = new_topic(f"{topic}-all", -1, -1, [1, 2], min_insync_replicas="3")
    answers = created(peers[1], wanted)
    eventually(lambda: peers[1].are_leading(f"{topic}-all", 1), True)
    return answers, produced(peers[1], f"{topic}-all", 0)


@of_cluster
def unregister_a_broker_that_is_not_there(peers: Peers, topic: str) -> Answer:
    return [name_of(peers[node].ask(UnregisterBrokerRequest(broker_id=NOBODY), 0).error_code) for node in (1, 2, 3)]
