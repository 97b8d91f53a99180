"""A gap between two looks at the clock is noticed by whoever looks first, until the store was asked behind it."""

from odradek.broker.membership.pause_detector import Standstill


def test_who_is_seen_often_enough_is_not_doubtful() -> None:
    standstill = Standstill(750.0)
    assert not any(standstill.look(now_ms) for now_ms in (10_000.0, 10_750.0, 11_500.0))


def test_a_gap_counts_until_the_store_was_asked_after_it() -> None:
    standstill = Standstill(750.0)
    standstill.look(0.0)
    assert standstill.look(751.0)
    assert standstill.look(760.0), "a second look does not make it good"
    standstill.confirmed(750.0)
    assert standstill.look(770.0), "that was asked before the gap, and may have waited in it"
    standstill.confirmed(771.0)
    assert not standstill.look(780.0)


def test_another_gap_while_the_store_is_asked_counts_again() -> None:
    standstill = Standstill(750.0)
    standstill.look(0.0)
    standstill.look(1000.0)
    standstill.look(2000.0)
    standstill.confirmed(1500.0)
    assert standstill.is_doubtful


def test_without_a_limit_nothing_is_doubtful() -> None:
    standstill = Standstill()
    standstill.look(0.0)
    assert not standstill.look(1e12)
