"""What clients of groups may send and should not: each is refused clearly or kept as it is, memory stays bounded, and
other groups notice nothing."""

import asyncio
import gc
import sys
import time
from collections import Counter
from collections.abc import Awaitable
from math import inf
from typing import Any, TypeVar

import pytest

from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.handling import large_requests
from odradek.broker.handling.context import Caller, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.runtime.tasks import breathe
from tests.broker.coordinator.test_shard import batches
from tests.broker.groups import (
    GROUP,
    NOWHERE,
    Member,
    classic_group,
    commit,
    describe,
    fetch,
    generation,
    machine,
    running_groups,
)
from tests.broker.support import LISTENER, ask

R = TypeVar("R", bound=Response)

FIRST = ("orders", 0)
SHARE_MAX = 0.2
"""Of what a loop does for a large request, in one turn (`longest_turn`): near 1 where others have none."""
MEBIBYTE = 1 << 20
GROUP_IDS = ["g", "a" * 249, "a" * 250, "a" * 32_767, "𝄞 clef", "🦆" * 8_191, "/../\x00\n", " "]


# -- what is opaque ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\xff" * 10, b"\x00\x01\x7f\xff\xff\xff"], ids=repr)
async def test_subscriptions_and_assignments_that_do_not_parse_are_kept_as_they_are(garbage: bytes) -> None:
    async with running_groups() as context:
        member, other = Member(context), Member(context, "invoices")
        member.metadata = garbage
        await member.join()
        assert (await member.sync({member.member_id: garbage})).assignment == garbage
        [described] = (await describe(context)).members
        assert (described.member_metadata, described.member_assignment) == (garbage, garbage)
        assert await member.commit({FIRST: 7}) == {FIRST: ErrorCode.NONE}
        assert await member.heartbeat() is ErrorCode.NONE
        await generation(other)
        assert (await member.leave()).members[0].error_code == ErrorCode.NONE


# -- what is large -----------------------------------------------------------------------------------------------------


async def test_more_of_a_member_than_the_log_takes_is_a_clear_error() -> None:
    """The group record would be larger than a batch may be, as in Kafka; the group goes on without it."""
    async with running_groups() as context:
        member, other = Member(context), Member(context, "invoices")
        member.metadata = bytes(2 * MEBIBYTE)
        joined = await member.join()
        assert joined.error_code == ErrorCode.NONE, "nothing of it is written yet"
        synced = await member.sync({member.member_id: bytes(2 * MEBIBYTE)})
        assert (synced.error_code, synced.assignment) == (ErrorCode.UNKNOWN_SERVER_ERROR, b"")
        await member.leave()
        await generation(other)
        await generation(Member(context))


async def test_a_megabyte_of_subscription_that_fits_is_stored() -> None:
    async with running_groups({"message.max.bytes": str(4 * MEBIBYTE)}) as context:
        member = Member(context)
        member.metadata = bytes(MEBIBYTE)
        await member.join()
        synced = await member.sync({member.member_id: bytes(MEBIBYTE)})
        assert (synced.error_code, len(synced.assignment)) == (ErrorCode.NONE, MEBIBYTE)
        [described] = (await describe(context)).members
        assert (len(described.member_metadata), len(described.member_assignment)) == (MEBIBYTE, MEBIBYTE)


async def test_a_megabyte_of_metadata_with_an_offset_is_refused() -> None:
    async with running_groups() as context:
        for text in ("a" * 30_000, "🦆" * 2049):
            assert await commit(context, {FIRST: 7}, metadata=text) == {FIRST: ErrorCode.OFFSET_METADATA_TOO_LARGE}
        assert await fetch(context, [FIRST]) == {FIRST: NOWHERE}
        assert machine(context).groups == {}


