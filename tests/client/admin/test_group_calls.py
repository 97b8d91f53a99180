"""Admin's calls about groups and their members, on a scripted cluster in memory and virtual time."""

from typing import Any

import pytest

from odradek.client.admin import coordinators
from odradek.client.admin.coordinators import TOGETHER_MAX
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupListing, GroupRebalance, MemberToRemove
from odradek.client.errors.client_errors import BrokerError, RequestTimedOut, UnsupportedVersion
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import consumer_group_describe, group_rebalances
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.client.broker_faults import disconnect_after, late, never
from tests.client.group_handlers import member
from tests.client.groups_scene import P0, P1, TOPIC, asking, codes

pytestmark = pytest.mark.virtual_time

KAFKA_2_1: dict[type[Request[Any]], int] = {
    FindCoordinatorRequest: 2,
    ListGroupsRequest: 2,
    DescribeGroupsRequest: 2,
    ConsumerGroupDescribeRequest: -1,
    DeleteGroupsRequest: 1,
    LeaveGroupRequest: 2,
    OffsetFetchRequest: 5,
    OffsetCommitRequest: 6,
    OffsetDeleteRequest: -1,
}
"""The last version of each request that it serves; -1: it does not know it."""


# ------------------------------------------------------------------------------------------------------------- listing
async def test_the_groups_of_all_brokers_are_listed_by_name() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("c", node=0)
        groups.add("a", node=2, members=[member("m", {TOPIC: [0]})])
        groups.add("b", node=1).group_type = "consumer"
        assert await admin.list_groups() == [
            GroupListing("a", "consumer", "Stable", "classic"),
            GroupListing("b", "consumer", "Empty", "consumer"),
            GroupListing("c", "consumer", "Empty", "classic"),
        ]
        assert [scripted.count(ListGroupsRequest, node=node) for node in range(3)] == [1, 1, 1]
        assert [each.group_id for each in await admin.list_groups(states=["Stable"])] == ["a"]
        assert [each.group_id for each in await admin.list_groups(types=["consumer"])] == ["b"]


async def test_an_older_broker_tells_neither_states_nor_types() -> None:
    async with asking({ListGroupsRequest: 3}) as (admin, _, groups):
        groups.add("a")
        assert await admin.list_groups(types=["classic"]) == [GroupListing("a", "consumer")]
        for states, types in ((["Stable"], None), (None, ["consumer"])):
            with pytest.raises(ItemsFailed) as caught:
                await admin.list_groups(states, types)
            assert all(isinstance(error, UnsupportedVersion) for error in caught.value.errors.values())


async def test_a_broker_that_still_loads_its_groups_is_waited_for() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a", node=1)
        groups.loading = {1}
        scripted.network.loop.call_later(2.0, groups.loading.clear)
        assert [each.group_id for each in await admin.list_groups()] == ["a"]


async def test_brokers_that_load_or_are_gone_are_named_with_the_groups_of_the_others() -> None:
    async with asking(default_api_timeout_ms=3_000) as (admin, scripted, groups):
        groups.add("a", node=0)
        groups.add("b", node=1)
        groups.loading = {1}
        scripted.brokers[2].stop(vanish=True)
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_groups()
        assert set(caught.value.errors) == {1, 2}
        assert caught.value.errors[1].code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert [each.group_id for each in caught.value.results[0]] == ["a"]


