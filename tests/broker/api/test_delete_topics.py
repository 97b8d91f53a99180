"""DeleteTopics: by name and by id, nothing twice, and the name is free when the answer is out."""

import asyncio

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from tests.broker.support import append, ask, batch, make_topic, running_broker

UNKNOWN_ID = bytes(range(16))


async def deleted(
    context: Context, *wanted: str | bytes, version: int = 6, timeout_ms: int = 10_000
) -> list[DeletableTopicResult]:
    """Deletes by name (text) or id (bytes)."""
    if version < 6:
        names = [each for each in wanted if isinstance(each, str)]
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
    else:
        topics = [
            DeleteTopicState(name=each) if isinstance(each, str) else DeleteTopicState(name=None, topic_id=each)
            for each in wanted
        ]
        request = DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)
    answer = await ask(context, request, version)
    assert len(answer.responses) == len(wanted)
    return answer.responses


@pytest.mark.parametrize("version", range(1, 7))
async def test_by_name_in_every_version(version: int) -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders", 2)
        (answer,) = await deleted(context, "orders", version=version)
        assert context.metadata.image.topics == {}
        assert len(context.partitions) == 0
    assert (answer.name, answer.error_code, answer.error_message) == ("orders", ErrorCode.NONE, None)
    assert answer.topic_id == (topic_id if version >= 6 else ZERO_UUID)


async def test_by_id() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        (answer,) = await deleted(context, topic_id)
        assert context.metadata.image.topics == {}
    assert (answer.name, answer.topic_id, answer.error_code) == ("orders", topic_id, ErrorCode.NONE)


async def test_the_name_is_free_at_once_and_a_new_topic_starts_empty_with_a_new_id() -> None:
    async with running_broker() as context:
        before = await make_topic(context, "orders")
        append(context.partitions.leader("orders", 0), batch(b"a", b"b"))
        await deleted(context, "orders")
        after = await make_topic(context, "orders")
        assert context.partitions.leader("orders", 0).log.log_end_offset == 0
    assert before != after


async def test_unknown_names_and_ids() -> None:
    async with running_broker() as context:
        by_name, by_id = await deleted(context, "nowhere", UNKNOWN_ID)
    assert (by_name.name, by_name.error_code) == ("nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (by_id.name, by_id.topic_id, by_id.error_code) == (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert by_name.error_message
    assert by_id.error_message


@pytest.mark.parametrize("version", [1, 5, 6])
async def test_a_name_given_twice_is_not_deleted_and_the_others_are(version: int) -> None:
    async with running_broker() as context:
        await make_topic(context, "twice")
        await make_topic(context, "once")
        answers = await deleted(context, "twice", "once", "twice", version=version)
        assert list(context.metadata.image.topics) == ["twice"]
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]


async def test_a_name_and_its_own_id_are_twice_the_same_topic() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        by_name_and_id = await deleted(context, "orders", topic_id)
        by_ids = await deleted(context, topic_id, topic_id)
        assert "orders" in context.metadata.image.topics
    assert [answer.error_code for answer in (*by_name_and_id, *by_ids)] == [ErrorCode.INVALID_REQUEST] * 4


async def test_what_names_a_topic_by_both_does_not_count_as_naming_it() -> None:
    """As in Kafka: the other one, which is well-formed, is deleted."""
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        states = [DeleteTopicState(name="orders", topic_id=topic_id), DeleteTopicState(topic_id=topic_id)]
        answer = await ask(context, DeleteTopicsRequest(topics=states, timeout_ms=1000), 6)
        assert "orders" not in context.metadata.image.topics
    both, by_id = answer.responses
    assert (both.error_code, by_id.error_code, by_id.name) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE, "orders")


async def test_neither_and_both_are_refused() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        states = [DeleteTopicState(name=None), DeleteTopicState(name="orders", topic_id=topic_id)]
        answer = await ask(context, DeleteTopicsRequest(topics=states, timeout_ms=1000), 6)
        assert "orders" in context.metadata.image.topics
    neither, both = answer.responses
    assert (neither.error_code, neither.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Neither topic name nor id were specified.",
    )
    assert (both.error_code, both.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "You may not specify both topic name and topic id.",
    )


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (1, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (6, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
async def test_deletion_may_be_switched_off(version: int, code: ErrorCode) -> None:
    async with running_broker({"delete.topic.enable": "false"}) as context:
        await make_topic(context, "orders")
        answers = await deleted(context, "orders", "nowhere", version=version)
        assert "orders" in context.metadata.image.topics
    assert [(answer.name, answer.error_code) for answer in answers] == [("orders", code), ("nowhere", code)]


async def test_who_does_not_want_to_wait_is_told_so_and_the_topic_is_deleted() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        revision = context.metadata.image.revision
        (answer,) = await deleted(context, "orders", timeout_ms=0)
        await asyncio.wait_for(context.metadata.applied(revision + 1), 5)
        assert context.metadata.image.topics == {}
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_a_topic_larger_than_a_commit_is_deleted_whole() -> None:
    async with running_broker() as context:
        await make_topic(context, "orders", 250)
        (answer,) = await deleted(context, "orders")
        assert (await context.metadata.store.read("/partitions/")).entries == {}
        assert len(context.partitions) == 0
    assert answer.error_code == ErrorCode.NONE
