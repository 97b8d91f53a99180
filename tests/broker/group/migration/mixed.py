"""A machine with one group whose members speak both protocols: each asks as its client does.

mixed = Mixed()
a = mixed.classic("range")                  joins, and syncs as what it is told
mixed.newer("n")                            joins by a ConsumerGroupHeartbeat
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import (
    AssignedMember,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Leaving,
    Left,
    OfferedProtocol,
    Sync,
    Synced,
)
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.requests import JOIN_EPOCH, ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.broker.group.machine import GroupMachine
from odradek.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.group_records import decode_key
from tests.broker.group.kept_outbox import TOPIC_IDS, Asked, World

GROUP = "billing"
ORDERS = TOPIC_IDS["orders"]
SESSION_MS = 10_000
REBALANCE_MS = 30_000
ALL = (0, 1, 2, 3)
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}


def subscription(
    topics: Sequence[str] = ("orders",), owned: Sequence[int] = (), version: int = 3, rack: str | None = None
) -> bytes:
    partitions = {"orders": owned} if owned else {}
    return encode_subscription(Subscription(topics, None, partitions, -1, rack), version)


def offered(*names: str, metadata: bytes | None = None) -> tuple[OfferedProtocol, ...]:
    return tuple(OfferedProtocol(name, subscription() if metadata is None else metadata) for name in names)


def partitions_of(assignment: bytes) -> tuple[int, ...]:
    """Of `orders`."""
    return tuple(decode_assignment(assignment).partitions.get("orders", ())) if assignment else ()


class Mixed(World):
    """Its topic `orders` has four partitions."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        super().__init__({**AT_ONCE, **(settings or {})}, partition_count=4)

    @property
    def consumer(self) -> ConsumerGroup:
        group = self.machine.groups[GROUP]
        assert isinstance(group, ConsumerGroup)
        return group

    @property
    def classic_group(self) -> ClassicGroup:
        group = self.machine.groups[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    # -- classic members --------------------------------------------------------------------------------------------

    def ask_to_join(self, request: Join) -> Asked[Joined]:
        asked = Asked[Joined]()
        self.machine.join(GROUP, request, asked, self.now)
        return asked

    def join(self, member_id: str = "", owned: Sequence[int] = (), **fields: Any) -> Joined:
        """Raises KafkaError."""
        asked = self.ask_to_join(joining(member_id, owned, **fields))
        self.settle()
        return asked.answer

    def sync(self, joined: Joined, assigned: Mapping[str, Sequence[int]] | None = None, **fields: Any) -> Synced:
        """`assigned`: by a leader, of `orders`. Raises KafkaError."""
        assignments = tuple(
            AssignedMember(member_id, encode_assignment(Assignment({"orders": indexes})))
            for member_id, indexes in (assigned or {}).items()
        )
        request = Sync(joined.member_id, joined.generation, assignments=assignments, **fields)
        synced: Synced = self.ask(lambda machine, waiting, now: machine.sync(GROUP, request, waiting, now))
        return synced

    def enters(self, **fields: Any) -> Joined:
        """A member makes an empty group stable, and has all."""
        joined = self.join(**fields)
        self.sync(joined, {joined.member_id: ALL})
        return joined

    def heartbeat(self, joined: Joined, instance_id: str | None = None) -> ErrorCode:
        request = Heartbeat(joined.member_id, joined.generation, instance_id)
        return self.code(
            lambda: self.ask(lambda machine, waiting, now: machine.heartbeat(GROUP, request, waiting, now))
        )

    def leaves(self, *members: Leaving) -> Left:
        request = Leave(members)
        left: Left = self.ask(lambda machine, waiting, now: machine.leave(GROUP, request, waiting, now))
        return left

    # -- members of KIP-848 -------------------------------------------------------------------------------------------

    def beat(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        """Raises KafkaError."""
        answer: ConsumerHeartbeatAnswer = self.ask(
            lambda machine, waiting, now: machine.consumer_heartbeat(GROUP, request, waiting, now)
        )
        return answer

    def newer(self, member_id: str = "n", **fields: Any) -> ConsumerHeartbeatAnswer:
        return self.beat(arriving(member_id, **fields))

    def beats(self, member_id: str, epoch: int, owned: Sequence[int] | None = None) -> ConsumerHeartbeatAnswer:
        owns = None if owned is None else {ORDERS: frozenset(owned)} if owned else {}
        return self.beat(ConsumerHeartbeat(member_id, epoch, owned=owns))

    def code(self, operation: Callable[[], object]) -> ErrorCode:
        try:
            operation()
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    # -- what is written ----------------------------------------------------------------------------------------------

    def written_since(self, count: int) -> list[list[tuple[str, bool]]]:
        """Of each batch: types of keys, and whether they are deleted."""
        return [
            [(type(decode_key(record.key)).__name__, record.value is None) for record in batch]
            for _, batch in self.outbox.batches[count:]
        ]

    def has(self, member_id: str) -> tuple[int, ...]:
        """What a member of the consumer group has of `orders`."""
        return tuple(sorted(self.consumer.state.current(member_id).assigned.get(ORDERS, ())))


def joining(member_id: str = "", owned: Sequence[int] = (), **fields: Any) -> Join:
    usual: dict[str, Any] = {
        "protocols": offered("range", metadata=subscription(owned=owned)),
        "protocol_type": "consumer",
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
    }
    return Join(member_id, "client", "/host", **(usual | fields))


def arriving(member_id: str = "n", **fields: Any) -> ConsumerHeartbeat:
    usual: dict[str, Any] = {
        "rebalance_timeout_ms": REBALANCE_MS,
        "topic_names": frozenset(("orders",)),
        "owned": {},
    }
    return ConsumerHeartbeat(member_id, JOIN_EPOCH, **(usual | fields))


def refused(operation: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        operation()
    assert raised.value.message
    return raised.value.code


def stored(machine: GroupMachine) -> Any:
    """What a load has to bring back of the group: its kind, and all values or the record's."""
    group = machine.groups[GROUP]
    if isinstance(group, ConsumerGroup):
        return {key: group.state.value(key) for key in group.state.all_keys()}
    return group.kind, group.generation, [(each.member_id, each.assignment) for each in group.members]
