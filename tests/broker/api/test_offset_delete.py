"""OffsetDelete: offsets go, but for topics that members read, and each partition is answered for itself."""

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.groups import GROUP, Member, commit, describe, fetch, generation, running_groups
from tests.broker.support import ask

Answers = dict[tuple[str, int], ErrorCode]


async def delete(context: Context, *positions: tuple[str, int], group_id: str = GROUP) -> tuple[ErrorCode, Answers]:
    topics = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for topic, index in positions
    ]
    answer = await ask(context, OffsetDeleteRequest(group_id=group_id, topics=topics), 0)
    return ErrorCode(answer.error_code), {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


async def test_offsets_of_a_simple_group_are_deleted() -> None:
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7, ("orders", 1): 8})
        done = await delete(context, ("orders", 0), ("orders", 2), ("orders", 9), ("nothing", 0))
        assert done == (
            ErrorCode.NONE,
            {
                ("orders", 0): ErrorCode.NONE,
                ("orders", 2): ErrorCode.NONE,
                ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            },
        )
        assert set(await fetch(context, None)) == {("orders", 1)}


async def test_a_topic_that_members_read_keeps_its_offsets() -> None:
    async with running_groups(topics=("orders", "bills")) as context:
        await commit(context, {("orders", 0): 7, ("bills", 0): 8})
        member = Member(context, topics=("orders",))
        await generation(member)
        assert await delete(context, ("orders", 0), ("bills", 0)) == (
            ErrorCode.NONE,
            {("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ("bills", 0): ErrorCode.NONE},
        )
        assert set(await fetch(context, None)) == {("orders", 0)}
        await member.leave()
        assert await delete(context, ("orders", 0)) == (ErrorCode.NONE, {("orders", 0): ErrorCode.NONE})
        assert (await describe(context)).group_state == "Empty", "a group without offsets remains"


async def test_a_group_whose_subscriptions_are_not_known_must_be_empty() -> None:
    async with running_groups() as context:
        worker = Member(context, protocol_type="connect")
        await generation(worker)
        assert await delete(context, ("orders", 0)) == (ErrorCode.NON_EMPTY_GROUP, {})
        await worker.leave()
        assert await delete(context, ("orders", 0)) == (ErrorCode.NONE, {("orders", 0): ErrorCode.NONE})


async def test_of_no_group_nothing_can_be_deleted() -> None:
    async with running_groups() as context:
        assert await delete(context, ("orders", 0)) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
        assert await delete(context) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
        assert await delete(context, ("orders", 0), group_id="") == (ErrorCode.INVALID_GROUP_ID, {})
