"""What a consumer group is asked and what it answers: the contents of Kafka's messages, at any version. Pure."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from odradek.broker.group.assignors.spec import Partitions
from odradek.broker.group.rebalance import Rebalances

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
NOT_GIVEN = -1
"""A rebalance time-out that has not changed since the last heartbeat."""


class Sight(NamedTuple):
    """Which topics who asks may see, by the rights of now."""

    generation: int
    """Another one whenever rights have changed."""
    has: Callable[[str], bool]


def _everything(name: str) -> bool:
    return True


ALL_TOPICS: Final = Sight(0, _everything)


class ConsumerHeartbeat(NamedTuple):
    """ConsumerGroupHeartbeat. What is None has not changed since the last heartbeat."""

    member_id: str
    member_epoch: int
    """JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, or the epoch of the last answer."""
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NOT_GIVEN
    topic_names: frozenset[str] | None = None
    topic_regex: str | None = None
    """An expression of RE2. Empty: no expression any more."""
    server_assignor: str | None = None
    owned: Partitions | None = None
    """Every partition that the member holds, whatever the group has told it since."""
    client_id: str = ""
    client_host: str = ""
    member_id_required: bool = True
    """False for version 0, in which a member that joins has no id yet."""
    sight: Sight = ALL_TOPICS
    """An expression matches nothing else."""

    @property
    def is_full(self) -> bool:
        """Holds all that a member can tell: it joins, or is not sure that its last heartbeat was heard."""
        return self.member_epoch == JOIN_EPOCH or (
            self.rebalance_timeout_ms != NOT_GIVEN
            and (self.topic_names is not None or self.topic_regex is not None)
            and self.owned is not None
        )


class ConsumerHeartbeatAnswer(NamedTuple):
    """ConsumerGroupHeartbeat's response, where it is no error."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Mapping[bytes, tuple[int, ...]] | None = None
    """Partition indexes by topic id, in order. None: as the last answer said."""


class MemberType(IntEnum):
    """As ConsumerGroupDescribe 1 has it."""

    CLASSIC = 0
    CONSUMER = 1


class DescribedPartitions(NamedTuple):
    topic_id: bytes
    topic_name: str
    partitions: tuple[int, ...]


class DescribedMember(NamedTuple):
    """A member, as ConsumerGroupDescribe has it."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topic_names: tuple[str, ...]
    topic_regex: str | None
    assigned: tuple[DescribedPartitions, ...]
    target: tuple[DescribedPartitions, ...]
    member_type: MemberType


class DescribedGroup(NamedTuple):
    """The group, as ConsumerGroupDescribe has it."""

    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedMember, ...]
    rebalances: Rebalances
    """Why the epoch was raised, since the group was loaded."""
