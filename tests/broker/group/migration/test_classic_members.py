"""Classic members in a consumer group: joined, told to join again, synced, fenced and timed out, as in Kafka."""

from functools import partial
from typing import Any

import pytest

from odradek.broker.group.classic.requests import Joined, Leaving, LeftMember
from odradek.broker.group.rebalance import RebalanceCause
from odradek.protocol.errors import ErrorCode
from tests.broker.group.migration.mixed import (
    ALL,
    REBALANCE_MS,
    Mixed,
    joining,
    offered,
    partitions_of,
    refused,
    stored,
    subscription,
)


def a_mixed_group() -> tuple[Mixed, Joined, int]:
    """A classic member that has all four partitions and is to give two to a newer one, `n`, of this epoch."""
    mixed = Mixed()
    a = mixed.enters()
    return mixed, a, mixed.newer("n").member_epoch


def shared() -> tuple[Mixed, Joined, int]:
    """They have two partitions each."""
    mixed, a, epoch = a_mixed_group()
    a = mixed.join(a.member_id)
    mixed.sync(a)
    mixed.beats("n", epoch)
    return mixed, a, epoch


def test_an_eager_member_gives_up_all_and_has_its_share_at_its_next_join() -> None:
    mixed, a, epoch = a_mixed_group()
    assert mixed.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
    assert refused(lambda: mixed.sync(a)) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = mixed.join(a.member_id)
    assert joined == Joined(a.member_id, epoch, "consumer", "range", leader_id="", members=())
    synced = mixed.sync(joined, protocol_type="consumer", protocol_name="range")
    assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    kept = partitions_of(synced.assignment)
    assert len(kept) == 2
    given = mixed.beats("n", epoch).assigned
    assert given is not None
    assert sorted((*kept, *next(iter(given.values())))) == list(ALL)
    assert mixed.heartbeat(joined) is ErrorCode.NONE
    assert stored(mixed.replayed()) == stored(mixed.machine)


def test_a_cooperative_member_keeps_what_it_is_not_to_give_up() -> None:
    mixed, a, epoch = a_mixed_group()
    first = mixed.join(a.member_id, ALL)
    assert first.generation == a.generation, "it has not given anything up yet"
    kept = partitions_of(mixed.sync(first).assignment)
    assert len(kept) == 2
    assert mixed.beats("n", epoch).assigned is None
    assert mixed.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    second = mixed.join(a.member_id, kept)
    assert second.generation == epoch
    assert partitions_of(mixed.sync(second).assignment) == kept
    assert mixed.beats("n", epoch).assigned is not None


def test_what_has_become_free_is_fetched_by_another_join() -> None:
    mixed, a, epoch = shared()
    b = mixed.join()
    assert partitions_of(mixed.sync(b).assignment) == ()
    assert mixed.heartbeat(b) is ErrorCode.NONE, "nothing is free yet"
    a = mixed.join(a.member_id)
    mixed.sync(a)
    mixed.beats("n", epoch)
    mixed.beats("n", epoch, tuple(mixed.has("n")))
    assert mixed.heartbeat(b) is ErrorCode.REBALANCE_IN_PROGRESS
    b = mixed.join(b.member_id)
    assert len(partitions_of(mixed.sync(b).assignment)) == 1
    assert mixed.heartbeat(b) is ErrorCode.NONE


def test_a_new_dynamic_member_is_given_its_id_first_where_the_version_asks_for_that() -> None:
    mixed, _, _ = shared()
    told = mixed.join(requires_known_member_id=True)
    assert (told.error_code, told.generation) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert told.member_id.startswith("client-")
    assert told.member_id not in mixed.consumer.state.members
    assert mixed.join(told.member_id, requires_known_member_id=True).member_id == told.member_id
    assert told.member_id in mixed.consumer.state.members


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": offered("sticky")}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": offered("range", metadata=b"\0")}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody", "instance_id": "till-1"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_does_not_fit_is_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    mixed, _, _ = shared()
    before, count = stored(mixed.machine), len(mixed.outbox.batches)
    assert refused(lambda: mixed.join(**fields)) is code
    assert (stored(mixed.machine), len(mixed.outbox.batches)) == (before, count)


