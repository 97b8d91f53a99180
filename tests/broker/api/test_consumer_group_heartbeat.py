"""ConsumerGroupHeartbeat: members of KIP-848 join, own, and leave, with every error, in every version."""

from collections.abc import Mapping
from typing import Any

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.cluster.features import GROUP_VERSION
from odradek.broker.handling.context import Context
from odradek.broker.topic_patterns import LENGTH_MAX
from odradek.protocol.consumer_protocol import Assignment, decode_assignment, encode_assignment
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.broker.groups import GROUP, Member, commit, fetch, finalize, generation, running_groups
from tests.broker.support import ask, make_topic
from tests.broker.transactions import Denying

VERSIONS = range(2)
ALL = (0, 1, 2)
STALE = ErrorCode.STALE_MEMBER_EPOCH


async def beat(
    context: Context, member_id: str, epoch: int, *, version: int = 1, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch)
    for name, value in fields.items():
        setattr(request, name, value)
    return await ask(context, request, version)


async def join(context: Context, member_id: str = "a", **fields: Any) -> ConsumerGroupHeartbeatResponse:
    usual: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    return await beat(context, member_id, 0, **(usual | fields))


def assigned(answer: ConsumerGroupHeartbeatResponse) -> Mapping[bytes, tuple[int, ...]] | None:
    if answer.assignment is None:
        return None
    return {each.topic_id: tuple(each.partitions) for each in answer.assignment.topic_partitions}


def owned(context: Context, *indexes: int) -> list[TopicPartitions]:
    topic_id = context.metadata.image.topics["orders"].topic_id
    return [TopicPartitions(topic_id=topic_id, partitions=list(indexes))] if indexes else []


async def test_a_member_joins_hears_its_assignment_once_and_leaves() -> None:
    for version in VERSIONS:
        async with running_groups() as context:
            topic_id = context.metadata.image.topics["orders"].topic_id
            joined = await join(context, version=version)
            assert (joined.error_code, joined.error_message, joined.member_id) == (ErrorCode.NONE, None, "a")
            assert (joined.heartbeat_interval_ms, assigned(joined)) == (5_000, {topic_id: ALL})
            again = await beat(context, "a", joined.member_epoch, version=version)
            assert (again.member_epoch, assigned(again)) == (joined.member_epoch, None)
            left = await beat(context, "a", -1, version=version)
            assert (left.error_code, left.member_epoch, assigned(left)) == (ErrorCode.NONE, -1, None)


async def test_version_0_is_given_its_member_id_and_version_1_has_to_bring_one() -> None:
    async with running_groups() as context:
        joined = await join(context, "", version=0)
        assert (joined.error_code, len(joined.member_id or "")) == (ErrorCode.NONE, 22)
        refused = await join(context, "", version=1)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        assert refused.error_message


async def test_a_partition_is_given_only_after_its_owner_has_released_it() -> None:
    async with running_groups({"group.consumer.assignment.interval.ms": "0"}) as context:
        topic_id = context.metadata.image.topics["orders"].topic_id
        first = await join(context, "a")
        second = await join(context, "b")
        assert assigned(second) == {}
        told = await beat(context, "a", first.member_epoch)
        keeps = assigned(told)
        assert keeps is not None
        assert len(keeps[topic_id]) == 2
        assert assigned(await beat(context, "b", second.member_epoch)) is None
        await beat(context, "a", first.member_epoch, topic_partitions=owned(context, *keeps[topic_id]))
        given = assigned(await beat(context, "b", second.member_epoch))
        assert given is not None
        assert sorted((*keeps[topic_id], *given[topic_id])) == list(ALL)


