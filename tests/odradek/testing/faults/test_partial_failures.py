"""Requests of which a part fails: the parts are the whole, of every served API that names topics; each API's answer
names the part that failed, and merged with the rest all of it."""

from collections import Counter
from random import Random

import pytest

from odradek.broker.handling.context import Api
from odradek.broker.served import SERVED
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.testing.faults.partial_failures import failed, mark_metadata, merged, split
from odradek.testing.faults.request_fields import topics_in
from tests.protocol.strategies import random_message

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER
PRODUCE, OFFSET_FETCH = (next(each for each in SERVED if each.key == key) for key in (0, 9))
WITH_TOPICS = [
    each
    for each in SERVED
    if list(topics_in(random_message(Random(7), each.request, each.request.max_version), bytes.hex))
]


def no_name(topic_id: bytes) -> str:
    return ""


@pytest.mark.parametrize("api", WITH_TOPICS, ids=lambda api: api.name)
def test_the_parts_are_the_whole(api: Api) -> None:
    def is_hit(topic: str, partition: int | None) -> bool:
        return (len(topic) + (partition or 0)) % 2 == 0

    for seed in range(5):
        request = random_message(Random(seed), api.request, api.request.max_version)
        before = Counter(topics_in(request, bytes.hex))
        kept, hit = split(request, is_hit, bytes.hex)
        assert (hit is None) is not any(is_hit(*each) for each in before)
        if hit is None:
            assert kept is request
            continue
        of_kept = Counter(topics_in(kept, bytes.hex)) if kept is not None else Counter[tuple[str, int | None]]()
        of_hit = Counter(topics_in(hit, bytes.hex))
        assert of_kept + of_hit == before
        assert all(is_hit(*each) for each in of_hit)
        assert not any(is_hit(*each) for each in of_kept)


def produce_of(partitions: dict[str, list[int]]) -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=0,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=index, records=b"") for index in indexes]
            )
            for name, indexes in partitions.items()
        ],
    )


def test_one_partition_of_a_produce_fails_and_the_answers_are_merged() -> None:
    request = produce_of({"orders": [0, 1], "bills": [0]})
    kept, hit = split(request, lambda topic, index: (topic, index) == ("orders", 0), no_name)
    assert kept == produce_of({"orders": [1], "bills": [0]})
    assert hit == produce_of({"orders": [0]})
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(name=name, partition_responses=[PartitionProduceResponse(index=index, base_offset=7)])
            for name, index in (("orders", 1), ("bills", 0))
        ]
    )
    whole = merged(answer, failed(PRODUCE, hit, ERROR))
    assert {
        (topic.name, each.index): (each.error_code, each.base_offset)
        for topic in whole.responses
        for each in topic.partition_responses
    } == {("orders", 0): (ERROR, -1), ("orders", 1): (0, 7), ("bills", 0): (0, 7)}
    assert len(whole.responses) == 2
    assert len(answer.responses[0].partition_responses) == 1, "what it was merged from is as it was"


def test_offsets_of_one_group_fail_and_those_of_another_are_kept() -> None:
    def groups(**topics: str) -> OffsetFetchRequest:
        return OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
                )
                for group, topic in topics.items()
            ]
        )

    kept, hit = split(groups(g="orders", h="bills"), lambda topic, index: topic == "orders", no_name)
    assert (kept, hit) == (groups(h="bills"), groups(g="orders"))
    answer = merged(failed(OFFSET_FETCH, kept, ErrorCode.NONE), failed(OFFSET_FETCH, hit, ERROR))
    assert [(each.group_id, each.topics[0].partitions[0].error_code) for each in answer.groups] == [
        ("h", 0),
        ("g", ERROR),
    ]


def test_what_has_one_error_for_the_whole_says_so() -> None:
    [api] = [each for each in SERVED if each.name == "DescribeLogDirs"]
    assert failed(api, random_message(Random(1), api.request, api.request.max_version), ERROR) is None


def test_metadata_is_marked_where_its_answer_names_the_topic() -> None:
    def topic(name: str, error: int = 0, leaders: tuple[int, ...] = (1, 2)) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=name,
            error_code=error,
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    error_code=ERROR if leader < 0 else 0,
                    replica_nodes=[1],
                    isr_nodes=[1],
                )
                for index, leader in enumerate(leaders)
            ],
        )

    answer = MetadataResponse(brokers=[], topics=[topic("orders"), topic("bills")])
    whole = mark_metadata(answer, lambda name, index: name == "orders", ERROR, whole_topic=True)
    assert whole.topics == [topic("orders", ERROR, ()), topic("bills")]
    part = mark_metadata(answer, lambda name, index: (name, index) == ("bills", 1), ERROR, whole_topic=False)
    assert part.topics == [topic("orders"), topic("bills", 0, (1, -1))]
    assert mark_metadata(answer, lambda name, index: False, ERROR, whole_topic=True) is answer
    assert answer.topics == [topic("orders"), topic("bills")]
