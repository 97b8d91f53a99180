"""Admin's calls about committed offsets, on a scripted cluster in memory and virtual time."""

from typing import Any

import pytest

from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.errors.client_errors import UnknownTopic
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.client.broker_faults import disconnect_after
from tests.client.group_handlers import member
from tests.client.groups_scene import P0, P1, TOPIC, asking, codes

pytestmark = pytest.mark.virtual_time

ALL: Any = None
SINGLE = {"a": {P0: CommittedOffset(5, "note", 3)}}
FAR = TopicPartition(TOPIC, 7)


# ------------------------------------------------------------------------------------------------------------- reading
@pytest.mark.parametrize("version", [2, 4, 7, 8, 10])
async def test_offsets_of_groups_are_read_at_every_version(version: int) -> None:
    async with asking({OffsetFetchRequest: version}) as (admin, scripted, groups):
        groups.add("a", node=1)
        groups.add("b", node=1)
        groups.offsets["a"] = {(TOPIC, 0): (5, "note", 3), (TOPIC, 1): (0, "", -1)}
        groups.offsets["b"] = {("gone", 2): (9, "", -1)}
        epoch = 3 if version >= 5 else -1
        offsets = {P0: CommittedOffset(5, "note", epoch), P1: CommittedOffset(0)}
        assert await admin.list_group_offsets(["a", "b"]) == {
            "a": offsets,
            "b": {TopicPartition("gone", 2): CommittedOffset(9)},
        }
        assert await admin.group_offsets("a") == offsets
        assert await admin.group_offsets("a", [P1, FAR]) == {P1: CommittedOffset(0)}
        assert await admin.group_offsets("typo") == {}
        assert all(each.version <= 9 for each in scripted.exchanges_of(OffsetFetchRequest)), "topics by name"


async def test_partitions_are_asked_for_by_group() -> None:
    async with asking() as (admin, scripted, groups):
        groups.offsets["a"] = {(TOPIC, 0): (5, "note", 3), (TOPIC, 1): (1, "", -1)}
        groups.offsets["b"] = {(TOPIC, 1): (2, "", -1)}
        found = await admin.list_group_offsets({"a": [P0], "b": ALL})
        assert found == {**SINGLE, "b": {P1: CommittedOffset(2)}}
        assert scripted.count(OffsetFetchRequest) == 1


async def test_partitions_that_failed_are_told_with_the_offsets_of_the_others() -> None:
    async with asking() as (admin, _, groups):
        groups.offsets["a"] = {(TOPIC, 0): (5, "note", 3), (TOPIC, 1): (-1, "", -1)}
        groups.partition_errors[TOPIC, 1] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(ItemsFailed) as caught:
            await admin.group_offsets("a")
        assert codes(caught.value) == {P1: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert caught.value.results == SINGLE["a"]


async def test_offsets_in_an_open_transaction_are_waited_for_where_that_is_asked_for() -> None:
    async with asking() as (admin, scripted, groups):
        groups.offsets["a"] = {(TOPIC, 0): (5, "note", 3)}
        groups.partition_errors[TOPIC, 0] = ErrorCode.UNSTABLE_OFFSET_COMMIT
        scripted.network.loop.call_later(1.0, groups.partition_errors.clear)
        assert await admin.group_offsets("a", require_stable=True) == SINGLE["a"]
        assert scripted.count(OffsetFetchRequest) > 1
        assert all(each.require_stable for each in scripted.requests(OffsetFetchRequest))
        assert scripted.count(FindCoordinatorRequest) == 1


@pytest.mark.parametrize("version", [2, 7, 8])
async def test_a_coordinator_that_moved_is_found_again(version: int) -> None:
    async with asking({OffsetFetchRequest: version}) as (admin, _, groups):
        group = groups.add("a", node=1)
        await admin.group_offsets("a")
        group.node = 2
        groups.offsets["a"] = {(TOPIC, 0): (5, "", -1)}
        assert await admin.group_offsets("a") == {P0: CommittedOffset(5)}


# ------------------------------------------------------------------------------------------------------------- setting
async def test_offsets_of_a_group_without_members_are_set() -> None:
    async with asking() as (admin, scripted, groups):
        await admin.alter_group_offsets("a", {P0: 5, P1: CommittedOffset(6, "note", 2)})
        assert groups.offsets["a"] == {(TOPIC, 0): (5, "", -1), (TOPIC, 1): (6, "note", 2)}
        assert all(each.version <= 9 for each in scripted.exchanges_of(OffsetCommitRequest)), "topics by name"


async def test_each_partition_has_its_own_error() -> None:
    async with asking() as (admin, _, groups):
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_group_offsets("a", {P0: 5, FAR: 6})
        assert isinstance(caught.value.errors[FAR], UnknownTopic)
        assert groups.offsets["a"] == {(TOPIC, 0): (5, "", -1)}


async def test_a_group_with_members_refuses_and_the_error_says_what_to_do() -> None:
    async with asking() as (admin, _, groups):
        groups.add("a", members=[member("m", {TOPIC: [0]})])
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_group_offsets("a", {P0: 5})
        assert codes(caught.value) == {P0: ErrorCode.UNKNOWN_MEMBER_ID}
        assert "The group has members, and its offsets are theirs: stop them" in str(caught.value.errors[P0])


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.REBALANCE_IN_PROGRESS])
async def test_what_passes_is_asked_again(code: ErrorCode) -> None:
    async with asking() as (admin, scripted, groups):
        groups.errors["a"] = [code]
        await admin.alter_group_offsets("a", {P0: 5})
        assert groups.offsets["a"] == {(TOPIC, 0): (5, "", -1)}
        assert scripted.count(FindCoordinatorRequest) == (2 if code is ErrorCode.NOT_COORDINATOR else 1)


# ------------------------------------------------------------------------------------------------------------ deleting
async def test_offsets_are_deleted_but_of_topics_that_members_read() -> None:
    async with asking() as (admin, scripted, groups):
        scripted.create_topic("payments", 1)
        groups.add("a", node=1, members=[member("m", {TOPIC: [0]})])
        groups.offsets["a"] = {(TOPIC, 0): (5, "", -1), ("payments", 0): (6, "", -1)}
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_group_offsets("a", [P0, TopicPartition("payments", 0)])
        assert codes(caught.value) == {P0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
        assert groups.offsets["a"] == {(TOPIC, 0): (5, "", -1)}


async def test_an_error_of_the_group_is_that_of_each_partition() -> None:
    async with asking() as (admin, _, _):
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_group_offsets("typo", [P0, P1])
        assert codes(caught.value) == {P0: ErrorCode.GROUP_ID_NOT_FOUND, P1: ErrorCode.GROUP_ID_NOT_FOUND}


async def test_deleting_again_after_a_lost_answer_does_no_harm() -> None:
    async with asking() as (admin, scripted, groups):
        groups.add("a")
        groups.offsets["a"] = {(TOPIC, 0): (5, "", -1)}
        scripted.on(OffsetDeleteRequest, disconnect_after())
        await admin.delete_group_offsets("a", [P0])
        assert groups.offsets["a"] == {}
        assert scripted.count(OffsetDeleteRequest) == 2
