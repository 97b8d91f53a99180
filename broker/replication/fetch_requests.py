"""What the requests of a follower say, and the answers of its leader to ListOffsets."""

from collections.abc import Callable, Iterable
from math import ceil
from typing import Final, NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.replication.following import Following
from odradek.broker.replication.leader_session import LeaderSession, PartitionId, SessionChanges, by_topic
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST: Final = -1
EARLIEST: Final = -2


class Replica(NamedTuple):
    """Who fetches (KIP-903)."""

    broker_id: int
    broker_epoch: Callable[[], int]
    """Of the present registration."""


def fetch_request(
    replica: Replica, session: LeaderSession, changes: SessionChanges, config: BrokerConfig, max_wait_ms: float
) -> FetchRequest:
    """The next request of the session."""
    size_bytes_max = config.replica_fetch_max_bytes
    wanted = changes.wanted
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica.broker_id, replica_epoch=replica.broker_epoch()),
        max_wait_ms=ceil(max_wait_ms),
        min_bytes=config.replica_fetch_min_bytes,
        max_bytes=config.replica_fetch_response_max_bytes,
        session_id=session.session_id,
        session_epoch=session.epoch,
        topics=[
            FetchTopic(
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=index,
                        current_leader_epoch=position.leader_epoch,
                        fetch_offset=position.fetch_offset,
                        last_fetched_epoch=position.last_fetched_epoch,
                        log_start_offset=position.log_start_offset,
                        partition_max_bytes=size_bytes_max,
                    )
                    for index in indexes
                    for position in (wanted[topic_id, index],)
                ],
            )
            for topic_id, indexes in by_topic(wanted).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(changes.forgotten).items()
        ],
    )


def list_offsets_request(broker_id: int, following: Iterable[Following], timestamp: int) -> ListOffsetsRequest:
    """Where the leader's logs begin (EARLIEST) or end (LATEST): as a replica, so that it is the end of the log."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for one in following:
        topics.setdefault(one.partition.topic, []).append(
            ListOffsetsPartition(
                partition_index=one.partition.index,
                current_leader_epoch=one.state.leader_epoch,
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=broker_id,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def offsets_in(response: ListOffsetsResponse, following: Iterable[Following]) -> dict[PartitionId, int]:
    """What was answered without an error."""
    keys = {(one.partition.topic, one.partition.index): one.key for one in following}
    return {
        keys[topic.name, answer.partition_index]: answer.offset
        for topic in response.topics
        for answer in topic.partitions
        if not answer.error_code and answer.offset >= 0 and (topic.name, answer.partition_index) in keys
    }
