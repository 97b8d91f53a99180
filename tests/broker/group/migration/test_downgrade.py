"""A consumer group becomes a classic one when its last member of KIP-848 goes, in one batch, or not at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.group.classic.requests import Joined, Leaving
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.group import GroupKind
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.consumer_group import ConsumerGroupMetadataKey
from odradek.protocol.stored.group_metadata import GroupMetadataKey
from tests.broker.group.kept_outbox import Asked
from tests.broker.group.migration.mixed import (
    ALL,
    GROUP,
    SESSION_MS,
    Mixed,
    arriving,
    offered,
    partitions_of,
    stored,
)


def a_mixed_group(**options: str) -> tuple[Mixed, Joined, int]:
    """A classic member and a newer one, `n`, of this epoch, have two partitions each."""
    mixed = Mixed({name.replace("_", "."): value for name, value in options.items()})
    a = mixed.enters(protocols=offered("range", "roundrobin"))
    epoch = mixed.newer("n").member_epoch
    a = mixed.join(a.member_id, protocols=offered("range", "roundrobin"))
    mixed.sync(a)
    mixed.beats("n", epoch)
    return mixed, a, epoch


def test_the_members_that_are_left_keep_what_they_have_until_they_have_joined_again() -> None:
    mixed, a, _ = a_mixed_group()
    kept, epoch = mixed.has(a.member_id), a.generation
    count = len(mixed.outbox.batches)
    mixed.beats("n", -1)
    group = mixed.classic_group
    assert (group.state, group.generation, group.protocol_type) == (
        ClassicState.PREPARING_REBALANCE,
        epoch,
        "consumer",
    )
    [member] = group.members
    assert (member.member_id, partitions_of(member.assignment)) == (a.member_id, kept)
    assert [each.name for each in member.protocols] == ["range", "roundrobin"]
    [batch] = mixed.written_since(count)
    assert batch[-2:] == [(ConsumerGroupMetadataKey.__name__, True), (GroupMetadataKey.__name__, False)]
    assert stored(mixed.replayed()) == stored(mixed.machine)
    causes = [each.cause for each in group.rebalances]
    assert causes[-2:] == [RebalanceCause.MEMBER_LEFT, RebalanceCause.LEFT_TO_CLASSIC]
    assert mixed.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
    commit = mixed.commit(GROUP, {("orders", 0): 7}, member_id=a.member_id, generation=epoch)
    assert commit == [ErrorCode.NONE], "what it has done before it gives all up"
    again = mixed.join(a.member_id, protocols=offered("range", "roundrobin"))
    assert (again.generation, again.leader_id) == (epoch + 1, a.member_id)
    mixed.sync(again, {a.member_id: ALL})
    assert mixed.classic_group.state is ClassicState.STABLE


def test_a_member_whose_session_ends_counts_as_gone() -> None:
    mixed, a, _ = a_mixed_group()
    for _ in range(10):
        mixed.wait(SESSION_MS // 2)
        mixed.heartbeat(a)
    assert mixed.classic_group.kind is GroupKind.CLASSIC


def test_offsets_are_kept() -> None:
    mixed, a, epoch = a_mixed_group()
    mixed.commit(GROUP, {("orders", 0): 7}, member_id="n", generation=epoch)
    mixed.beats("n", -1)
    assert mixed.offsets(GROUP) == {("orders", 0): 7}
    assert a.member_id in {member.member_id for member in mixed.classic_group.members}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_the_policy_may_forbid_it(policy: str) -> None:
    mixed, a, _ = a_mixed_group()
    mixed.config.__dict__["group_consumer_migration_policy"] = policy  # it is read only in a broker that runs
    mixed.beats("n", -1)
    assert list(mixed.consumer.state.members) == [a.member_id]
    assert mixed.heartbeat(a) is ErrorCode.NONE, "the target without the other is not worked out yet"
    mixed.settle()
    assert mixed.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.join(a.member_id, protocols=offered("range", "roundrobin"))
    assert partitions_of(mixed.sync(joined).assignment) == ALL


def test_more_members_than_a_classic_group_may_have_stay_a_consumer_group() -> None:
    mixed, a, _ = a_mixed_group(group_max_size="1")
    b = mixed.join()
    mixed.beats("n", -1)
    assert set(mixed.consumer.state.members) == {a.member_id, b.member_id}
    mixed.leaves(Leaving(b.member_id))
    mixed.wait(1)


def test_the_last_newer_member_may_be_replaced_by_a_classic_one() -> None:
    mixed = Mixed()
    mixed.newer("n", instance_id="till-1")
    a = mixed.join(instance_id="till-1")
    group = mixed.classic_group
    assert [(member.member_id, member.instance_id) for member in group.members] == [(a.member_id, "till-1")]
    assert stored(mixed.replayed())[2] == [(a.member_id, member.assignment) for member in group.members]


def test_the_last_member_of_all_leaves_an_empty_consumer_group() -> None:
    mixed = Mixed()
    mixed.newer("n")
    mixed.beats("n", -1)
    assert mixed.consumer.is_empty


def test_where_it_cannot_be_stored_the_consumer_group_goes_on_with_all_members() -> None:
    mixed, a, epoch = a_mixed_group()
    before = stored(mixed.machine)
    mixed.outbox.refuses = True
    mixed.machine.consumer_heartbeat(GROUP, arriving("n")._replace(member_epoch=-1), Asked(), mixed.now)
    mixed.outbox.undo()
    mixed.outbox.refuses = False
    assert stored(mixed.machine) == before == stored(mixed.replayed())
    assert mixed.beats("n", epoch).member_epoch == epoch
    mixed.wait(SESSION_MS - 1)
    assert set(mixed.consumer.state.members) == {a.member_id, "n"}
    mixed.wait(1)
    assert list(mixed.consumer.state.members) == ["n"], "sessions run"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("classic", "static", "newer", "sync", "beat", "leave", "go", "wait")),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(STEPS)
def test_the_log_says_what_the_group_is_and_no_partition_has_two_owners(steps: list[tuple[str, int, bool]]) -> None:
    """Of whichever kind it is, whatever was refused; a classic group that rebalances is as its last record says."""
    mixed = Mixed()
    joins: dict[int, Joined] = {}
    epochs: dict[int, int] = {}
    for step, which, is_refused in steps:
        mixed.outbox.refuses = is_refused and isinstance(mixed.machine.groups.get(GROUP), ConsumerGroup)
        try:
            _take(mixed, step, which, joins, epochs)
        except KafkaError:
            pass
        except ValueError:  # a join that is held: nobody has answered yet
            pass
        mixed.outbox.undo()
        mixed.outbox.refuses = False
        group = mixed.machine.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            assert stored(mixed.replayed()) == stored(mixed.machine)
            held = [
                (topic_id, index)
                for current in group.state.currents.values()
                for part in (current.assigned, current.revoking)
                for topic_id, indexes in part.items()
                for index in indexes
            ]
            assert len(held) == len(set(held))
        elif group is not None and group.is_stored:
            assert mixed.replayed().groups[GROUP].kind is GroupKind.CLASSIC
    mixed.wait(10 * 60_000)
    group = mixed.machine.groups.get(GROUP)
    assert group is None or group.is_empty, "nobody speaks any more"


def _take(mixed: Mixed, step: str, which: int, joins: dict[int, Joined], epochs: dict[int, int]) -> None:
    name = f"n{which}"
    match step:
        case "classic":
            joins[which] = mixed.join(joins[which].member_id if which in joins else "")
        case "static":
            joins[which] = mixed.join(instance_id=f"till-{which}")
        case "newer":
            epochs[which] = mixed.newer(name).member_epoch
        case "sync" if which in joins:
            mixed.sync(joins[which], {joined.member_id: (index,) for index, joined in joins.items()})
        case "beat":
            if which in joins:
                mixed.heartbeat(joins[which])
            if which in epochs:
                epochs[which] = mixed.beats(name, epochs[which], ()).member_epoch
        case "leave" if which in joins:
            mixed.leaves(Leaving(joins.pop(which).member_id))
        case "go":
            mixed.beats(name, -1)
        case "wait":
            mixed.wait(4_000)
        case _:
            pass
