"""Groups and their members as Admin returns them; the requests that list and delete groups, and remove members. Pure.

States and types are the words of the brokers ("Stable", "Empty", "PreparingRebalance"; types in lower case: "classic",
"consumer"), since later brokers have more of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.client.admin.group_errors import group_error
from odradek.client.errors.base import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.delete_groups import DeleteGroupsResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

__all__ = ["GroupDescription", "GroupListing", "GroupRebalance", "MemberDescription", "MemberToRemove"]

STATES_SINCE: Final = 4
"""The version of ListGroups from which on groups can be listed by state (KIP-518)."""
TYPES_SINCE: Final = 5
"""The version of ListGroups from which on groups can be listed by type (KIP-848)."""
SEVERAL_MEMBERS_SINCE: Final = 3
"""The version of LeaveGroup that names several members, and static ones by their instance id (KIP-345)."""
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
WITHOUT_MEMBERS: Final = frozenset({"Empty", "Dead"})


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in the list of all. `protocol_type` is empty where no member has ever joined.

    None is what an older broker does not tell: `state` before Kafka 2.6, `group_type` before Kafka 3.7.
    """

    group_id: str
    protocol_type: str
    state: str | None = None
    group_type: str | None = None


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group.

    `metadata` and `assignment` are the bytes of a classic member; `partitions` and `subscribed_topics` are what they
    say where the protocol type is `consumer`, None for what other programs put there. A classic group tells of them
    while it is stable. From `target_partitions` on: of consumer groups (KIP-848) alone.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: bytes = b""
    assignment: bytes = b""
    subscribed_topics: tuple[str, ...] | None = None
    partitions: tuple[TopicPartition, ...] | None = None
    target_partitions: tuple[TopicPartition, ...] | None = None
    subscribed_regex: str | None = None
    rack: str | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class GroupRebalance:
    """Why a group rebalanced once. Times are Unix times in milliseconds.

    `generation` is what it ended: a generation of a classic group, an epoch of a consumer group. `cause` is one of few
    kinds ("session expired"), in the broker's words; `reason` is a sentence. `member_id` is empty where no member was
    the cause. `last_heard_ms`: the last request of that member before; None where it had just come, or is not known.
    """

    started_ms: int
    generation: int
    cause: str
    reason: str
    member_id: str = ""
    instance_id: str | None = None
    last_heard_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members. `coordinator_id`: the broker that coordinates it.

    `protocol`: of a classic group the one that its members have agreed on ("range"), of a consumer group the assignor;
    empty where there is none. Epochs are those of consumer groups (KIP-848), else -1. `rebalances`: the last ones since
    the coordinator loaded the group, oldest first. Apache Kafka's brokers tell none.
    """

    group_id: str
    group_type: str
    state: str
    protocol_type: str
    protocol: str
    coordinator_id: int
    members: tuple[MemberDescription, ...] = ()
    group_epoch: int = -1
    assignment_epoch: int = -1
    rebalances: tuple[GroupRebalance, ...] = ()

    @property
    def is_active(self) -> bool:
        """Whether it has members, or is between two generations of them: its offsets are theirs then."""
        return bool(self.members) or self.state not in WITHOUT_MEMBERS


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member by its id, or a static one by its instance id, whoever has that now. With both: if it still is that."""

    member_id: str = ""
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.member_id if self.instance_id is None else f"{self.instance_id} (instance id)"


# ------------------------------------------------------------------------------------------------------------- listing
def list_groups_request(states: Sequence[str], types: Sequence[str]) -> tuple[ListGroupsRequest, int]:
    """With the version that it needs. Before types were known all groups were classic, so these need not be told."""
    at_least = STATES_SINCE if states else 0
    if types and CLASSIC not in {each.lower() for each in types}:
        at_least = TYPES_SINCE
    return ListGroupsRequest(states_filter=list(states), types_filter=list(types)), at_least


def listed_groups(response: ListGroupsResponse, node_id: int) -> tuple[GroupListing, ...]:
    """The groups that a broker coordinates. Raises ClientError, also for a broker that still loads some of them."""
    if response.error_code:
        raise group_error(response.error_code, "", f"ListGroups of broker {node_id}")
    return tuple(
        GroupListing(each.group_id, each.protocol_type, each.group_state or None, each.group_type.lower() or None)
        for each in response.groups
    )


# ------------------------------------------------------------------------------------------------------------ deleting
def deleted_groups(response: DeleteGroupsResponse) -> dict[str, ClientError | None]:
    return {
        each.group_id: group_error(each.error_code, "", f"DeleteGroups of {each.group_id}") if each.error_code else None
        for each in response.results
    }


# ------------------------------------------------------------------------------------------------------------- members
def leave_group_request(group_id: str, members: Iterable[MemberToRemove], reason: str | None) -> LeaveGroupRequest:
    """Up to version 2 it is about the first member alone, and has no reason."""
    named = list(members)
    return LeaveGroupRequest(
        group_id=group_id,
        member_id=named[0].member_id,
        members=[
            MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
            for each in named
        ],
    )


def removed_members(
    group_id: str, members: Iterable[MemberToRemove], response: LeaveGroupResponse
) -> dict[MemberToRemove, ClientError | None]:
    """By member. Up to version 2 the answer is that of one member, and its error the answer's."""
    if response.error_code or not response.members:
        return {each: _not_removed(group_id, each, response.error_code) for each in members}
    return {
        each: _not_removed(group_id, each, answer.error_code)
        for answer in response.members
        if (each := MemberToRemove(answer.member_id, answer.group_instance_id))
    }


def _not_removed(group_id: str, member: MemberToRemove, code: int) -> ClientError | None:
    return group_error(code, "", f"LeaveGroup of {member} in {group_id}") if code else None
