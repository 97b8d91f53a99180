"""Partitions created and deleted (KIP-599): what is refused, and whose connection is muted, by version."""

from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.support import make_topic
from tests.broker.throttled import Client, create, limited


def asking(topic: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)


@pytest.mark.parametrize(("version", "is_strict"), [(5, False), (6, True)])
async def test_topics_beyond_the_rate_are_refused_or_throttled_by_version(version: int, is_strict: bool) -> None:
    async with limited({"controller_mutation_rate": 1.0}) as (context, clock):
        client = Client(context)
        first: Any = await client.ask(create("first", 15), version)
        assert first.topics[0].error_code == 0
        assert first.throttle_time_ms == (0 if is_strict else 4_000), "before, whoever owes is silenced at once"
        second: Any = await client.ask(create("second", 2), version)
        expected = ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_strict else ErrorCode.NONE
        assert second.topics[0].error_code == expected
        assert second.throttle_time_ms == (4_000 if is_strict else 6_000) == client.muted_ms
        assert ("second" in context.metadata.image.topics) is not is_strict
        clock.ms += 7_000
        third: Any = await client.ask(create("third"), version)
        assert (third.topics[0].error_code, third.throttle_time_ms) == (0, 0)


async def test_one_request_for_many_topics_gets_as_far_as_the_quota_lets_it() -> None:
    async with limited({"controller_mutation_rate": 1.0}) as (context, _):
        request = create("t-0", 6)
        request.topics += create("t-1", 6).topics + create("t-2", 6).topics
        answer: Any = await Client(context).ask(request, 7)
        assert [topic.error_code for topic in answer.topics] == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]


async def test_what_is_only_validated_is_charged_as_in_kafka() -> None:
    async with limited({"controller_mutation_rate": 1.0}) as (context, _):
        client = Client(context)
        assert await client.throttle_ms(create("a", 12, validate_only=True), 7) == 0
        answer: Any = await client.ask(create("a", validate_only=True), 7)
        assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize(("version", "is_strict"), [(4, False), (5, True)])
async def test_deletions_are_charged(version: int, is_strict: bool) -> None:
    async with limited({"controller_mutation_rate": 1.0}) as (context, _):
        await make_topic(context, "large", 20)
        client = Client(context)
        answer: Any = None
        for topic, code in (("large", 0), ("orders", ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_strict else 0)):
            request = DeleteTopicsRequest(topic_names=[topic], topics=[DeleteTopicState(name=topic)], timeout_ms=5_000)
            answer = await client.ask(request, version)
            assert answer.responses[0].error_code == code
        assert answer.throttle_time_ms == (9_000 if is_strict else 10_000)


@pytest.mark.parametrize(("version", "is_strict"), [(2, False), (3, True)])
async def test_added_partitions_are_charged(version: int, is_strict: bool) -> None:
    async with limited({"controller_mutation_rate": 1.0}) as (context, _):
        client = Client(context)
        answer: Any = None
        for count, code in ((13, 0), (15, ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_strict else 0)):
            topic = CreatePartitionsTopic(name="orders", count=count, assignments=None)
            request = CreatePartitionsRequest(topics=[topic], timeout_ms=5_000, validate_only=False)
            answer = await client.ask(request, version)
            assert answer.results[0].error_code == code
        assert answer.throttle_time_ms == (1_000 if is_strict else 3_000)


async def test_a_topic_that_is_only_asked_about_is_not_created_beyond_the_rate() -> None:
    """And the client, who asks again by itself, is not silenced."""
    async with limited({"controller_mutation_rate": 1.0}, settings={"num.partitions": "12"}) as (context, clock):
        client = Client(context)
        codes: list[int] = []
        for name in ("first", "second"):
            answer: Any = await client.ask(asking(name), 9)
            codes.append(answer.topics[0].error_code)
            assert answer.throttle_time_ms == 0
        assert codes == [0, ErrorCode.LEADER_NOT_AVAILABLE]
        assert client.muted_ms == 0
        clock.ms += 2_000
        answer = await client.ask(asking("second"), 9)
        assert answer.topics[0].error_code == 0