async def test_what_a_broker_has_answered_before_the_deadline_is_not_lost() -> None:
    """It is asked again while another one loads, and has no time to answer then."""
    async with asking(default_api_timeout_ms=3_000) as (admin, scripted, groups):
        groups.add("a", node=0)
        groups.loading = {1}
        scripted.on(ListGroupsRequest, never(), node=0, nth=2, times=None)
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_groups()
        assert codes(caught.value) == {1: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        assert [each.group_id for each in caught.value.results[0]] == ["a"]


async def test_who_took_over_from_a_broker_that_left_is_asked() -> None:
    """What one has answered is not enough: the groups of the one that left may have come to it since."""
    async with asking() as (admin, scripted, groups):
        groups.add("a", node=1)
        scripted.on(ListGroupsRequest, late(300), node=0)
        scripted.on(ListGroupsRequest, never(applies=False), node=1)

        def leave() -> None:
            scripted.brokers[1].stop(fenced=True)
            groups.groups["a"].node = 0

        scripted.network.loop.call_later(0.5, leave)
        assert [each.group_id for each in await admin.list_groups()] == ["a"]


# --------------------------------------------------------------------------------------------------------- describing
async def test_groups_are_described_by_their_coordinators() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a", node=1, members=[member("m-1", {TOPIC: [1, 0]}, instance_id="one"), member("m-2", {})])
        groups.add("b", node=2).state = "PreparingRebalance"
        found = await admin.describe_groups(["a", "b"])
        assert [(each.state, each.protocol, each.coordinator_id, each.is_active) for each in found.values()] == [
            ("Stable", "range", 1, True),
            ("PreparingRebalance", "", 2, True),
        ]
        first, second = found["a"].members
        assert (first.member_id, first.instance_id, first.client_id, first.host) == ("m-1", "one", "app", "10.1.2.3")
        assert first.partitions == (P0, P1)
        assert first.subscribed_topics == (TOPIC,)
        assert second.partitions == ()
        assert scripted.count(FindCoordinatorRequest) == 1, "both at once"


async def test_why_a_group_rebalanced_is_told_where_the_broker_tells_it() -> None:
    told = [
        group_rebalances.GroupRebalance(
            started_ms=9_000, generation=2, cause="session expired", reason="silent", member_id="m", instance_id="i",
            last_heard_ms=8_000,
        ),
        group_rebalances.GroupRebalance(started_ms=9_500, generation=3, cause="topics changed", reason="orders"),
    ]  # fmt: skip
    expected = (
        GroupRebalance(9_000, 2, "session expired", "silent", "m", "i", 8_000),
        GroupRebalance(9_500, 3, "topics changed", "orders"),
    )
    async with asking() as (admin, _, groups):
        for group_type in ("classic", "consumer"):
            group = groups.add(group_type)
            group.group_type = group_type
            assert (await admin.describe_group(group_type)).rebalances == ()
            group.rebalances = told
            assert (await admin.describe_group(group_type)).rebalances == expected
    async with asking({DescribeGroupsRequest: 4}) as (admin, _, groups):
        groups.add("a").rebalances = told
        assert (await admin.describe_group("a")).rebalances == (), "there are no tags"


async def test_what_other_programs_put_into_assignments_is_opaque() -> None:
    async with asking() as (admin, _, groups):
        for protocol_type, content in (("connect", b"\0\1anything"), ("consumer", b"\0")):
            its = member("m", {})
            its.member_assignment = its.member_metadata = content
            groups.add("a", members=[its]).protocol_type = protocol_type
            (found,) = (await admin.describe_group("a")).members
            assert (found.assignment, found.partitions, found.subscribed_topics) == (content, None, None)


@pytest.mark.parametrize("version", [0, 5, 6])
async def test_a_group_that_does_not_exist_is_not_found(version: int) -> None:
    async with asking({DescribeGroupsRequest: version}) as (admin, _, groups):
        groups.add("a")
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_groups(["a", "typo"])
        assert codes(caught.value) == {"typo": ErrorCode.GROUP_ID_NOT_FOUND}
        assert "odradek groups list" in str(caught.value.errors["typo"])
        assert caught.value.results["a"].state == "Empty"


async def test_a_group_of_kip_848_is_described_with_its_epochs() -> None:
    async with asking() as (admin, _, groups):
        group = groups.add("new", node=1)
        group.group_type, group.state = "consumer", "Stable"
        assigned = consumer_group_describe.Assignment(
            topic_partitions=[
                consumer_group_describe.TopicPartitions(topic_id=bytes(16), topic_name=TOPIC, partitions=[1])
            ]
        )
        group.consumer_members = [
            consumer_group_describe.Member(
                member_id="m", member_epoch=7, client_id="app", client_host="/h", subscribed_topic_names=[TOPIC],
                assignment=assigned, target_assignment=assigned,
            )
        ]  # fmt: skip
        groups.add("old", node=1)
        found = await admin.describe_groups(["new", "old"])
        assert (found["new"].group_type, found["old"].group_type) == ("consumer", "classic")
        assert (found["new"].group_epoch, found["new"].assignment_epoch, found["new"].protocol) == (7, 6, "uniform")
        (its,) = found["new"].members
        assert (its.partitions, its.target_partitions, its.member_epoch, its.host) == ((P1,), (P1,), 7, "h")


async def test_a_broker_without_kip_848_is_not_asked_for_its_groups() -> None:
    async with asking({ConsumerGroupDescribeRequest: -1}) as (admin, _, _):
        with pytest.raises(BrokerError) as caught:
            await admin.describe_group("typo")
        assert caught.value.code is ErrorCode.GROUP_ID_NOT_FOUND


# -------------------------------------------------------------------------------------------------- coordinators move
@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
)
async def test_the_coordinator_is_kept_until_it_says_that_it_is_none(code: ErrorCode) -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a", node=1)
        for _ in range(2):
            await admin.describe_group("a")
        assert scripted.count(FindCoordinatorRequest) == 1
        groups.errors["a"] = [code]
        await admin.describe_group("a")
        assert scripted.count(FindCoordinatorRequest) == 2


