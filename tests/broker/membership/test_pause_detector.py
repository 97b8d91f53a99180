"""A gap between two looks at the clock is noticed by whoever looks first, until the store was asked behind it."""

from odradek.broker.membership.pause_detector import PauseDetector


def test_who_is_seen_often_enough_is_not_doubtful() -> None:
    detector = PauseDetector(750.0)
    assert not any(detector.check(now_ms) for now_ms in (10_000.0, 10_750.0, 11_500.0))


def test_a_gap_counts_until_the_store_was_asked_after_it() -> None:
    detector = PauseDetector(750.0)
    detector.check(0.0)
    assert detector.check(751.0)
    assert detector.check(760.0), "a second look does not make it good"
    detector.confirmed(750.0)
    assert detector.check(770.0), "that was asked before the gap, and may have waited in it"
    detector.confirmed(771.0)
    assert not detector.check(780.0)


def test_another_gap_while_the_store_is_asked_counts_again() -> None:
    detector = PauseDetector(750.0)
    detector.check(0.0)
    detector.check(1000.0)
    detector.check(2000.0)
    detector.confirmed(1500.0)
    assert detector.may_be_replaced


def test_without_a_limit_nothing_is_doubtful() -> None:
    detector = PauseDetector()
    detector.check(0.0)
    assert not detector.check(1e12)