async def test_a_string_that_is_longer_than_any_may_be_closes_the_connection() -> None:
    """32,767 bytes are the most, also where the format could say more; as in Kafka."""
    async with running_groups() as context:
        request = committing(["orders"])
        request.topics[0].partitions[0].committed_metadata = "M"
        header = RequestHeader(request.api_key, 8, 7, "support")
        frame = b"".join(request_frame(header, True, encode_parts(request, 8)))[4:]
        assert frame.count(b"\x02M") == 1
        megabyte = b"\x81\x80\x40" + b"M" * MEBIBYTE
        with pytest.raises(MalformedMessage, match="1048576"):
            await dispatch_alone(context, Caller(LISTENER), memoryview(frame.replace(b"\x02M", megabyte)))
        assert machine(context).groups == {}


async def longest_turn(context: Context, request: Request[R], version: int) -> tuple[float, R]:
    """The longest time without a turn of somebody else, as a share of all that the loop did for the request, and the
    answer. Both are of the loop's thread, in seconds of processor: how fast a machine is, and what else runs on it, is
    in neither."""
    header = RequestHeader(request.api_key, version, 7, "support")
    frame = memoryview(b"".join(request_frame(header, True, encode_parts(request, version))))[4:]
    gc.collect()
    gc.freeze()
    turns: list[float] = []

    async def others() -> None:
        while True:
            began_s = time.thread_time()
            await breathe()
            turns.append(time.thread_time() - began_s)

    other = asyncio.ensure_future(others())
    began_s = time.thread_time()
    reply = await dispatch_alone(context, Caller(LISTENER), frame)
    took_s = time.thread_time() - began_s
    other.cancel()
    gc.unfreeze()
    assert reply is not None
    data = b"".join(reply)[4:]
    _, position = read_response_header(data, True)
    return max(turns, default=inf) / took_s, decode(request.response_type, version, data, position)


def errors_of(answer: OffsetCommitResponse) -> Counter[ErrorCode]:
    return Counter(ErrorCode(each.error_code) for topic in answer.topics for each in topic.partitions)


def committing(topics: list[str]) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=GROUP,
        topics=[
            OffsetCommitRequestTopic(
                name=name,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")],
            )
            for name in topics
        ],
    )


async def test_a_hundred_thousand_topics_in_one_commit_hold_nobody_up() -> None:
    async with running_groups() as context:
        count = 100_000
        unknown = [f"nothing-{number}" for number in range(count)]
        share, answer = await longest_turn(context, committing(unknown), 8)
        assert errors_of(answer) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: count}
        assert machine(context).groups == {}
        assert share < SHARE_MAX


async def test_a_hundred_thousand_topics_in_one_fetch_of_a_group_hold_nobody_up() -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7})
        topics = [
            OffsetFetchRequestTopics(name=f"nothing-{number}", partition_indexes=[0]) for number in range(100_000)
        ]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)])
        share, answer = await longest_turn(context, request, 9)
        assert len(answer.groups[0].topics) == len(topics)
        assert share < SHARE_MAX


async def test_thousands_of_offsets_in_one_commit_are_one_batch_or_none_of_it() -> None:
    """More than a batch may hold is refused with the error of Kafka 4 (`CoordinatorOperationExceptionHelper`)."""
    async with running_groups() as context:
        partition = context.groups.of(GROUP).partition
        answer = await ask(context, committing(["orders"] * 3_000), 8)
        assert errors_of(answer) == {ErrorCode.NONE: 3_000}
        assert batches(partition) == [3_000]
        answer = await ask(context, committing(["orders"] * 20_000), 8)
        assert errors_of(answer) == {ErrorCode.UNKNOWN_SERVER_ERROR: 20_000}
        assert batches(partition) == [3_000]
        assert await fetch(context, [FIRST]) == {FIRST: (7, -1, "", ErrorCode.NONE)}