async def test_the_coordinator_is_found_again_when_it_has_gone() -> None:
    async with asking() as (admin, scripted, groups):
        group = groups.add("a", node=1)
        await admin.describe_group("a")
        scripted.brokers[1].stop(fenced=True)
        scripted.network.loop.call_later(1.0, lambda: setattr(group, "node", 2))
        assert (await admin.describe_group("a")).coordinator_id == 2


async def test_without_a_coordinator_the_call_ends_in_time_and_says_why() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a", node=1)
        scripted.brokers[1].stop(fenced=True)
        with pytest.raises(BrokerError) as caught:
            await admin.describe_group("a", timeout_ms=2_000)
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "The broker says: no leader." in str(caught.value)
        assert "__consumer_offsets" in str(caught.value)


async def test_of_many_groups_a_request_names_a_part() -> None:
    async with asking() as (admin, scripted, groups):
        names = [f"g-{index}" for index in range(TOGETHER_MAX + 1)]
        for name in names:
            groups.add(name)
        await admin.delete_groups(names)
        assert [len(each.groups_names) for each in scripted.requests(DeleteGroupsRequest)] == [TOGETHER_MAX, 1]
        assert groups.groups == {}


async def test_more_coordinators_than_are_kept_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "KEPT_MAX", 2)
    async with asking() as (admin, scripted, groups):
        for name in ("a", "b", "c"):
            groups.add(name)
            await admin.describe_group(name)
        await admin.describe_groups(["b", "c"])
        asked = [each.coordinator_keys for each in scripted.requests(FindCoordinatorRequest)]
        assert asked == [["a"], ["b"], ["c"], ["b"]]


async def test_groups_are_looked_after_at_kafka_2_1() -> None:
    async with asking(KAFKA_2_1) as (admin, _, groups):
        groups.add("a", node=1, members=[member("m-1", {TOPIC: [0]})])
        groups.add("b", node=2)
        assert [(each.group_id, each.state) for each in await admin.list_groups()] == [("a", None), ("b", None)]
        found = await admin.describe_groups(["a", "b"])
        assert [each.partitions for each in found["a"].members] == [(P0,)]
        await admin.remove_group_members("a")
        await admin.alter_group_offsets("a", {P0: 5})
        assert await admin.list_group_offsets(["a", "b"]) == {"a": {P0: CommittedOffset(5)}, "b": {}}
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_group_offsets("a", [P0])
        assert [type(error) for error in caught.value.errors.values()] == [UnsupportedVersion]
        await admin.delete_groups(["a", "b"])
        assert groups.groups == {}


