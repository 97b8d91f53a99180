"""Every state and every event: what the state is afterwards, and what is answered."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import pytest

from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.group_host import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.classic.groups import DELAY_MS, GROUP_ID, Asked, Stage, offers

CHANGED: Final = offers("range", metadata=b"\0changed")
Found = tuple[Stage, str, str]
"""The group, the ids of its leader and of its follower."""


class Before(Enum):
    """The states, of which that before the first generation is another one."""

    EMPTY = "two members have left"
    INITIAL = "the first joins are held"
    PREPARING = "the follower has joined again, the leader not yet"
    COMPLETING = "nobody has synced"
    STABLE = "all have synced"
    DEAD = "dissolved when it was stable"


def stage_in(before: Before) -> Found:
    stage = Stage()
    joins = [stage.join(), stage.join()]
    if before is Before.INITIAL:
        leader_id, follower_id = (each.member_id for each in stage.group.describe().members)
        return stage, leader_id, follower_id
    stage.wait(2 * DELAY_MS)
    leader_id, follower_id = (each.answer.member_id for each in joins)
    if before is not Before.COMPLETING:
        stage.assign(joins)
    if before is Before.EMPTY:
        stage.leave(leader_id, follower_id)
    elif before is Before.PREPARING:
        stage.join(follower_id, protocols=CHANGED)
    elif before is Before.DEAD:
        stage.group.dissolve(KafkaError(ErrorCode.NOT_COORDINATOR), stage.now)
    return stage, leader_id, follower_id


def due(stage: Stage, kind: TimerKind, member_id: str = "") -> None:
    stage.group.timed_out(TimerKey(GROUP_ID, kind, member_id), stage.now)


Event = Callable[[Stage, str, str], Asked[Any] | None]
EVENTS: Final[dict[str, Event]] = {
    "a new member joins": lambda stage, leader, follower: stage.join(),
    "a new member asks for an id": lambda stage, leader, follower: stage.join(requires_known_member_id=True),
    "the leader joins": lambda stage, leader, follower: stage.join(leader),
    "the follower joins": lambda stage, leader, follower: stage.join(follower),
    "the follower joins, changed": lambda stage, leader, follower: stage.join(follower, protocols=CHANGED),
    "the leader syncs": lambda stage, leader, follower: stage.sync(leader),
    "the follower syncs": lambda stage, leader, follower: stage.sync(follower),
    "a heartbeat": lambda stage, leader, follower: stage.ask_heartbeat(leader),
    "an old heartbeat": lambda stage, leader, follower: stage.ask_heartbeat(leader, stage.group.generation - 1),
    "the leader leaves": lambda stage, leader, follower: stage.leave(leader),
    "the follower leaves": lambda stage, leader, follower: stage.leave(follower),
    "the leader is silent": lambda stage, leader, follower: due(stage, TimerKind.SESSION, leader),
    "joins are due": lambda stage, leader, follower: due(stage, TimerKind.JOIN),
    "syncs are due": lambda stage, leader, follower: due(stage, TimerKind.SYNC),
}

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = ClassicState
NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS
OLD = ErrorCode.ILLEGAL_GENERATION
GONE = ErrorCode.COORDINATOR_NOT_AVAILABLE
HELD = SILENT = None
"""The answer waits; nobody asked."""

After = tuple[ClassicState, ErrorCode | None]
TABLE: Final[dict[Before, tuple[After, ...]]] = {
    Before.EMPTY: (
        (PREPARING, HELD),
        (EMPTY, NONE),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, UNKNOWN),
        (EMPTY, NONE),
        (EMPTY, NONE),
        (EMPTY, SILENT),
        (EMPTY, SILENT),
        (EMPTY, SILENT),
    ),
    Before.INITIAL: (
        (PREPARING, HELD),
        (PREPARING, NONE),
        (PREPARING, HELD),
        (PREPARING, HELD),
        (PREPARING, HELD),
        (PREPARING, REBALANCING),
        (PREPARING, REBALANCING),
        (PREPARING, REBALANCING),
        (PREPARING, OLD),
        (PREPARING, NONE),
        (PREPARING, NONE),
        (COMPLETING, SILENT),
        (PREPARING, SILENT),
        (PREPARING, SILENT),
    ),
    Before.PREPARING: (
        (PREPARING, HELD),
        (PREPARING, NONE),
        (COMPLETING, NONE),
        (PREPARING, HELD),
        (PREPARING, HELD),
        (PREPARING, REBALANCING),
        (PREPARING, REBALANCING),
        (PREPARING, REBALANCING),
        (PREPARING, OLD),
        (COMPLETING, NONE),
        (PREPARING, NONE),
        (COMPLETING, SILENT),
        (COMPLETING, SILENT),
        (PREPARING, SILENT),
    ),
    Before.COMPLETING: (
        (PREPARING, HELD),
        (COMPLETING, NONE),
        (COMPLETING, NONE),
        (COMPLETING, NONE),
        (PREPARING, HELD),
        (STABLE, NONE),
        (COMPLETING, HELD),
        (COMPLETING, NONE),
        (COMPLETING, OLD),
        (PREPARING, NONE),
        (PREPARING, NONE),
        (PREPARING, SILENT),
        (COMPLETING, SILENT),
        (EMPTY, SILENT),
    ),
    Before.STABLE: (
        (PREPARING, HELD),
        (STABLE, NONE),
        (PREPARING, HELD),
        (STABLE, NONE),
        (PREPARING, HELD),
        (STABLE, NONE),
        (STABLE, NONE),
        (STABLE, NONE),
        (STABLE, OLD),
        (PREPARING, NONE),
        (PREPARING, NONE),
        (PREPARING, SILENT),
        (STABLE, SILENT),
        (STABLE, SILENT),
    ),
    Before.DEAD: (*((DEAD, GONE),) * 11, *((DEAD, SILENT),) * 3),
}
"""In the order of the events."""

CASES = [
    pytest.param(before, event, after, id=f"{before.name}-{event}")
    for before, row in TABLE.items()
    for event, after in zip(EVENTS, row, strict=True)
]


@pytest.mark.parametrize(("before", "event", "after"), CASES)
def test_each_event_in_each_state(before: Before, event: str, after: After) -> None:
    stage, leader_id, follower_id = stage_in(before)
    asked = EVENTS[event](stage, leader_id, follower_id)
    assert (stage.group.state, asked and asked.error) == after


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("before", [Before.COMPLETING, Before.STABLE])
def test_a_refusal_after_each_event_leaves_nobody_with_an_assignment(before: Before, event: str) -> None:
    """The record of the leader's sync, or of a static member, is refused whatever has happened since."""
    stage, leader_id, follower_id = stage_in(before)
    if before is Before.STABLE:
        joined = stage.join(follower_id, protocols=CHANGED)
        stage.join(leader_id)
        assert joined.is_answered
    generation = stage.group.generation
    held = stage.sync(follower_id)
    stage.hold()
    leader = stage.sync(leader_id, assignments={leader_id: b"A", follower_id: b"B"})
    asked = EVENTS[event](stage, leader_id, follower_id)
    stage.refuse()
    assert held.error is leader.error is GONE
    assert not any(each.assignment for each in stage.group.describe().members)
    assert stage.group.state is PREPARING
    assert asked is None or asked.error in (GONE, HELD)
    stage.wait(1_000_000)
    assert stage.group.is_empty
    assert stage.group.generation > generation
    assert asked is None or asked.is_answered
    assert len(stage.timers) == 0
