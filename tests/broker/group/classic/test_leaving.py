"""The rules of LeaveGroup, one by one."""

from odradek.broker.group.classic.requests import Leaving, LeftMember
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode
from tests.broker.group.classic.groups import DELAY_MS, REBALANCE_MS, Stage


def test_a_member_that_leaves_makes_the_others_rebalance() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    assert stage.leave(Leaving(leader_id, reason="shut down")).answer.members == (LeftMember(leader_id, None),)
    assert stage.heartbeat(follower_id) is ErrorCode.REBALANCE_IN_PROGRESS
    rebalance = stage.group.rebalances[-1]
    assert (rebalance.cause, rebalance.member_id) == (RebalanceCause.MEMBER_LEFT, leader_id)
    assert rebalance.reason.endswith("shut down")
    assert stage.join(follower_id).answer.leader_id == follower_id


def test_the_last_member_that_leaves_ends_its_generation_in_a_record() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    stage.hold()
    left = stage.leave(member_id)
    assert not left.is_answered
    stage.commit()
    assert left.error is ErrorCode.NONE
    assert stage.group.is_empty
    stored = stage.stored()
    assert stored is not None
    assert (stored.generation, stored.members, stored.protocol, stored.leader) == (2, [], None, None)
    assert (stored.protocol_type, stored.current_state_timestamp) == ("consumer", stage.now.unix_ms)


def test_an_empty_generation_that_is_refused_stays_empty() -> None:
    stage = Stage()
    (member_id,) = stage.stabilize()
    stage.hold()
    left = stage.leave(member_id)
    stage.refuse()
    assert left.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.group.is_empty
    stage.reload()
    assert [each.member_id for each in stage.group.describe().members] == [member_id], "what the log holds"


def test_several_leave_at_once_and_the_group_rebalances_once() -> None:
    stage = Stage()
    ids = stage.complete([stage.join(), stage.join(instance_id="a"), stage.join(instance_id="b"), stage.join()])
    answer = stage.leave(
        Leaving("", "a"), Leaving(ids[2], "a"), Leaving("stranger"), Leaving("", "c"), Leaving(""), Leaving(ids[0])
    ).answer
    assert [each.error_code for each in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert len(stage.group.describe().members) == 2
    assert len(stage.group.rebalances) == 2


def test_a_former_id_of_a_static_member_cannot_leave() -> None:
    stage = Stage()
    (former_id,) = stage.complete([stage.join(instance_id="a")])
    stage.join(instance_id="a")
    (answer,) = stage.leave(Leaving(former_id, "a")).answer.members
    assert answer == LeftMember(former_id, "a", ErrorCode.FENCED_INSTANCE_ID)


def test_nobody_waits_for_a_member_that_has_left() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    rejoined = stage.join(leader_id)
    stage.leave(follower_id)
    assert rejoined.answer.generation == 2
    assert len(rejoined.answer.members) == 1


def test_held_requests_of_a_member_that_leaves_are_answered() -> None:
    stage = Stage()
    leader_id, follower_id = stage.stabilize(2)
    join = stage.join(leader_id)
    stage.leave(leader_id)
    assert join.error is ErrorCode.UNKNOWN_MEMBER_ID
    rejoined = stage.join(follower_id)
    newcomer = stage.join()
    assert not newcomer.is_answered, f"{rejoined.answer.member_id} has to join again"
    stage.join(follower_id)
    sync = stage.sync(newcomer.answer.member_id)
    stage.leave(newcomer.answer.member_id)
    assert sync.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_was_only_given_an_id_may_leave() -> None:
    stage = Stage()
    given = stage.join(requires_known_member_id=True).answer.member_id
    assert stage.leave(given).answer.members == (LeftMember(given, None),)
    assert stage.group.is_empty
    assert stage.join(given).error is ErrorCode.UNKNOWN_MEMBER_ID
    (leader_id,) = stage.stabilize()
    given = stage.join(requires_known_member_id=True).answer.member_id
    rejoined = stage.join(leader_id)
    stage.leave(given)
    assert rejoined.answer.generation == 2


def test_the_first_joins_of_a_group_all_leave() -> None:
    stage = Stage()
    held = stage.join()
    member_id = stage.group.describe().members[0].member_id
    stage.leave(member_id)
    assert held.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.group.state is ClassicState.PREPARING_REBALANCE
    stage.wait(DELAY_MS)
    assert stage.group.is_empty
    assert stage.group.generation == 1
    stage.wait(REBALANCE_MS)
    assert stage.group.generation == 1


def test_nobody_leaves_an_empty_group() -> None:
    stage = Stage()
    (answer,) = stage.leave("stranger").answer.members
    assert answer.error_code is ErrorCode.UNKNOWN_MEMBER_ID
