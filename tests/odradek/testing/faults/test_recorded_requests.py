"""Recorded requests: what came before what, how many in how long, and failures that show them."""

import json
from types import SimpleNamespace

import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.testing.faults.processed_records import ProcessedRecords
from odradek.testing.faults.recorded_requests import RecordedRequest, Requests, UnexpectedRequests, begin_of
from odradek.testing.waiting import now_s


def metadata(at_s: float) -> RecordedRequest:
    return RecordedRequest(at_s, 1, "Metadata", 9, "app", "127.0.0.1:9", MetadataRequest(topics=None))


def commit(at_s: float, offset: int) -> RecordedRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])]
    )
    return RecordedRequest(at_s, 2, "OffsetCommit", 8, "app", "127.0.0.1:9", request, (("orders", 0),))


def some(*at_s: float) -> Requests:
    return Requests(map(metadata, at_s), "requests (Metadata)")


def test_they_are_in_order_and_can_be_looked_at() -> None:
    requests = some(3, 1, 2)
    assert [each.at_s for each in requests] == [1, 2, 3]
    assert requests[-1].at_s == 3
    assert len(requests[1:]) == 2
    assert repr(requests) == "<3 requests (Metadata)>"
    assert str(requests).splitlines()[1] == "  +1.000 s  Metadata v9 at broker 1 of client 'app' from 127.0.0.1:9"
    assert str(some()) == "  none"
    assert str(some(*range(25))).startswith("  … 5 before\n")
    assert str(commit(0, 1)).endswith("of orders-0 of group g")


def test_before_and_after_a_moment_a_request_or_others() -> None:
    requests = some(1, 2, 3, 4)
    assert [each.at_s for each in requests.before(2.5)] == [1, 2]
    assert [each.at_s for each in requests.after(metadata(2))] == [3, 4]
    assert [each.at_s for each in requests.before(some(2, 3))] == [1]
    assert [each.at_s for each in requests.after(some(2, 3))] == [4]
    assert len(requests.before(some())) == len(requests.after(some())) == 4
    assert (begin_of(None), begin_of(1.5), begin_of(some(1, 2))) == (None, 1.5, 2)


def test_all_of_them_happened_before_others() -> None:
    some(1, 2).happened_before(some(3))
    with pytest.raises(UnexpectedRequests, match=r"(?s)1 of 2 requests .* came after the first of the .*That one was"):
        some(1, 4).happened_before(some(3))
    with pytest.raises(UnexpectedRequests, match="at least 1"):
        some(1).happened_before(some())


def test_how_many_there_are_in_all_and_in_a_stretch_of_time() -> None:
    requests = some(0, 1, 2, 10, 11, 12)
    requests.at_least(6).at_most(6).at_most(3, within_s=5)
    some().none()
    with pytest.raises(UnexpectedRequests, match=r"at most 0 requests \(Metadata\) were expected, and 1 came:\n  \+0"):
        some(1).none()
    with pytest.raises(UnexpectedRequests, match=r"at most 2 .* within 5 s, and 3 came in 2.000 s:\n  \+0.000 s"):
        requests.at_most(2, within_s=5)
    with pytest.raises(UnexpectedRequests, match="at least 7 requests"):
        requests.at_least(7)


def test_nothing_is_committed_before_it_is_processed() -> None:
    processed = ProcessedRecords()
    early_s = now_s()
    for offset in (0, 1):
        processed.note(SimpleNamespace(topic="orders", partition=0, offset=offset))
    Requests([commit(early_s, 0), commit(now_s(), 2)], "requests").commit_only(processed)
    with pytest.raises(UnexpectedRequests, match=r"offset 1 of orders-0 was .* too early: offset 0 was processed"):
        Requests([commit(early_s, 1)], "requests").commit_only(processed)


def test_one_survives_json() -> None:
    before = commit(1.5, 7)
    assert RecordedRequest.from_json(json.loads(json.dumps(before.to_json()))) == before