@pytest.mark.parametrize(
    ("epoch", "fields"),
    [
        (0, {"topic_partitions": None}),
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"subscribed_topic_names": None}),
        (0, {"instance_id": " "}),
        (0, {"rack_id": ""}),
        (-2, {}),
        (-3, {}),
    ],
)
async def test_what_contradicts_itself_is_invalid(epoch: int, fields: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    async with running_groups() as context:
        for version in VERSIONS:
            answer = await beat(context, "a", epoch, version=version, **(usual | fields))
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert answer.error_message
            assert GROUP not in context.groups.of(GROUP).machine.groups, "it has made no group"


async def test_errors_of_members_are_kafkas() -> None:
    async with running_groups({"group.consumer.max.size": "2"}) as context:
        for version in VERSIONS:
            assert (await beat(context, "a", 1, version=version)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        joined = await join(context, instance_id="till-1")
        epoch = joined.member_epoch
        for version in VERSIONS:
            for asked, code in (
                (beat(context, "nobody", epoch, version=version), ErrorCode.UNKNOWN_MEMBER_ID),
                (beat(context, "a", epoch + 1, version=version), ErrorCode.FENCED_MEMBER_EPOCH),
                (beat(context, "b", epoch, version=version, instance_id="till-1"), ErrorCode.FENCED_INSTANCE_ID),
                (join(context, "b", version=version, instance_id="till-1"), ErrorCode.UNRELEASED_INSTANCE_ID),
                (join(context, "b", version=version, server_assignor="mine"), ErrorCode.UNSUPPORTED_ASSIGNOR),
            ):
                answer = await asked
                assert (ErrorCode(answer.error_code), answer.assignment) == (code, None)
                assert answer.error_message
        await join(context, "b")
        assert (await join(context, "c")).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


async def test_a_static_member_leaves_for_a_while_and_comes_back_to_what_it_had() -> None:
    async with running_groups() as context:
        joined = await join(context, instance_id="till-1")
        left = await beat(context, "a", -2, instance_id="till-1")
        assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -2)
        back = await join(context, "b", instance_id="till-1")
        assert (back.error_code, back.member_epoch) == (ErrorCode.NONE, joined.member_epoch)
        assert assigned(back) == assigned(joined)


async def test_an_expression_subscribes_to_the_topics_that_match_as_a_whole() -> None:
    async with running_groups(topics=("orders", "orders-eu", "bills")) as context:
        answer = await join(context, subscribed_topic_names=None, subscribed_topic_regex="orders(-.*)?")
        wanted = {context.metadata.image.topics[name].topic_id: ALL for name in ("orders", "orders-eu")}
        assert (answer.error_code, assigned(answer)) == (ErrorCode.NONE, wanted)
        await make_topic(context, "orders-us", 1)
        await beat(context, "a", answer.member_epoch)
        group = context.groups.of(GROUP).machine.groups[GROUP]
        assert [group.is_subscribed(name) for name in ("orders-us", "bills")] == [True, False]


@pytest.mark.parametrize("text", ["(", "a{1001}", "(?=a)", "a" * (LENGTH_MAX + 1)])
async def test_what_is_no_expression_of_re2_is_refused_with_a_sentence(text: str) -> None:
    async with running_groups() as context:
        answer = await join(context, subscribed_topic_names=None, subscribed_topic_regex=text)
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert answer.error_message
        assert GROUP not in context.groups.of(GROUP).machine.groups


async def test_a_group_id_is_not_empty() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            request = ConsumerGroupHeartbeatRequest(group_id="", member_id="a", member_epoch=0)
            assert (await ask(context, request, version)).error_code == ErrorCode.INVALID_GROUP_ID


async def test_before_the_feature_is_finalized_nobody_joins() -> None:
    async with running_groups() as context:
        await finalize(context, {})
        answer = await join(context)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "registered broker" in (answer.error_message or "")
        await finalize(context, {GROUP_VERSION: 1})
        assert (await join(context)).error_code == ErrorCode.NONE


async def test_a_broker_that_does_not_coordinate_the_group_says_so() -> None:
    async with running_groups() as context:
        context.groups.stop()
        assert (await join(context)).error_code == ErrorCode.NOT_COORDINATOR


async def test_a_classic_group_without_members_becomes_one_of_the_other_kind_and_back() -> None:
    async with running_groups() as context:
        classic = Member(context)
        await generation(classic)
        await classic.commit({("orders", 0): 7})
        await classic.leave()
        joined = await join(context)
        assert joined.error_code == ErrorCode.NONE
        assert (await fetch(context, [("orders", 0)]))[("orders", 0)][0] == 7
        await beat(context, "a", -1)
        await generation(Member(context))
        assert context.groups.of(GROUP).machine.groups[GROUP].kind.value == "classic"


async def test_a_classic_member_shares_its_group_with_a_newer_one_until_that_one_leaves() -> None:
    async with running_groups({"group.consumer.assignment.interval.ms": "0"}) as context:
        classic = Member(context)
        await classic.join()
        await classic.sync({classic.member_id: encode_assignment(Assignment({"orders": ALL}))})
        epoch = (await join(context, "n")).member_epoch
        assert await classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        joined = await classic.join()
        assert (joined.generation_id, joined.leader, joined.members) == (epoch, "", [])
        kept = decode_assignment((await classic.sync()).assignment).partitions["orders"]
        given = assigned(await beat(context, "n", epoch))
        assert given is not None
        assert sorted((*kept, *next(iter(given.values())))) == list(ALL)
        codes = await classic.commit({("orders", kept[0]): 7})
        assert set(codes.values()) == {ErrorCode.NONE}
        await beat(context, "n", -1)
        assert await classic.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        assert (await classic.join()).leader == classic.member_id
        assert context.groups.of(GROUP).machine.groups[GROUP].kind.value == "classic"


async def test_commits_are_fenced_by_the_member_epoch() -> None:
    async with running_groups() as context:
        epoch = (await join(context)).member_epoch
        for version in range(2, 10):
            codes = await commit(context, {("orders", 0): 1}, version, member_id="a", generation_id=epoch)
            good = ErrorCode.NONE if version >= 9 else ErrorCode.UNSUPPORTED_VERSION
            assert codes == {("orders", 0): good}
        codes = await commit(context, {("orders", 0): 1}, member_id="a", generation_id=epoch + 1)
        assert codes == {("orders", 0): STALE}
        codes = await commit(context, {("orders", 0): 1}, member_id="nobody", generation_id=epoch)
        assert codes == {("orders", 0): ErrorCode.UNKNOWN_MEMBER_ID}


async def test_it_needs_read_of_the_group_and_describe_of_each_named_topic() -> None:
    access = Denying()
    async with running_groups(access=access) as context:
        access.denied = ((Operation.READ, of_group(GROUP)),)
        assert (await join(context)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        access.denied = ((Operation.DESCRIBE, of_topic("orders")),)
        assert (await join(context)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        access.denied = ()
        assert (await join(context)).error_code == ErrorCode.NONE
