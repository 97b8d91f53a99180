"""Questions about versions that name topics by their ids (KIP-516, KIP-848), and what else Kafka 4.0 to 4.3 added."""

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.group_peer import Group
from tests.compat.peer import Peer
from tests.compat.questions import CLOSED, Answer, batch, name_of, produced, question

NOBODYS = b"nobody's topicid"
assert len(NOBODYS) == len(ZERO_UUID)
PRODUCE, FETCH, LIST_OFFSETS, METADATA, COMMIT, OFFSETS, LOG_DIRS = 13, 18, 11, 13, 10, 10, 5
"""The first version of each that has topic ids, or the newest."""


def id_of(peer: Peer, topic: str) -> bytes:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    [answer] = peer.ask(asked, METADATA).topics
    return answer.topic_id


def made_anew(peer: Peer, topic: str) -> bytes:
    """The id that the topic had before."""
    before = id_of(peer, topic)
    peer.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000), 6)
    peer.create_topic(topic)
    return before


def produced_by_id(peer: Peer, *places: tuple[bytes, int], acks: int = -1) -> list[tuple[bool, int, str, int]]:
    """Of each partition whether the answer names its topic by the id, index, error and base offset."""
    data = [
        TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=index, records=batch())])
        for topic_id, index in places
    ]
    answer = peer.ask(ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=data), PRODUCE)
    told = [
        (topic.topic_id, each.index, name_of(each.error_code), each.base_offset)
        for topic in answer.responses
        for each in topic.partition_responses
    ]
    by_place = {place: each for place in places for each in told if place == each[:2]}
    return [(place in by_place, *by_place[place][1:]) for place in places]


# -- records --------------------------------------------------------------------------------------------------------
@question
def producing_by_id(peer: Peer, topic: str) -> Answer:
    known = id_of(peer, topic)
    return produced_by_id(peer, (known, 0), (NOBODYS, 0), (NOBODYS, 7)), produced_by_id(peer, (known, 1), (known, -1))


@question
def producing_by_an_id_of_zeros(peer: Peer, topic: str) -> Answer:
    return produced_by_id(peer, (ZERO_UUID, 0))


@question
def producing_by_the_id_of_a_topic_that_was_made_anew(peer: Peer, topic: str) -> Answer:
    before = made_anew(peer, topic)
    return produced_by_id(peer, (before, 0)), produced_by_id(peer, (id_of(peer, topic), 0))


@question
def producing_by_an_unknown_id_without_an_answer(peer: Peer, topic: str) -> Answer:
    try:
        produced_by_id(peer, (NOBODYS, 0), acks=0)
    except ConnectionError:
        return CLOSED
    return "answered"


@question
def fetching_in_the_newest_version(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch())
    answers: list[Answer] = []
    for topic_id in (id_of(peer, topic), NOBODYS):
        for high_watermark in (-1, 0, 1, 2**63 - 1):
            partition = FetchPartition(
                partition=0, fetch_offset=0, partition_max_bytes=1 << 20, high_watermark=high_watermark
            )
            wanted = FetchTopic(topic_id=topic_id, partitions=[partition])
            [told] = peer.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted]), FETCH).responses
            [each] = told.partitions
            answers.append((told.topic_id == topic_id, name_of(each.error_code), each.high_watermark))
    return answers


@question
def offsets_of_what_is_tiered(peer: Peer, topic: str) -> Answer:
    produced(peer, topic, batch(3))
    answers: list[Answer] = []
    for version in (9, 10, 11):
        for timestamp in (-5, -6, -7):
            for timeout_ms in (0, 1, -1) if version >= 10 else (0,):
                wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
                request = ListOffsetsRequest(
                    replica_id=-1,
                    topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
                    timeout_ms=timeout_ms,
                )
                [each] = peer.ask(request, version).topics[0].partitions
                answers.append((name_of(each.error_code), each.offset, each.timestamp, each.leader_epoch))
    return answers


