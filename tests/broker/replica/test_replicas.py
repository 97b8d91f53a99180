"""The in-sync set and the high watermark: by injected ISR, maximal ISR and follower positions."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.replica.replicas import NEVER_MS, Follower, MayJoin, Replicas

LAG_MS = 30_000.0
NOW_MS = 1_000_000.0


def replicas(isr: tuple[int, ...], ends: dict[int, int], assigned: tuple[int, ...] = (0, 1, 2)) -> Replicas:
    """Broker 0 leads. The followers stand at `ends`, and have long not caught up."""
    found = Replicas(0, assigned, isr)
    for broker_id, end in ends.items():
        found.followers[broker_id].log_end_offset = end
    return found


def anybody(broker_id: int, broker_epoch: int) -> bool:
    del broker_id, broker_epoch
    return True


def watermark(
    found: Replicas, leader_end: int, current: int = 0, min_insync: int = 1, may_join: MayJoin = anybody
) -> int:
    return found.high_watermark(leader_end, current, min_insync, NOW_MS, LAG_MS, may_join)


def test_alone_the_high_watermark_is_the_log_end() -> None:
    assert watermark(Replicas(0, (0,), (0,)), 7) == 7


def test_it_waits_for_the_slowest_in_sync_replica() -> None:
    assert watermark(replicas((0, 1, 2), {1: 9, 2: 4}), 10) == 4


def test_a_replica_out_of_sync_and_far_behind_does_not_hold_it_back() -> None:
    assert watermark(replicas((0, 1), {1: 9, 2: 4}), 10) == 9


def test_a_pending_addition_counts_before_the_store_has_answered() -> None:
    found = replicas((0, 1), {1: 9, 2: 4})
    found.pending_isr = (2,)
    assert found.maximal_isr == (0, 1, 2)
    assert watermark(found, 10) == 4


def test_a_replica_that_has_caught_up_counts_before_it_is_added() -> None:
    found = replicas((0, 1), {1: 9, 2: 8})
    found.followers[2].last_caught_up_ms = NOW_MS - LAG_MS
    assert watermark(found, 10) == 8
    found.followers[2].broker_epoch = 7
    gone = watermark(found, 10, may_join=lambda broker_id, broker_epoch: (broker_id, broker_epoch) != (2, 7))
    assert gone == 9, "fenced or shutting down: it may not join, so nobody waits for it"


def test_who_never_fetched_has_not_caught_up_however_young_the_clock_is() -> None:
    found = Replicas(0, (0, 1, 2), (0, 1), now_ms=5.0)
    found.followers[1].fetched(10, 6.0, 10)
    assert found.high_watermark(10, 0, 1, 7.0, LAG_MS, anybody) == 10


def test_while_others_are_eligible_it_stands_still() -> None:
    found = replicas((0, 1), {1: 9, 2: 4})
    found.elr = (2,)
    assert watermark(found, 10, current=3) == 3


def test_a_former_life_of_a_follower_does_not_count_and_a_later_one_begins_anew() -> None:
    follower = Follower()
    assert follower.identify(5)
    follower.fetched(8, 100.0, 10)
    assert not follower.identify(4)
    assert follower.log_end_offset == 8
    assert follower.identify(5)
    assert follower.log_end_offset == 8
    assert follower.identify(6)
    assert follower.log_end_offset == -1
    assert follower.last_fetch_leader_end == 0


def test_what_a_former_life_had_caught_up_with_holds_nothing_up() -> None:
    """It came back with an empty disk: whoever waited for it would wait until it has fetched everything."""
    found = replicas((0, 1), {1: 9, 2: 0})
    back = found.followers[2]
    back.identify(5)
    back.fetched(9, NOW_MS - 10.0, 9)
    assert back.identify(6)
    back.fetched(0, NOW_MS, 10)
    assert watermark(found, 10) == 9
    member = Follower(NOW_MS)
    member.identify(5, is_in_sync=True)
    member.identify(6, is_in_sync=True)
    assert member.last_caught_up_ms == NOW_MS, "who is in sync is not thrown out for a restart"


def test_what_is_known_of_followers_that_stay_is_kept() -> None:
    found = replicas((0, 1, 2), {1: 9, 2: 4})
    kept = found.followers[1]
    found.update((0, 1, 3), (0, 1, 3), (), NOW_MS)
    assert found.followers[1] is kept
    assert sorted(found.followers) == [1, 3]
    assert found.followers[3].last_caught_up_ms == NOW_MS
    assert watermark(found, 10) == 0, "the new member has not fetched"


def test_it_never_goes_back() -> None:
    assert watermark(replicas((0, 1), {1: 3}), 10, current=6) == 6


def test_it_does_not_move_below_the_effective_minimum() -> None:
    assert watermark(replicas((0,), {1: 3, 2: 3}), 10, current=2, min_insync=2) == 2
    assert watermark(replicas((0, 1), {1: 5, 2: 3}), 10, current=2, min_insync=2) == 5


def test_the_minimum_counts_up_to_the_replication_factor() -> None:
    alone = Replicas(0, (0,), (0,))
    assert alone.effective_min_insync(2) == 1
    assert alone.has_enough_before_append(2)
    assert watermark(alone, 10, min_insync=2) == 10


def test_before_the_append_the_stored_isr_counts_and_after_it_the_maximal_one() -> None:
    found = replicas((0,), {1: 9})
    found.pending_isr = (1,)
    assert not found.has_enough_before_append(2)
    assert found.has_enough_after_append(2)


def test_caught_up_is_judged_by_the_leader_end_of_the_fetch_before() -> None:
    follower = Follower()
    follower.fetched(0, now_ms=100.0, leader_end_offset=50)
    assert follower.last_caught_up_ms == NEVER_MS
    follower.fetched(50, now_ms=200.0, leader_end_offset=80)
    assert follower.last_caught_up_ms == 100.0, "it had reached by 200 what the leader had at 100"
    follower.fetched(80, now_ms=300.0, leader_end_offset=80)
    assert follower.last_caught_up_ms == 300.0
    assert follower.is_caught_up(80, 10_000_000.0, LAG_MS), "at the leader's end no time is too long"
    assert not follower.is_caught_up(81, 300.0 + LAG_MS + 1, LAG_MS)


@given(
    ends=st.dictionaries(st.integers(1, 4), st.integers(0, 20), min_size=4, max_size=4),
    isr=st.sets(st.integers(1, 4)),
    pending=st.sets(st.integers(1, 4)),
    leader_end=st.integers(20, 30),
    current=st.integers(0, 20),
    min_insync=st.integers(1, 6),
)
def test_what_is_below_it_is_on_every_replica_that_counts(
    ends: dict[int, int], isr: set[int], pending: set[int], leader_end: int, current: int, min_insync: int
) -> None:
    found = replicas((0, *sorted(isr)), ends, assigned=(0, 1, 2, 3, 4))
    found.pending_isr = tuple(sorted(pending))
    moved_to = watermark(found, leader_end, current, min_insync)
    assert current <= moved_to <= max(current, leader_end)
    if moved_to > current:
        assert all(ends[broker_id] >= moved_to for broker_id in isr | pending)
        assert len(isr) + 1 >= min(min_insync, 5)


@given(
    ends=st.dictionaries(st.integers(1, 2), st.integers(8, 10), min_size=2, max_size=2),
    isr=st.sampled_from([(0,), (0, 1), (0, 1, 2)]),
    elr=st.sampled_from([(), (2,)]),
    leader_end=st.integers(9, 11),
    current=st.integers(0, 9),
    quiet_ms=st.floats(0, 1e12),
)
def test_in_step_is_who_no_time_that_passes_can_change(
    ends: dict[int, int],
    isr: tuple[int, ...],
    elr: tuple[int, ...],
    leader_end: int,
    current: int,
    quiet_ms: float,
) -> None:
    """Whoever is passed over for being in step would neither lose a member nor move its high watermark further."""
    found = replicas(isr, ends)
    found.elr = elr
    is_in_step = found.is_in_step(leader_end)
    assert is_in_step == (isr == (0, 1, 2) and not elr and ends == {1: leader_end, 2: leader_end})
    if is_in_step:
        at_ms = NOW_MS + quiet_ms
        assert not found.lagging(leader_end, at_ms, LAG_MS, high_watermark=leader_end)
        assert found.high_watermark(leader_end, current, 1, at_ms, LAG_MS, anybody) == leader_end
