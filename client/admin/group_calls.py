"""The calls of Admin about groups and their members. Each group is asked of its coordinator.

A call about several groups returns their results by group, or raises ItemsFailed with the error of each.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from odradek.client.admin.all_brokers import AllBrokersCall
from odradek.client.admin.base import AdminBase, items_of, only, require_group
from odradek.client.admin.calls import Again, Deadline
from odradek.client.admin.coordinators import CoordinatorCall
from odradek.client.admin.group_descriptions import described_consumer_groups, described_groups
from odradek.client.admin.group_errors import NOT_FOUND
from odradek.client.admin.groups import (
    SEVERAL_MEMBERS_SINCE,
    GroupDescription,
    GroupListing,
    MemberDescription,
    MemberToRemove,
    deleted_groups,
    leave_group_request,
    list_groups_request,
    listed_groups,
    removed_members,
)
from odradek.client.arguments import require_all, require_kind
from odradek.client.errors.client_errors import ClientError, UnsupportedVersion
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest

__all__ = ["GroupCalls"]


class GroupCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def list_groups(
        self,
        states: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> list[GroupListing]:
        """All groups that the principal may describe, by id; all brokers are asked at the same time.

        `states` ("Empty", "Stable", …, from Kafka 2.6 on) and `types` ("classic", "consumer", …): only such groups.

        Raises ItemsFailed when a broker has not answered in time, or has not loaded its groups by then: `errors` has
        the reason by broker id, `results` the groups that the other brokers coordinate. The same with
        UnsupportedVersion of brokers that do not know states or types.
        """
        deadline = self._deadline(timeout_ms)
        wanted_states = [] if states is None else await items_of("states", states, "groups' states")
        require_all("states", wanted_states, str, "groups' states (str)")
        wanted_types = [] if types is None else await items_of("types", types, "groups' types")
        require_all("types", wanted_types, str, "groups' types (str)")
        request, at_least = list_groups_request(wanted_states, wanted_types)

        async def ask(node_id: int) -> tuple[GroupListing, ...]:
            return listed_groups(await self._calls.ask(request, deadline, node=node_id, at_least=at_least), node_id)

        answers = await AllBrokersCall(self._calls, "ListGroups", ask, deadline).answers()
        # A group that moves meanwhile may be listed twice.
        listed = {group.group_id: group for answer in answers.values() for group in answer}
        return sorted(listed.values(), key=lambda group: group.group_id)

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: float | None = None
    ) -> dict[str, GroupDescription]:
        """Groups with their members, by id: classic ones, and consumer groups (KIP-848) where the broker has them.

        Raises ItemsFailed with GROUP_ID_NOT_FOUND for one that there is not, and others.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await _group_ids("group_ids", group_ids)
        call = CoordinatorCall(self._coordinators, deadline)

        async def ask(some: list[str], node_id: int) -> Mapping[str, GroupDescription | ClientError]:
            response = await self._calls.ask(DescribeGroupsRequest(groups=some), deadline, node=node_id)
            outcomes = described_groups(response, node_id)
            absent = [each for each, outcome in outcomes.items() if _is_absent(outcome)]
            return outcomes | (await self._describe_consumer_groups(absent, node_id, deadline) if absent else {})

        return await self._calls.complete("DescribeGroups", wanted, lambda some: call.each(some, ask), deadline)

    async def describe_group(self, group_id: str, *, timeout_ms: float | None = None) -> GroupDescription:
        """One group. Raises BrokerError with GROUP_ID_NOT_FOUND, and others."""
        require_group(group_id)
        return await only(group_id, self.describe_groups([group_id], timeout_ms=timeout_ms))

    async def _describe_consumer_groups(
        self, group_ids: list[str], node_id: int, deadline: Deadline
    ) -> dict[str, GroupDescription | ClientError]:
        """Those of them that are consumer groups."""
        request = ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=False)
        try:
            response = await self._calls.ask(request, deadline, node=node_id)
        except UnsupportedVersion:
            return {}  # before Kafka 3.7 there are none
        return described_consumer_groups(response, node_id)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: float | None = None) -> None:
        """Deletes groups that have no members, with their offsets.

        A group that is gone after a lost answer counts as deleted. Raises ItemsFailed with NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND and others.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await _group_ids("group_ids", group_ids)
        call = CoordinatorCall(self._coordinators, deadline)

        async def ask(some: list[str], node_id: int) -> Mapping[str, ClientError | None]:
            outcomes = deleted_groups(
                await self._calls.ask(DeleteGroupsRequest(groups_names=some), deadline, node=node_id)
            )
            gone = {each for each in call.lost if _is_absent(outcomes.get(each))}
            return outcomes | dict.fromkeys(gone)

        await self._calls.complete("DeleteGroups", wanted, lambda some: call.each(some, ask), deadline)

    async def remove_group_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove | MemberDescription] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Removes members from a group, or (None) all that it has; the others share the partitions then.

        Members that still run join again. `reason` is told to the coordinator (KIP-800). Members that are gone after a
        lost answer count as removed.

        Raises ItemsFailed with UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, UnsupportedVersion (for static members, before
        Kafka 2.4) and others.
        """
        require_group(group_id)
        if reason is not None:
            require_kind("reason", reason, str, "a text, or None")
        deadline = self._deadline(timeout_ms)
        given: Iterable[Any]
        if members is None:
            given = (await self.describe_group(group_id, timeout_ms=timeout_ms)).members
        else:
            given = await items_of("members", members, "MemberToRemove objects")
        wanted = [_to_remove(each) for each in given]
        call = CoordinatorCall(self._coordinators, deadline)

        async def attempt(some: list[MemberToRemove]) -> Mapping[MemberToRemove, ClientError | Again | None]:
            return await call.one(group_id, some, lambda node_id: ask(some, node_id))

        async def ask(some: list[MemberToRemove], node_id: int) -> Mapping[MemberToRemove, ClientError | None]:
            outcomes = await self._remove(group_id, some, reason, node_id, deadline)
            if group_id in call.lost:
                return {each: None if _is_gone(error) else error for each, error in outcomes.items()}
            return outcomes

        await self._calls.complete("LeaveGroup", wanted, attempt, deadline)

    async def _remove(
        self, group_id: str, members: list[MemberToRemove], reason: str | None, node_id: int, deadline: Deadline
    ) -> dict[MemberToRemove, ClientError | None]:
        is_plain = len(members) == 1 and members[0].instance_id is None
        request = leave_group_request(group_id, members, reason)
        try:
            at_least = 0 if is_plain else SEVERAL_MEMBERS_SINCE
            response = await self._calls.ask(request, deadline, node=node_id, at_least=at_least)
        except UnsupportedVersion:
            if is_plain or any(each.instance_id is not None for each in members):
                raise
            outcomes: dict[MemberToRemove, ClientError | None] = {}
            for each in members:
                outcomes |= await self._remove(group_id, [each], reason, node_id, deadline)
            return outcomes
        return removed_members(group_id, members, response)


async def _group_ids(name: str, group_ids: Iterable[str]) -> list[str]:
    """Raises TypeError."""
    wanted = await items_of(name, group_ids, "groups' ids")
    require_all(name, wanted, str, "groups' ids (str)")
    return list(dict.fromkeys(wanted))


def _to_remove(member: object) -> MemberToRemove:
    """Raises TypeError."""
    if isinstance(member, MemberDescription):
        return MemberToRemove(member.member_id, member.instance_id)
    require_all("members", [member], MemberToRemove, "MemberToRemove or MemberDescription objects")
    assert isinstance(member, MemberToRemove)
    return member


def _is_absent(outcome: object) -> bool:
    return isinstance(outcome, ClientError) and outcome.code is NOT_FOUND


def _is_gone(error: ClientError | None) -> bool:
    return error is not None and error.code is ErrorCode.UNKNOWN_MEMBER_ID
