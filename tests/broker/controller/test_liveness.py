"""Who has been heard of: by hand-made times."""

from odradek.broker.controller.liveness import Liveness

TIMEOUT_MS = 1_500.0


def watched(*broker_ids: int) -> Liveness:
    """Broker 1's judgement of these, all with epoch 10, as of time 0."""
    liveness = Liveness(1)
    liveness.follow(dict.fromkeys(broker_ids, 10), 0.0, TIMEOUT_MS)
    return liveness


def test_who_is_new_has_the_whole_time_and_is_told_once() -> None:
    liveness = Liveness(1)
    assert liveness.follow({1: 9, 2: 10, 3: 11}, 0.0, TIMEOUT_MS) == (2, 3)
    assert liveness.follow({1: 9, 2: 10, 3: 11}, 1_000.0, TIMEOUT_MS) == ()
    assert liveness.silent(TIMEOUT_MS - 1) == []
    assert liveness.silent(TIMEOUT_MS) == [(2, 10), (3, 11)], "what is known already has not been heard of again"


def test_the_controller_never_judges_itself() -> None:
    liveness = watched(1, 2)
    assert liveness.silent(1e9) == [(2, 10)]
    assert liveness.epoch_of(1) is None
    assert not liveness.heard(1, 10, 0.0, TIMEOUT_MS)


def test_who_is_heard_of_has_the_whole_time_again() -> None:
    liveness = watched(2, 3)
    assert liveness.heard(2, 10, 1_000.0, TIMEOUT_MS)
    assert liveness.next_deadline_ms == TIMEOUT_MS, "broker 3's"
    assert liveness.silent(2_000.0) == [(3, 10)]
    assert liveness.silent(2_500.0) == [(2, 10), (3, 10)]


def test_another_life_of_a_broker_is_not_heard_for_this_one() -> None:
    liveness = watched(2)
    assert not liveness.heard(2, 9, 1_000.0, TIMEOUT_MS)
    assert not liveness.heard(2, 11, 1_000.0, TIMEOUT_MS)
    assert not liveness.heard(4, 10, 1_000.0, TIMEOUT_MS)
    assert liveness.silent(1_500.0) == [(2, 10)]


def test_who_registers_anew_has_the_whole_time_and_who_goes_is_forgotten() -> None:
    liveness = watched(2, 3)
    assert liveness.follow({2: 20}, 1_400.0, TIMEOUT_MS) == (2,)
    assert (liveness.epoch_of(2), liveness.epoch_of(3)) == (20, None)
    assert liveness.silent(2_000.0) == []
    assert liveness.silent(2_900.0) == [(2, 20)]


def test_a_controller_that_was_held_up_gives_everybody_the_time_back() -> None:
    liveness = watched(2, 3)
    liveness.held_up(1_000.0)
    assert liveness.silent(2_499.0) == []
    assert liveness.silent(2_500.0) == [(2, 10), (3, 10)]


def test_who_is_not_the_controller_any_more_watches_nobody() -> None:
    liveness = watched(2)
    liveness.clear()
    assert liveness.silent(1e9) == []
    assert liveness.next_deadline_ms is None
    assert liveness.follow({2: 10}, 0.0, TIMEOUT_MS) == (2,)


def test_who_hears_less_than_half_is_a_minority() -> None:
    liveness = Liveness(1)
    liveness.follow({1: 10, 2: 20, 3: 30}, 0.0, 100.0)
    assert liveness.is_minority(0.0), "nobody has been heard of yet"
    assert liveness.heard(2, 20, 50.0, 100.0)
    assert not liveness.is_minority(149.0)
    assert liveness.is_minority(150.0), "that was too long ago"
    assert liveness.heard(2, 20, 150.0, 100.0)
    liveness.follow({1: 10, 2: 21, 3: 30}, 151.0, 100.0)
    assert liveness.is_minority(151.0), "of its new life nothing was heard"
    liveness.follow({1: 10, 2: 21}, 151.0, 100.0)
    assert not liveness.is_minority(151.0), "one of two is half"
