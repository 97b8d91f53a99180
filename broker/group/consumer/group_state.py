"""The state of a consumer group: the newest value of each key, and what follows from these. Pure.

`apply` is the only way to change it, for requests and for a load alike. Keys may come in any order: a compacted log
lacks records that were written first.
"""

from enum import Enum
from typing import assert_never

from odradek.broker.group.consumer.group_values import (
    NEW,
    AssignedPartitions,
    Current,
    GroupEpoch,
    Key,
    Kind,
    Member,
    Obsolete,
    ResolvedRegex,
    Target,
    TargetEpoch,
    Value,
)

INITIAL_EPOCH = 1
"""Of a group, and of its target assignment, before there is a record of them; so in Kafka since 4.3."""


class GroupPhase(Enum):
    """The state of a group, by Kafka's names. It follows from the values: nobody sets it.

    EMPTY -> ASSIGNING: a member joins. ASSIGNING -> RECONCILING, STABLE: the target assignment is there.
    RECONCILING -> STABLE: all members have what the target gives to them. RECONCILING, STABLE -> ASSIGNING: the group
    epoch is raised. Any -> EMPTY: the last member goes. EMPTY -> DEAD: the group is deleted.
    """

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupState:
    """Everything is read freely, and written by `apply` alone."""

    __slots__ = (
        "_phase",
        "classic_count",
        "currents",
        "group",
        "members",
        "obsolete",
        "owners",
        "regexes",
        "static_ids",
        "subscriptions",
        "target_epoch",
        "targets",
    )

    def __init__(self) -> None:
        self.group: GroupEpoch | None = None
        self.target_epoch: TargetEpoch | None = None
        self.members: dict[str, Member] = {}
        self.classic_count = 0
        """How many members speak the classic protocol."""
        self.targets: dict[str, Target] = {}
        self.currents: dict[str, Current] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self.obsolete: Obsolete | None = None
        self.owners: dict[bytes, dict[int, str]] = {}
        """The member that has each partition, or has not given it up."""
        self.static_ids: dict[str, str] = {}
        """The member id of each instance id."""
        self.subscriptions: dict[frozenset[str], tuple[frozenset[str], int]] = {}
        """The names that members have subscribed to, once as an object for all of them, and how many these are."""
        self._phase: GroupPhase | None = None

    @property
    def group_epoch(self) -> int:
        return self.group.epoch if self.group is not None else INITIAL_EPOCH

    @property
    def assignment_epoch(self) -> int:
        return self.target_epoch.epoch if self.target_epoch is not None else INITIAL_EPOCH

    def current(self, member_id: str) -> Current:
        return self.currents.get(member_id, NEW)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """Nobody else may be given a partition that has an owner."""
        owners = self.owners.get(topic_id)
        return owners.get(partition) if owners is not None else None

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether no other member has the partition."""
        return self.owner(topic_id, partition) in (None, member_id)

    @property
    def phase(self) -> GroupPhase:
        if self._phase is None:
            self._phase = self._look()
        return self._phase

    @property
    def is_dead(self) -> bool:
        """Whether the phase is DEAD, without a look at all members."""
        return not self.members and self.group is None

    def _look(self) -> GroupPhase:
        if not self.members:
            return GroupPhase.DEAD if self.is_dead else GroupPhase.EMPTY
        target_epoch = self.assignment_epoch
        if self.group_epoch > target_epoch:
            return GroupPhase.ASSIGNING
        reconciled = all(self.current(member_id).is_reconciled_to(target_epoch) for member_id in self.members)
        return GroupPhase.STABLE if reconciled else GroupPhase.RECONCILING

    @property
    def is_blank(self) -> bool:
        """Whether no key has a value."""
        return self.is_dead and not (
            self.currents or self.targets or self.regexes or self.target_epoch is not None or self.obsolete is not None
        )

    def all_keys(self) -> list[Key]:
        """All that have a value; in the order in which Kafka deletes them."""
        found = [Key(Kind.CURRENT, name) for name in self.currents]
        found += [Key(Kind.TARGET, name) for name in self.targets]
        found += [Key(Kind.TARGET_EPOCH)] if self.target_epoch is not None else []
        found += [Key(Kind.MEMBER, name) for name in self.members]
        found += [Key(Kind.REGEX, name) for name in self.regexes]
        found += [Key(Kind.PARTITION_METADATA)] if self.obsolete is not None else []
        found += [Key(Kind.GROUP)] if self.group is not None else []
        return found

    def value(self, key: Key) -> Value | None:
        match key.kind:
            case Kind.GROUP:
                return self.group
            case Kind.TARGET_EPOCH:
                return self.target_epoch
            case Kind.MEMBER:
                return self.members.get(key.name)
            case Kind.TARGET:
                return self.targets.get(key.name)
            case Kind.CURRENT:
                return self.currents.get(key.name)
            case Kind.REGEX:
                return self.regexes.get(key.name)
            case Kind.PARTITION_METADATA:
                return self.obsolete
            case _:
                assert_never(key.kind)

    def apply(self, key: Key, value: Value | None) -> None:
        """None: the key does not exist any more."""
        self._phase = None
        match key.kind, value:
            case Kind.GROUP, GroupEpoch() | None:
                self.group = value
            case Kind.TARGET_EPOCH, TargetEpoch() | None:
                self.target_epoch = value
            case Kind.MEMBER, Member() | None:
                self._apply_member(key.name, value)
            case Kind.TARGET, Target():
                self.targets[key.name] = value
            case Kind.TARGET, None:
                self.targets.pop(key.name, None)
            case Kind.CURRENT, Current() | None:
                self._apply_current(key.name, value)
            case Kind.REGEX, ResolvedRegex():
                self.regexes[key.name] = value
            case Kind.REGEX, None:
                self.regexes.pop(key.name, None)
            case Kind.PARTITION_METADATA, Obsolete() | None:
                self.obsolete = value
            case _:
                raise AssertionError(f"{key} does not hold a {type(value).__name__}")

    def _apply_member(self, member_id: str, member: Member | None) -> None:
        former = self.members.pop(member_id, None) if member is None else self.members.get(member_id)
        if former is not None:
            self._uncount(former.topic_names)
            self.classic_count -= former.classic is not None
            if former.instance_id is not None and self.static_ids.get(former.instance_id) == member_id:
                del self.static_ids[former.instance_id]
        if member is not None:
            names, count = self.subscriptions.get(member.topic_names, (member.topic_names, 0))
            self.subscriptions[names] = (names, count + 1)
            self.members[member_id] = member._replace(topic_names=names)
            self.classic_count += member.classic is not None
            if member.instance_id is not None:
                self.static_ids[member.instance_id] = member_id

    def _uncount(self, topic_names: frozenset[str]) -> None:
        names, count = self.subscriptions[topic_names]
        if count > 1:
            self.subscriptions[names] = (names, count - 1)
        else:
            del self.subscriptions[names]

    def _apply_current(self, member_id: str, current: Current | None) -> None:
        former = self.currents.pop(member_id, None)
        if former is not None:
            self._disown(member_id, former.assigned)
            self._disown(member_id, former.revoking)
        if current is not None:
            self.currents[member_id] = current
            self._own(member_id, current.assigned)
            self._own(member_id, current.revoking)

    def _own(self, member_id: str, partitions: AssignedPartitions) -> None:
        for topic_id, indexes in partitions.items():
            self.owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member_id))

    def _disown(self, member_id: str, partitions: AssignedPartitions) -> None:
        """A log may have given a partition to another member already: then it is not this one's to lose."""
        for topic_id, indexes in partitions.items():
            owners = self.owners.get(topic_id, {})
            for partition in indexes:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)