@question
def log_directories_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in range(1, LOG_DIRS + 1):
        wanted = [DescribableLogDirTopic(topic=topic, partitions=[0])]
        answer = peer.ask(DescribeLogDirsRequest(topics=wanted), version)
        answers.append([(name_of(each.error_code), each.is_cordoned, len(each.topics)) for each in answer.results])
    return answers


# -- metadata -------------------------------------------------------------------------------------------------------
@question
def metadata_in_the_newest_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for wanted in (
        MetadataRequestTopic(name=topic),
        MetadataRequestTopic(name=f"{topic}-unknown"),
        MetadataRequestTopic(name=None, topic_id=id_of(peer, topic)),
        MetadataRequestTopic(name=None, topic_id=NOBODYS),
    ):
        answer = peer.ask(MetadataRequest(topics=[wanted], allow_auto_topic_creation=False), METADATA)
        [told] = answer.topics
        answers.append((name_of(answer.error_code), name_of(told.error_code), told.name == topic))
    return answers


@question
def metadata_of_neither_name_nor_id(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in (12, METADATA):
        wanted = [MetadataRequestTopic(name=None), MetadataRequestTopic(name=topic)]
        answer = peer.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), version)
        answers.append((name_of(answer.error_code), [name_of(each.error_code) for each in answer.topics]))
    return answers


# -- offsets --------------------------------------------------------------------------------------------------------
def committed_by_id(peer: Peer, group_id: str, *places: tuple[bytes, int]) -> list[tuple[bool, int, str]]:
    """Of each partition whether the answer names its topic by the id, index and error."""
    topics = [
        OffsetCommitRequestTopic(
            topic_id=topic_id,
            partitions=[
                OffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata="m")
            ],
        )
        for topic_id, index in places
    ]
    answer = peer.ask(OffsetCommitRequest(group_id=group_id, topics=topics), COMMIT)
    told = {
        (topic.topic_id, each.partition_index): name_of(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }
    return [((topic_id, index) in told, index, told[topic_id, index]) for topic_id, index in places]


def fetched_by_id(peer: Peer, group_id: str, places: list[tuple[bytes, list[int]]] | None) -> Answer:
    """The error of the group, and of each partition the topic's id, index, offset, metadata and error."""
    topics = None
    if places is not None:
        topics = [
            OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=indexes) for topic_id, indexes in places
        ]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=topics)])
    [group] = peer.ask(request, OFFSETS).groups
    return name_of(group.error_code), sorted(
        (
            topic.topic_id == NOBODYS,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata,
            name_of(each.error_code),
        )
        for topic in group.topics
        for each in topic.partitions
    )


@question
def commits_by_id(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    Group(peer, f"{topic}-other")
    known = id_of(peer, topic)
    return (
        committed_by_id(peer, topic, (known, 0), (NOBODYS, 0), (NOBODYS, 3)),
        committed_by_id(peer, topic, (known, 1), (known, -1)),
        committed_by_id(peer, topic, (ZERO_UUID, 0)),
        committed_by_id(peer, f"{topic}-other", (NOBODYS, 0)),
        fetched_by_id(peer, f"{topic}-other", [(known, [0])]),
    )


@question
def commits_by_the_id_of_a_topic_that_was_made_anew(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    committed_by_id(peer, topic, (id_of(peer, topic), 0))
    before = made_anew(peer, topic)
    return committed_by_id(peer, topic, (before, 0)), fetched_by_id(peer, topic, [(id_of(peer, topic), [0])])


@question
def offsets_by_id(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    Group(peer, f"{topic}-nobody")
    known = id_of(peer, topic)
    committed_by_id(peer, topic, (known, 0))
    return (
        fetched_by_id(peer, topic, [(known, [0, 1, -1])]),
        fetched_by_id(peer, topic, [(NOBODYS, [0, 5]), (known, [0])]),
        fetched_by_id(peer, topic, [(ZERO_UUID, [0])]),
        fetched_by_id(peer, topic, []),
        fetched_by_id(peer, topic, None),
        fetched_by_id(peer, f"{topic}-nobody", [(known, [0]), (NOBODYS, [0])]),
    )
