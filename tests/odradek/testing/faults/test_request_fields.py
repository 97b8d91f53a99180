"""What requests are about: by hand for those that name it in unusual places, and of any served API without an error."""

from random import Random

import pytest

from odradek.broker.handling.context import Api
from odradek.broker.served import SERVED
from odradek.protocol.codec.schema import Struct
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.testing.faults.request_fields import asks_for_all_topics, groups_in, topics_in, transactional_ids_in
from tests.protocol.strategies import random_message

ID = b"\x01" * 16


def name_by_id(topic_id: bytes) -> str:
    return "orders" if topic_id == ID else ""


FETCH = FetchRequest(
    max_wait_ms=0,
    min_bytes=0,
    topics=[FetchTopic(topic_id=ID, partitions=[FetchPartition(partition=3, fetch_offset=0, partition_max_bytes=1)])],
    forgotten_topics_data=[ForgottenTopic(topic_id=ID, partitions=[4])],
)
FETCHED = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(topic_id=ID, partition_indexes=[0, 1])]),
        OffsetFetchRequestGroup(group_id="h", topics=None),
    ]
)
CREATE = CreateTopicsRequest(
    topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=[], configs=[])],
    timeout_ms=0,
)


@pytest.mark.parametrize(
    ("request_", "topics", "groups", "ids"),
    [
        (FETCH, [("orders", 3)], [], []),
        (FETCHED, [("orders", 0), ("orders", 1)], ["g", "h"], []),
        (
            OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[5])]),
            [("orders", 5)],
            ["g"],
            [],
        ),
        (CREATE, [("orders", None)], [], []),
        (DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=0), [("a", None), ("b", None)], [], []),
        (
            ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="orders", partitions=[2])], timeout_ms=0),
            [("orders", 2)],
            [],
            [],
        ),
        (FindCoordinatorRequest(key="g", key_type=0), [], ["g"], []),
        (FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), [], [], ["t"]),
        (InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=0), [], [], ["t"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Struct) else "",
)
def test_what_requests_are_about(
    request_: Struct, topics: list[tuple[str, int | None]], groups: list[str], ids: list[str]
) -> None:
    assert list(topics_in(request_, name_by_id)) == topics
    assert [each for each in groups_in(request_) if each] == groups
    assert [each for each in transactional_ids_in(request_) if each] == ids


def test_metadata_of_all_topics_names_none() -> None:
    assert asks_for_all_topics(MetadataRequest(topics=None))
    assert not asks_for_all_topics(MetadataRequest(topics=[]))
    assert not asks_for_all_topics(FETCH)


@pytest.mark.parametrize("api", SERVED, ids=lambda api: api.name)
def test_any_request_can_be_read(api: Api) -> None:
    for version in {api.request.min_version, api.request.max_version}:
        request = random_message(Random(version), api.request, version)
        assert all(index is None or isinstance(index, int) for _, index in topics_in(request, bytes.hex))
        assert all(isinstance(each, str) for each in (*groups_in(request), *transactional_ids_in(request)))
