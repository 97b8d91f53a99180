"""OffsetCommit and OffsetFetch of a member, and what their answers mean. Pure.

Topics are named, so both are asked up to version 9: from 10 on they take topic ids alone. (Source:
CommitRequestManager.java, ConsumerCoordinator.java.)
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.consumer.membership.membership import Identity
from odradek.client.offset_commit import commit_topics
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

__all__ = ["MOVED", "NAMES_UNTIL", "OUTDATED", "PASSING", "Fetched", "commit_request", "commit_version"]
__all__ += ["committed_codes", "fetch_request", "fetched_offsets"]

NAMES_UNTIL: Final = 9
STATIC_COMMIT: Final = 7
OUTDATED: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""The group has gone on since the request was made, perhaps without this member. Never a word about offsets."""
MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT})
PASSING: Final = MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
"""Errors that asking again can cure."""


def commit_version(identity: Identity) -> int:
    """The lowest that says all of it."""
    return STATIC_COMMIT if identity.group_instance_id is not None else 2


def commit_request(identity: Identity, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=identity.group_id,
        generation_id_or_member_epoch=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=commit_topics(offsets),
    )


def committed_codes(
    asked: Collection[TopicPartition], response: OffsetCommitResponse
) -> dict[TopicPartition, ErrorCode]:
    """By partition; one that the answer leaves out was not committed."""
    codes = {
        TopicPartition(topic.name, each.partition_index): code_of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
    return {partition: codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in asked}


class Fetched(NamedTuple):
    """The offsets that there are, and the partitions that could not be told."""

    code: ErrorCode
    """Of the whole group."""
    offsets: dict[TopicPartition, OffsetAndMetadata]
    codes: dict[TopicPartition, ErrorCode]


def fetch_request(
    identity: Identity, partitions: Collection[TopicPartition] | None, *, names_member: bool
) -> OffsetFetchRequest:
    """Offsets of these partitions, or of all that the group has any of (None); those in open transactions are waited
    for, by asking again. In both forms, of which a version carries one.

    `names_member`: a KIP-848 group is told who asks, and refuses who is not in its epoch.
    """
    topics = None if partitions is None else by_topic(partitions)
    group = OffsetFetchRequestGroup(
        group_id=identity.group_id,
        member_id=identity.member_id if names_member else None,
        member_epoch=identity.generation if names_member else -1,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
    )
    return OffsetFetchRequest(
        group_id=identity.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        groups=[group],
        require_stable=True,
    )


def fetched_offsets(response: OffsetFetchResponse) -> Fetched:
    group = response.groups[0] if response.groups else response
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    codes: dict[TopicPartition, ErrorCode] = {}
    for topic in group.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                codes[partition] = code_of(each.error_code)
            elif each.committed_offset >= 0:
                offsets[partition] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return Fetched(code_of(group.error_code), offsets, codes)