async def test_older_brokers_are_asked_for_one_coordinator_at_a_time() -> None:
    async with asking({FindCoordinatorRequest: 3}) as (admin, scripted, groups):
        groups.add("a", node=1)
        groups.add("b", node=2)
        assert set(await admin.describe_groups(["a", "b"])) == {"a", "b"}
        assert [each.key for each in scripted.requests(FindCoordinatorRequest)] == ["a", "b"]


# ------------------------------------------------------------------------------------------------------------ deleting
async def test_groups_without_members_are_deleted() -> None:
    async with asking() as (admin, _, groups):
        groups.add("a", node=1)
        groups.add("b", members=[member("m", {})])
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_groups(["a", "b", "typo"])
        assert codes(caught.value) == {"b": ErrorCode.NON_EMPTY_GROUP, "typo": ErrorCode.GROUP_ID_NOT_FOUND}
        assert set(groups.groups) == {"b"}


async def test_a_group_that_is_gone_after_a_lost_answer_was_deleted() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a")
        scripted.on(DeleteGroupsRequest, disconnect_after())
        await admin.delete_groups(["a"])
        assert scripted.count(DeleteGroupsRequest) == 2


async def test_a_coordinator_that_does_not_answer_is_told_at_the_deadline() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a")
        scripted.on(DeleteGroupsRequest, never(), times=None)
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_groups(["a"], timeout_ms=1_000)
        assert isinstance(caught.value.errors["a"], RequestTimedOut)


# ------------------------------------------------------------------------------------------------------------- members
async def test_members_are_removed_by_what_describe_groups_returns_of_them() -> None:
    async with asking() as (admin, _, groups):
        its = [member("m-1", {}), member("m-2", {}, instance_id="two"), member("m-3", {})]
        groups.add("a", members=its)
        described = await admin.describe_group("a")
        await admin.remove_group_members("a", described.members[:2], reason="a test")
        assert [each.member_id for each in groups.groups["a"].members] == ["m-3"]
        await admin.remove_group_members("a")
        assert groups.groups["a"].members == []


async def test_each_member_has_its_own_error() -> None:
    async with asking() as (admin, _, groups):
        groups.add("a", members=[member("m-1", {}, instance_id="one"), member("m-2", {})])
        gone, other = MemberToRemove("m-9"), MemberToRemove("m-8", "one")
        with pytest.raises(ItemsFailed) as caught:
            await admin.remove_group_members("a", [gone, MemberToRemove("m-2"), other])
        assert codes(caught.value) == {gone: ErrorCode.UNKNOWN_MEMBER_ID, other: ErrorCode.FENCED_INSTANCE_ID}
        await admin.remove_group_members("a", [MemberToRemove(instance_id="one")])
        assert groups.groups["a"].members == []


async def test_older_brokers_remove_one_member_at_a_time_and_no_static_ones() -> None:
    async with asking({LeaveGroupRequest: 2}) as (admin, scripted, groups):
        groups.add("a", members=[member("m-1", {}), member("m-2", {}, instance_id="two"), member("m-3", {})])
        await admin.remove_group_members("a", [MemberToRemove("m-1"), MemberToRemove("m-3")])
        assert [each.member_id for each in scripted.requests(LeaveGroupRequest)] == ["m-1", "m-3"]
        with pytest.raises(ItemsFailed) as caught:
            await admin.remove_group_members("a")
        assert [type(error) for error in caught.value.errors.values()] == [UnsupportedVersion]


async def test_members_that_are_gone_after_a_lost_answer_were_removed() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a", members=[member("m-1", {})])
        scripted.on(LeaveGroupRequest, disconnect_after())
        await admin.remove_group_members("a", [MemberToRemove("m-1")])
        assert scripted.count(LeaveGroupRequest) == 2