@pytest.mark.parametrize("kind", ["describe", "describe consumers", "delete", "fetch", "find"])
async def test_thousands_of_groups_in_one_request_hold_nobody_up(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have a turn after each 500 of them."""
    names = [f"group-{number}" for number in range(4_000)]
    turns = 0

    def counted() -> Awaitable[None]:
        nonlocal turns
        turns += 1
        return breathe()

    monkeypatch.setattr(large_requests, "breathe", counted)
    asked: dict[str, tuple[Request[Any], int]] = {
        "describe": (DescribeGroupsRequest(groups=names), 6),
        "describe consumers": (ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False), 1),
        "delete": (DeleteGroupsRequest(groups_names=names), 2),
        "fetch": (
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]),
            9,
        ),
        "find": (FindCoordinatorRequest(coordinator_keys=names), 4),
    }
    request, version = asked[kind]
    async with running_groups() as context:
        await ask(context, request, version)
    assert turns == len(names) // large_requests.STEPS_TOGETHER


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group_id", GROUP_IDS, ids=lambda text: f"{text[:3]!a} {len(text)}")
async def test_a_group_may_have_any_name(group_id: str) -> None:
    """As in Kafka, which refuses the empty one alone, and that not for commits."""
    async with running_groups() as context:
        member = Member(context, group_id)
        await generation(member)
        assert await member.commit({FIRST: 7}) == {FIRST: ErrorCode.NONE}
        assert (await fetch(context, [FIRST], group_id=group_id))[FIRST][0] == 7
        assert (await describe(context, group_id)).group_state == "Stable"
        consumers = f"{group_id[:-1]}~"
        joined = await ask(context, joining(consumers, subscribed_topic_names=["orders"]), 1)
        assert joined.error_code == ErrorCode.NONE, joined.error_message


def joining(group_id: str, **fields: object) -> ConsumerGroupHeartbeatRequest:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id="a", member_epoch=0, rebalance_timeout_ms=1000, topic_partitions=[]
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return request


# -- regular expressions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["(a+)+$", "(a|a)*b", "(.*a){20}b", "a?" * 100 + "a" * 100])
async def test_no_regular_expression_holds_the_broker_up(text: str) -> None:
    async with running_groups(topics=("orders", "a" * 248 + "-")) as context:
        began_s = time.thread_time()
        joined = await ask(context, joining(GROUP, subscribed_topic_regex=text), 1)
        assert joined.error_code == ErrorCode.NONE, joined.error_message
        assert time.thread_time() - began_s < 0.5


@pytest.mark.parametrize("text", ["(", "(a{1000}){1000}", "a" * 5000, r"(a)\1"], ids=lambda text: text[:20])
async def test_what_is_no_expression_is_refused_with_a_sentence(text: str) -> None:
    async with running_groups() as context:
        refused = await ask(context, joining(GROUP, subscribed_topic_regex=text), 1)
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refused.error_message
        assert machine(context).groups == {}


async def test_without_re2_every_expression_is_refused_and_names_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    async with running_groups() as context:
        refused = await ask(context, joining(GROUP, subscribed_topic_regex="orders"), 1)
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert "odradek[re2]" in (refused.error_message or "")
        assert (await ask(context, joining(GROUP, subscribed_topic_names=["orders"]), 1)).error_code == ErrorCode.NONE


# -- coming and going --------------------------------------------------------------------------------------------------


async def test_a_member_that_joins_and_leaves_without_end_leaves_nothing_behind() -> None:
    async with running_groups(topics=("orders", "bills")) as context:
        stays = Member(context, "invoices")
        await generation(stays)
        for number in range(200):
            member = Member(context, session_timeout_ms=1_800_000)
            await member.join()
            await member.leave()
            assert await stays.heartbeat() is ErrorCode.NONE
            join = joining("consumers", member_id=f"member-{number}", subscribed_topic_names=["orders"])
            leave = ConsumerGroupHeartbeatRequest(group_id="consumers", member_id=join.member_id, member_epoch=-1)
            for request in (join, leave):
                assert (await ask(context, request, 1)).error_code == ErrorCode.NONE
        assert len(classic_group(context).rebalances) <= 10
        for shard in context.groups.all:
            timers = shard.machine._host.timers  # pyright: ignore[reportPrivateUsage]
            assert len(timers) <= 4
            assert len(timers._heap) <= 100  # pyright: ignore[reportPrivateUsage]
            assert shard.commits._newest == {}  # pyright: ignore[reportPrivateUsage]
        consumers = machine(context, "consumers").groups["consumers"]
        assert isinstance(consumers, ConsumerGroup)
        state = consumers.state
        assert not (state.members or state.currents or state.targets or state.owners or state.static_ids)
