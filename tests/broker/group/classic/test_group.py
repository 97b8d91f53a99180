"""A group as its shard sees it: what is told of it, and its end."""

import pytest

from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.group_host import TimerKey, TimerKind
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.classic.groups import DELAY_MS, GROUP_ID, RANGE, START, Stage


def test_a_stable_group_is_described_with_what_members_sent_and_were_assigned() -> None:
    stage = Stage()
    leader_id, follower_id = stage.complete([stage.join(), stage.join(instance_id="a", client_host="/10.0.0.2")])
    description = stage.group.describe()
    assert description[:6] == (GROUP_ID, ClassicState.STABLE, "consumer", "range", 1, leader_id)
    follower = description.members[1]
    assert follower[:4] == (follower_id, "a", "app", "/10.0.0.2")
    assert (follower.metadata, follower.assignment) == (RANGE[0].metadata, f"of {follower_id}".encode())
    assert follower.last_heard_ms == stage.now.unix_ms


def test_the_protocol_is_told_of_a_stable_group_only() -> None:
    stage = Stage()
    stage.join()
    stage.wait(DELAY_MS)
    description = stage.group.describe()
    assert (description.state, description.protocol_name) == (ClassicState.COMPLETING_REBALANCE, "")
    assert description.members[0].metadata == b""


def test_a_group_is_vacant_until_somebody_comes() -> None:
    stage = Stage()
    assert stage.group.is_vacant
    assert stage.group.is_empty
    assert (stage.group.protocol_type, stage.group.state_timestamp_ms) == (None, None)
    stage.join(requires_known_member_id=True)
    assert not stage.group.is_vacant
    assert (stage.group.protocol_type, stage.group.state_timestamp_ms) == (None, START.unix_ms)


def test_the_time_at_which_a_group_became_empty_survives_a_load() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    stage.leave(member_id)
    since_ms = stage.now.unix_ms
    stage.wait(5_000)
    stage.reload()
    assert (stage.group.state_timestamp_ms, stage.group.protocol_type) == (since_ms, "consumer")


def test_a_dissolved_group_answers_all_who_wait_and_forgets_its_deadlines() -> None:
    stage = Stage()
    leader_id, _ = stage.stabilize(2)
    held = stage.join(leader_id)
    stage.join(requires_known_member_id=True)
    stage.group.dissolve(KafkaError(ErrorCode.NOT_COORDINATOR), stage.now)
    assert held.error is ErrorCode.NOT_COORDINATOR
    assert len(stage.timers) == 0
    stage = Stage()
    joins = [stage.join(), stage.join()]
    stage.wait(2 * DELAY_MS)
    synced = stage.sync(joins[1].answer.member_id)
    stage.group.dissolve(KafkaError(ErrorCode.REBALANCE_IN_PROGRESS), stage.now)
    assert synced.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert len(stage.timers) == 0


@pytest.mark.parametrize("kind", [TimerKind.REBALANCE, TimerKind.ASSIGNMENT])
def test_deadlines_that_a_consumer_group_has_left_mean_nothing(kind: TimerKind) -> None:
    stage = Stage()
    stage.group.timed_out(TimerKey(GROUP_ID, kind), stage.now)
    assert stage.group.is_empty
