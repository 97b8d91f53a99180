"""DescribeTopicPartitions: topics in order of names, in pages that together hold each partition exactly once.

The pages were compared with those of Apache Kafka 4.3.1.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.cluster.keys import BrokerState, PartitionState, partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    TopicRequest,
)
from tests.broker.support import HERE, ask, make_topic, running_broker

TOPIC_OPERATIONS = 3576
"""As Apache Kafka 4.3.1 answers without an authorizer."""


async def described(
    context: Context, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return await ask(context, request, 0)


def pages(answer: DescribeTopicPartitionsResponse) -> tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]:
    topics = [(topic.name, [partition.partition_index for partition in topic.partitions]) for topic in answer.topics]
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


async def with_topics(context: Context) -> None:
    await make_topic(context, "p3", 3)
    await make_topic(context, "e1", 1)
    await make_topic(context, "b.c", 2)


async def test_a_topic_with_its_partitions() -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders", 1)
        answer = await described(context, "orders")
    (topic,) = answer.topics
    assert (topic.error_code, topic.topic_id, topic.is_internal) == (ErrorCode.NONE, topic_id, False)
    assert topic.topic_authorized_operations == TOPIC_OPERATIONS
    assert topic.partitions == [
        DescribeTopicPartitionsResponsePartition(
            partition_index=0,
            leader_id=0,
            leader_epoch=0,
            replica_nodes=[0],
            isr_nodes=[0],
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=[],
        )
    ]
    assert answer.next_cursor is None


@pytest.mark.parametrize(
    ("isr", "elr", "last_known_leader", "told"),
    [((0,), (1,), -1, ((1,), ())), ((), (1, 2), -1, ((1, 2), ())), ((), (), 2, ((), (2,))), ((0,), (), 2, ((), ()))],
)
async def test_who_may_lead_besides_those_in_sync_and_who_led_last_when_nobody_may(
    isr: tuple[int, ...], elr: tuple[int, ...], last_known_leader: int, told: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    async with running_broker() as context:
        topic_id = await make_topic(context, "orders")
        state = PartitionState(
            topic_id, (0, 1, 2), isr, isr[0] if isr else -1, 1, 1, elr=elr, last_known_leader=last_known_leader
        )
        revision = await context.metadata.store.commit(Txn(put={partition_key("orders", 0): state.encode()}))
        await context.metadata.applied(revision)
        (partition,) = (await described(context, "orders")).topics[0].partitions
    assert (tuple(partition.eligible_leader_replicas or ()), tuple(partition.last_known_elr or ())) == told


async def test_topics_come_in_order_of_their_names_and_no_names_means_all() -> None:
    async with running_broker() as context:
        await with_topics(context)
        everything = [("b.c", [0, 1]), ("e1", [0]), ("p3", [0, 1, 2])], None
        assert pages(await described(context, "p3", "b.c", "e1", "p3")) == everything
        assert pages(await described(context)) == everything


async def test_the_limit_ends_a_page_within_a_topic_or_between_two() -> None:
    async with running_broker() as context:
        await with_topics(context)
        names = "p3", "e1", "b.c"
        assert pages(await described(context, *names, limit=3)) == ([("b.c", [0, 1]), ("e1", [0])], ("p3", 0))
        assert pages(await described(context, *names, limit=4)) == (
            [("b.c", [0, 1]), ("e1", [0]), ("p3", [0])],
            ("p3", 1),
        )
        assert pages(await described(context, *names, limit=0)) == ([("b.c", [0])], ("b.c", 1))
        assert pages(await described(context, *names, limit=-5)) == ([("b.c", [0])], ("b.c", 1))


async def test_the_broker_has_a_limit_of_its_own() -> None:
    async with running_broker({"max.request.partition.size.limit": "2"}) as context:
        await with_topics(context)
        assert pages(await described(context, limit=2000)) == ([("b.c", [0, 1])], ("e1", 0))


async def test_a_page_begins_at_the_cursor() -> None:
    async with running_broker() as context:
        await with_topics(context)
        names = "p3", "e1", "b.c"
        assert pages(await described(context, *names, limit=3, cursor=("e1", 0))) == (
            [("e1", [0]), ("p3", [0, 1])],
            ("p3", 2),
        )
        assert pages(await described(context, *names, cursor=("p3", 1))) == ([("p3", [1, 2])], None)
        assert pages(await described(context, *names, limit=2, cursor=("e1", 5))) == (
            [("e1", []), ("p3", [0, 1])],
            ("p3", 2),
        )


async def test_among_all_topics_the_cursors_topic_may_have_gone() -> None:
    async with running_broker() as context:
        await with_topics(context)
        assert pages(await described(context, cursor=("c", 1))) == ([("e1", [0]), ("p3", [0, 1, 2])], None)


async def test_the_cursors_partition_counts_for_its_topic_only() -> None:
    async with running_broker() as context:
        await with_topics(context)
        assert pages(await described(context, "d", "p3", cursor=("d", 2))) == ([("d", []), ("p3", [0, 1, 2])], None)


async def test_a_cursor_that_fits_nothing_is_refused_for_every_topic() -> None:
    async with running_broker() as context:
        await with_topics(context)
        outside = await described(context, "p3", "b.c", cursor=("c", 0))
        negative = await described(context, "p3", cursor=("p3", -1))
    assert [(topic.name, topic.error_code) for topic in outside.topics] == [
        ("p3", ErrorCode.INVALID_REQUEST),
        ("b.c", ErrorCode.INVALID_REQUEST),
    ]
    assert [topic.error_code for topic in negative.topics] == [ErrorCode.INVALID_REQUEST]


async def test_missing_topics_and_impossible_names_have_errors_of_their_own() -> None:
    async with running_broker() as context:
        await with_topics(context)
        answer = await described(context, "zzz", "p3", "a b")
    assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
        ("p3", ErrorCode.NONE, 3),
        ("zzz", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]


async def test_a_partition_whose_leader_is_out_of_reach_has_none() -> None:
    elsewhere = BrokerState(1, {"INTERNAL": ("127.0.0.1", 1)})
    async with running_broker(brokers=(HERE, elsewhere)) as context:
        await make_topic(context, "orders", replicas=(1, 0), leader=1)
        answer = await described(context, "orders")
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (ErrorCode.NONE, -1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1, 0], [1, 0], [1])


@settings(max_examples=30)
@given(counts=st.lists(st.integers(1, 6), min_size=1, max_size=5), limit=st.integers(1, 8))
async def test_following_the_cursor_gives_each_partition_once(counts: list[int], limit: int) -> None:
    seen: list[tuple[str | None, int]] = []
    async with running_broker() as context:
        for number, count in enumerate(counts):
            await make_topic(context, f"t{number}", count)
        cursor = None
        for _ in range(sum(counts) + 1):
            topics, cursor = pages(await described(context, limit=limit, cursor=cursor))
            seen += [(name, index) for name, indexes in topics for index in indexes]
            if cursor is None:
                break
    assert cursor is None
    assert seen == [(f"t{number}", index) for number, count in enumerate(counts) for index in range(count)]