def test_a_full_group_takes_no_more_classic_members() -> None:
    mixed = Mixed({"group.consumer.max.size": "2"})
    mixed.enters()
    mixed.newer("n")
    assert refused(mixed.join) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_syncs_and_heartbeats_of_others_are_refused() -> None:
    mixed, a, epoch = shared()
    for joined, code in (
        (a._replace(member_id="nobody"), ErrorCode.UNKNOWN_MEMBER_ID),
        (a._replace(member_id="n", generation=epoch), ErrorCode.UNKNOWN_MEMBER_ID),
        (a._replace(generation=epoch - 1), ErrorCode.ILLEGAL_GENERATION),
    ):
        assert mixed.heartbeat(joined) is code
        assert refused(partial(mixed.sync, joined)) is code
    assert mixed.heartbeat(a, "till-1") is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused(lambda: mixed.sync(a, protocol_type="connect")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused(lambda: mixed.sync(a, protocol_name="sticky")) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_who_does_not_join_again_in_time_is_removed() -> None:
    mixed, a, _ = a_mixed_group()
    for _ in range(5):
        mixed.heartbeat(a)
        mixed.wait(REBALANCE_MS // 5 - 1)
    assert a.member_id in mixed.consumer.state.members
    mixed.heartbeat(a)
    mixed.wait(5)
    assert list(mixed.consumer.state.members) == ["n"]
    last = mixed.consumer.rebalances[-1]
    assert (last.cause, last.reason) == (
        RebalanceCause.JOIN_EXPIRED,
        f"member {a.member_id} did not join again in time",
    )


def test_who_does_not_sync_in_time_is_removed() -> None:
    mixed, a, _ = shared()
    b = mixed.join(session_timeout_ms=60_000)
    mixed.wait(REBALANCE_MS - 1)
    assert b.member_id in mixed.consumer.state.members
    mixed.wait(1)
    assert b.member_id not in mixed.consumer.state.members
    last = mixed.consumer.rebalances[-1]
    assert (last.cause, last.member_id) == (RebalanceCause.SYNC_EXPIRED, b.member_id)
    assert last.last_heard_ms == last.started_ms - REBALANCE_MS
    assert a.member_id not in mixed.consumer.state.members, "its session has ended"


def test_members_leave_together_and_only_their_own_kind() -> None:
    mixed, a, _ = shared()
    b = mixed.join(instance_id="till-1")
    epoch = mixed.consumer.state.group_epoch
    left = mixed.leaves(
        Leaving("nobody"), Leaving("n"), Leaving(a.member_id, reason="bye"), Leaving(a.member_id), Leaving("", "till-1")
    )
    last = mixed.consumer.rebalances[-1]
    assert (last.cause, last.member_id) == (RebalanceCause.MEMBER_LEFT, a.member_id)
    assert last.reason == f"members {a.member_id}, {b.member_id} left: bye"
    assert left.members == (
        LeftMember("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
        LeftMember("n", None, ErrorCode.UNKNOWN_MEMBER_ID),
        LeftMember(a.member_id, None),
        LeftMember(a.member_id, None, ErrorCode.UNKNOWN_MEMBER_ID),
        LeftMember(b.member_id, "till-1"),
    )
    assert (list(mixed.consumer.state.members), mixed.consumer.state.group_epoch) == (["n"], epoch + 1)
    assert stored(mixed.replayed()) == stored(mixed.machine)


def test_a_static_member_that_joins_again_takes_over_what_it_had() -> None:
    mixed, _, _ = shared()
    first = mixed.join(instance_id="till-1")
    mixed.sync(first)
    had, epoch = mixed.has(first.member_id), mixed.consumer.state.group_epoch
    again = mixed.join(instance_id="till-1")
    assert again.member_id != first.member_id
    assert first.member_id not in mixed.consumer.state.members
    assert (mixed.has(again.member_id), mixed.consumer.state.group_epoch) == (had, epoch)
    assert mixed.heartbeat(first, "till-1") is ErrorCode.FENCED_INSTANCE_ID
    assert refused(lambda: mixed.join(first.member_id, instance_id="till-1")) is ErrorCode.FENCED_INSTANCE_ID
    [answer] = mixed.leaves(Leaving(first.member_id, "till-1")).members
    assert answer.error_code is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_moves_to_the_newer_protocol_with_what_it_has() -> None:
    mixed = Mixed()
    a = mixed.enters(instance_id="till-1")
    answer = mixed.newer("n", instance_id="till-1")
    assert list(mixed.consumer.state.members) == ["n"]
    assert (mixed.has("n"), answer.member_epoch) == (ALL, a.generation + 1)
    assert not mixed.consumer.is_all_classic


def test_the_subscription_may_change_at_a_join() -> None:
    mixed, a, _ = shared()
    epoch = mixed.consumer.state.group_epoch
    metadata = subscription(("bills",))
    mixed.join(a.member_id, protocols=offered("range", metadata=metadata))
    assert mixed.consumer.state.members[a.member_id].topic_names == frozenset(("bills",))
    assert mixed.consumer.state.group_epoch == epoch + 1


def test_a_changed_topic_is_seen_by_heartbeats_of_classic_members() -> None:
    mixed, a, _ = shared()
    epoch = mixed.consumer.state.group_epoch
    mixed.topic_ids["orders"] = b"o" * 16
    mixed.machine.metadata_changed(("orders",), mixed.now)
    assert mixed.heartbeat(a) is ErrorCode.REBALANCE_IN_PROGRESS
    assert mixed.consumer.state.group_epoch == epoch + 1


def test_a_join_that_could_not_be_stored_leaves_nothing_behind() -> None:
    mixed, _, _ = shared()
    before = stored(mixed.machine)
    mixed.outbox.refuses = True
    mixed.ask_to_join(joining())
    mixed.outbox.undo()
    assert stored(mixed.machine) == before
    mixed.outbox.refuses = False
    mixed.wait(REBALANCE_MS + 1)
