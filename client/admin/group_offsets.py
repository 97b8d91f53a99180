"""Offsets that groups have committed, and the requests that read, set and delete them. Pure.

Topics are named, so OffsetFetch and OffsetCommit are asked up to version 9: from 10 on they take topic ids alone, which
a topic that was deleted does not have any more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_errors import PASSING, group_error
from odradek.client.errors.base import ClientError
from odradek.client.offset_commit import commit_topics
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

__all__ = ["CommittedOffset"]

NAMES_UNTIL: Final = 9
ALL_SINCE: Final = 2
"""The version of OffsetFetch from which on all partitions can be asked for (KIP-88)."""
STABLE_SINCE: Final = 7
"""The version of OffsetFetch that tells of offsets in open transactions (KIP-447)."""
SEVERAL_GROUPS_SINCE: Final = 8
"""The version of OffsetFetch that asks for several groups (KIP-709)."""
_HAS_MEMBERS: Final = "The group has members, and its offsets are theirs: stop them, and ask again."

Wanted = Mapping[str, Collection[TopicPartition] | None]
"""Partitions by group; None: all that it has an offset of."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The offset of the next record that a group will read. `leader_epoch`: of the record before it; -1: not known."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


# ------------------------------------------------------------------------------------------------------------- reading
def offset_fetch_request(wanted: Wanted, *, require_stable: bool) -> tuple[OffsetFetchRequest, int]:
    """With the version that it needs. One group is asked for in both forms, of which a version carries one."""
    groups = {group_id: None if some is None else by_topic(some) for group_id, some in wanted.items()}
    at_least = ALL_SINCE if None in groups.values() else OffsetFetchRequest.min_version
    if require_stable:
        at_least = STABLE_SINCE
    if len(groups) > 1:
        at_least = SEVERAL_GROUPS_SINCE
    group_id, topics = next(iter(groups.items()))
    request = OffsetFetchRequest(
        group_id=group_id,
        topics=None if topics is None else [_fetched(name, numbers) for name, numbers in topics.items()],
        groups=[OffsetFetchRequestGroup(group_id=each, topics=_topics(some)) for each, some in groups.items()],
        require_stable=require_stable,
    )
    return request, at_least


def _fetched(name: str, numbers: list[int]) -> OffsetFetchRequestTopic:
    return OffsetFetchRequestTopic(name=name, partition_indexes=numbers)


def _topics(topics: Mapping[str, list[int]] | None) -> list[OffsetFetchRequestTopics] | None:
    if topics is None:
        return None
    return [OffsetFetchRequestTopics(name=name, partition_indexes=numbers) for name, numbers in topics.items()]


def fetched_offsets(
    group_ids: Iterable[str], response: OffsetFetchResponse
) -> dict[str, dict[TopicPartition, CommittedOffset] | ClientError]:
    """The offsets by group and partition, without partitions that have none.

    A group of which some partitions failed has ItemsFailed with these; what passes by itself is the group's error.
    """
    if response.groups:
        return {group.group_id: _of_group(group.group_id, group.error_code, group.topics) for group in response.groups}
    (group_id,) = group_ids
    return {group_id: _of_group(group_id, response.error_code, response.topics)}


def _of_group(
    group_id: str, code: int, topics: Sequence[OffsetFetchResponseTopic] | Sequence[OffsetFetchResponseTopics]
) -> dict[TopicPartition, CommittedOffset] | ClientError:
    if code:
        return group_error(code, "", f"OffsetFetch of {group_id}")
    offsets: dict[TopicPartition, CommittedOffset] = {}
    errors: dict[TopicPartition, ClientError] = {}
    for topic in topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                error = group_error(each.error_code, "", f"OffsetFetch of {partition} in {group_id}")
                if error.code in PASSING:
                    return error
                errors[partition] = error
            elif each.committed_offset >= 0:
                offsets[partition] = CommittedOffset(
                    each.committed_offset, each.metadata or "", each.committed_leader_epoch
                )
    return ItemsFailed(f"OffsetFetch of {group_id}", errors, offsets) if errors else offsets


# ------------------------------------------------------------------------------------------------- setting and deleting
def offset_commit_request(group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> OffsetCommitRequest:
    """From outside of the group: without a member and its generation."""
    return OffsetCommitRequest(group_id=group_id, topics=commit_topics(offsets))


def committed_offsets(group_id: str, response: OffsetCommitResponse) -> dict[TopicPartition, ClientError | None]:
    """By partition. UNKNOWN_MEMBER_ID is what a group with members says to who is none of them."""
    outcomes: dict[TopicPartition, ClientError | None] = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            hint = _HAS_MEMBERS if code_of(each.error_code) is ErrorCode.UNKNOWN_MEMBER_ID else None
            what = f"OffsetCommit of {partition} in {group_id}"
            outcomes[partition] = group_error(each.error_code, "", what, hint) if each.error_code else None
    return outcomes


def offset_delete_request(group_id: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
            )
            for name, numbers in by_topic(partitions).items()
        ],
    )


def deleted_offsets(
    group_id: str, partitions: Iterable[TopicPartition], response: OffsetDeleteResponse
) -> dict[TopicPartition, ClientError | None]:
    """By partition. An error of the whole group is that of each."""
    if response.error_code:
        return {each: _not_deleted(group_id, each, response.error_code) for each in partitions}
    return {
        partition: _not_deleted(group_id, partition, each.error_code)
        for topic in response.topics
        for each in topic.partitions
        if (partition := TopicPartition(topic.name, each.partition_index))
    }


def _not_deleted(group_id: str, partition: TopicPartition, code: int) -> ClientError | None:
    return group_error(code, "", f"OffsetDelete of {partition} in {group_id}") if code else None
