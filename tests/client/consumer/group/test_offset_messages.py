"""OffsetCommit and OffsetFetch of a member, in every version that names topics."""

import pytest

from odradek.client.consumer.group.offset_messages import (
    NAMES_UNTIL,
    commit_request,
    commit_version,
    committed_codes,
    fetch_request,
    fetched_offsets,
)
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.consumer.membership.membership import Identity
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

P0, P1, Q0 = TopicPartition("p", 0), TopicPartition("p", 1), TopicPartition("q", 0)
MEMBER = Identity("g", "m", 5, None)


@pytest.mark.parametrize("version", range(2, NAMES_UNTIL + 1))
def test_a_commit_says_who_commits_and_what(version: int) -> None:
    offsets = {P0: OffsetAndMetadata(7, "note", 3), Q0: OffsetAndMetadata(8), P1: OffsetAndMetadata(9)}
    data = memoryview(b"".join(encode_parts(commit_request(MEMBER, offsets), version)))
    read = decode(OffsetCommitRequest, version, data)
    assert (read.group_id, read.member_id, read.generation_id_or_member_epoch) == ("g", "m", 5)
    said = {
        TopicPartition(topic.name, each.partition_index): (each.committed_offset, each.committed_metadata)
        for topic in read.topics
        for each in topic.partitions
    }
    assert said == {P0: (7, "note"), P1: (9, ""), Q0: (8, "")}


def test_a_static_member_needs_a_version_that_says_so() -> None:
    assert commit_version(MEMBER) == 2
    assert commit_version(Identity("g", "m", 5, "i")) == 7


def test_a_partition_that_the_answer_leaves_out_was_not_committed() -> None:
    partitions = [OffsetCommitResponsePartition(partition_index=0)]
    response = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="p", partitions=partitions)])
    assert committed_codes([P0, P1], response) == {P0: ErrorCode.NONE, P1: ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize("version", range(1, NAMES_UNTIL + 1))
def test_offsets_are_asked_for_in_the_form_of_the_version(version: int) -> None:
    request = fetch_request(MEMBER, [P0, P1, Q0], names_member=True)
    read = decode(OffsetFetchRequest, version, memoryview(b"".join(encode_parts(request, version))))
    if version < 8:
        assert read.group_id == "g"
        assert read.topics is not None
        assert {topic.name: topic.partition_indexes for topic in read.topics} == {"p": [0, 1], "q": [0]}
    else:
        (group,) = read.groups
        assert group.topics is not None
        assert {topic.name: topic.partition_indexes for topic in group.topics} == {"p": [0, 1], "q": [0]}
        assert (group.member_id, group.member_epoch) == (("m", 5) if version >= 9 else (None, -1))
    assert read.require_stable is (version >= 7)


def test_all_offsets_are_asked_for_by_null() -> None:
    request = fetch_request(MEMBER, None, names_member=False)
    assert request.topics is None and request.groups[0].topics is None
    assert request.groups[0].member_id is None


def test_answers_of_both_forms_are_read_and_no_offset_is_no_offset() -> None:
    old = OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="p",
                partitions=[
                    OffsetFetchResponsePartition(partition_index=0, committed_offset=4, metadata=None),
                    OffsetFetchResponsePartition(partition_index=1, committed_offset=-1, metadata=""),
                ],
            )
        ]
    )
    assert fetched_offsets(old) == (ErrorCode.NONE, {P0: OffsetAndMetadata(4)}, {})
    unstable = OffsetFetchResponsePartitions(partition_index=0, committed_offset=-1, metadata="", error_code=88)
    topics = [OffsetFetchResponseTopics(name="q", partitions=[unstable])]
    new = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])
    assert fetched_offsets(new) == (ErrorCode.NONE, {}, {Q0: ErrorCode.UNSTABLE_OFFSET_COMMIT})
    stale = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[], error_code=113)])
    assert fetched_offsets(stale).code is ErrorCode.STALE_MEMBER_EPOCH
