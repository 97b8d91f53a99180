"""A classic group of consumers becomes a consumer group with its first member of KIP-848, in one batch, or it stays."""

from typing import Any

import pytest

from odradek.broker.group.classic.requests import Joined
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.consumer.group_values import MemberState
from odradek.broker.group.group import GroupKind
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode
from odradek.protocol.stored.consumer_group import ConsumerGroupMemberMetadataKey, ConsumerGroupMetadataKey
from odradek.protocol.stored.group_metadata import GroupMetadataKey
from tests.broker.group.kept_outbox import Asked
from tests.broker.group.migration.mixed import (
    ALL,
    GROUP,
    ORDERS,
    Mixed,
    arriving,
    joining,
    offered,
    refused,
    stored,
    subscription,
)


def test_members_go_on_with_what_they_have_and_the_new_one_waits_for_its_share() -> None:
    mixed = Mixed()
    a = mixed.enters(protocols=offered("range", "roundrobin", metadata=subscription(rack="r")))
    count = len(mixed.outbox.batches)
    answer = mixed.newer("n")
    state = mixed.consumer.state
    assert (answer.assigned, mixed.has(a.member_id)) == ({}, ALL)
    assert answer.member_epoch == state.group_epoch == state.assignment_epoch == a.generation + 1
    member, current = state.members[a.member_id], state.current(a.member_id)
    assert (current.member_epoch, current.state) == (a.generation, MemberState.STABLE)
    assert current.assigned == {ORDERS: dict.fromkeys(ALL, a.generation)}
    assert (member.topic_names, member.rack_id, member.client_id) == (frozenset(("orders",)), "r", "client")
    assert member.classic is not None
    assert member.classic.session_timeout_ms == 10_000
    assert [name for name, _ in member.classic.protocols] == ["range", "roundrobin"]
    [batch] = mixed.written_since(count)
    assert batch[:2] == [(GroupMetadataKey.__name__, True), (ConsumerGroupMemberMetadataKey.__name__, False)]
    assert (ConsumerGroupMetadataKey.__name__, False) in batch
    assert stored(mixed.replayed()) == stored(mixed.machine)


def test_the_members_offsets_and_commits_go_on() -> None:
    mixed = Mixed()
    a = mixed.enters()
    mixed.commit(GROUP, {("orders", 0): 7}, member_id=a.member_id, generation=a.generation)
    epoch = mixed.newer("n").member_epoch
    assert mixed.offsets(GROUP) == {("orders", 0): 7}
    commit = [ErrorCode.NONE]
    assert mixed.commit(GROUP, {("orders", 0): 8}, member_id=a.member_id, generation=a.generation) == commit
    stale = refused(lambda: mixed.commit(GROUP, {("orders", 0): 8}, member_id=a.member_id, generation=epoch))
    assert stale is ErrorCode.ILLEGAL_GENERATION
    stale = refused(lambda: mixed.commit(GROUP, {("orders", 0): 8}, member_id="n", generation=epoch + 1))
    assert stale is ErrorCode.STALE_MEMBER_EPOCH


def test_who_waits_in_the_classic_group_is_told_to_join_again() -> None:
    mixed = Mixed()
    a = mixed.enters()
    waits = mixed.ask_to_join(joining())
    assert (waits.answers, mixed.classic_group.state) == ([], ClassicState.PREPARING_REBALANCE)
    mixed.newer("n")
    assert refused(lambda: waits.answer) is ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.has(a.member_id) == ALL
    assert len(mixed.consumer.state.members) == 3


def test_sessions_of_classic_members_are_their_own() -> None:
    mixed = Mixed()
    a = mixed.enters()
    mixed.newer("n")
    mixed.wait(9_999)
    assert a.member_id in mixed.consumer.state.members
    mixed.wait(1)
    assert list(mixed.consumer.state.members) == ["n"]


def test_why_the_classic_group_rebalanced_is_not_forgotten() -> None:
    mixed = Mixed()
    a = mixed.enters()
    mixed.newer("n")
    told = [(each.cause, each.member_id) for each in mixed.consumer.rebalances]
    assert told == [(RebalanceCause.MEMBER_JOINED, a.member_id), (RebalanceCause.MEMBER_JOINED, "n")]


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_the_policy_may_forbid_it(policy: str) -> None:
    mixed = Mixed({"group.consumer.migration.policy": policy})
    unchanged(mixed, mixed.enters(), ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_full_group_takes_no_more() -> None:
    mixed = Mixed({"group.consumer.max.size": "1"})
    unchanged(mixed, mixed.enters(), ErrorCode.GROUP_MAX_SIZE_REACHED)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": "connect"},
        {"protocols": offered("range", metadata=b"")},
        {"protocols": offered("range", metadata=b"\0\3\0\0\0\x09")},
    ],
)
def test_members_that_are_no_consumers_stay_among_themselves(fields: dict[str, Any]) -> None:
    mixed = Mixed()
    unchanged(mixed, mixed.enters(**fields), ErrorCode.GROUP_ID_NOT_FOUND)


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"owned": None}, ErrorCode.INVALID_REQUEST), ({"topic_regex": "a.*"}, ErrorCode.INVALID_REGULAR_EXPRESSION)],
)
def test_a_heartbeat_that_is_refused_disturbs_nobody(fields: dict[str, Any], code: ErrorCode) -> None:
    mixed = Mixed()
    unchanged(mixed, mixed.enters(), code, fields)


def unchanged(mixed: Mixed, a: Any, code: ErrorCode, fields: dict[str, Any] | None = None) -> None:
    count, before = len(mixed.outbox.batches), stored(mixed.machine)
    assert refused(lambda: mixed.beat(arriving("n", **(fields or {})))) is code
    assert (len(mixed.outbox.batches), stored(mixed.machine)) == (count, before)
    assert mixed.heartbeat(a) is ErrorCode.NONE


def test_where_it_cannot_be_stored_the_classic_group_goes_on_and_rebalances() -> None:
    mixed = Mixed()
    a = mixed.enters()
    mixed.outbox.refuses = True
    mixed.machine.consumer_heartbeat(GROUP, arriving("n"), Asked(), mixed.now)
    mixed.outbox.undo()
    mixed.outbox.refuses = False
    assert mixed.classic_group.state is ClassicState.PREPARING_REBALANCE
    causes = [each.cause for each in mixed.classic_group.rebalances]
    assert causes == [RebalanceCause.MEMBER_JOINED, RebalanceCause.NOT_STORED], "the newer member's is forgotten"
    assert mixed.classic_group.kind is GroupKind.CLASSIC
    assert mixed.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
    again = mixed.join(a.member_id)
    assert again.generation == a.generation + 1
    mixed.wait(60_000)
    assert mixed.classic_group.is_empty, "sessions run"


def test_topics_that_are_gone_and_assignments_that_are_empty_are_left_out() -> None:
    mixed = Mixed()
    joined = mixed.join()
    mixed.sync(joined, {})
    mixed.newer("n")
    assert mixed.has(joined.member_id) == ()
    again = Mixed()
    a = again.enters()
    del again.topic_ids["orders"]
    again.newer("n")
    assert (again.has(a.member_id), again.consumer.state.targets[a.member_id].partitions) == ((), {})


def test_a_member_of_no_group_asks_a_group_of_either_kind_in_vain() -> None:
    mixed = Mixed()
    for _ in range(2):
        assert mixed.heartbeat(Joined("nobody", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
        if GROUP not in mixed.machine.groups:
            mixed.newer("n")
