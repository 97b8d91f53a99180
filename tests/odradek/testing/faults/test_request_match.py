"""Which requests are meant: all that a match names has to be so, and of topics one of those that are named."""

from typing import Any

import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.testing.faults.fault import match_of
from odradek.testing.faults.request_match import matches, means

COMMIT = OffsetCommitRequest(
    group_id="billing",
    topics=[
        OffsetCommitRequestTopic(
            name="orders",
            partitions=[
                OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
                for index in (0, 1)
            ],
        )
    ],
)


@pytest.mark.parametrize(
    ("meant", "is_so"),
    [
        ({}, True),
        ({"api": "OffsetCommit", "broker": 2, "client_id": "app-?", "group": "billing"}, True),
        ({"topic": "orders", "partition": 1}, True),
        ({"api": "Fetch"}, False),
        ({"broker": 1}, False),
        ({"client_id": "app"}, False),
        ({"topic": "bills"}, False),
        ({"topic": "orders", "partition": 2}, False),
        ({"group": "other"}, False),
        ({"transactional_id": "t"}, False),
    ],
)
def test_all_that_is_named_has_to_be_so(meant: dict[str, Any], is_so: bool) -> None:
    assert matches(match_of(**meant), 2, "OffsetCommit", "app-1", COMMIT, bytes.hex) is is_so


def test_metadata_of_all_topics_is_about_each() -> None:
    match = match_of(topic="orders")
    assert matches(match, 1, "Metadata", None, MetadataRequest(topics=None), bytes.hex)
    assert not matches(match, 1, "Metadata", None, MetadataRequest(topics=[]), bytes.hex)


def test_a_match_of_a_partition_does_not_mean_the_topic() -> None:
    assert means(match_of(topic="orders"), "orders", 3)
    assert means(match_of(topic="orders"), "orders", None)
    assert not means(match_of(topic="orders", partition=3), "orders", None)
    assert not means(match_of(topic="orders"), "bills", 3)
