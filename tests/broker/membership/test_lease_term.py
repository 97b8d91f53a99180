"""Until when a lease is certain: by hand-made times."""

from odradek.broker.membership.lease_term import LeaseTerm


def test_before_the_first_answer_nothing_is_certain() -> None:
    assert LeaseTerm().is_over(0.0)


def test_a_lease_ends_a_tenth_before_its_ttl_counted_from_sending_the_renewal() -> None:
    term = LeaseTerm()
    term.renewed(sent_ms=1_000.0, ttl_ms=2_000.0)
    assert not term.is_over(2_799.9)
    assert term.is_over(2_800.0)


def test_an_answer_to_an_older_renewal_does_not_make_it_shorter() -> None:
    term = LeaseTerm()
    term.renewed(sent_ms=5_000.0, ttl_ms=2_000.0)
    term.renewed(sent_ms=4_000.0, ttl_ms=2_000.0)
    assert not term.is_over(6_799.0)


def test_what_is_given_back_is_over_at_once_even_if_it_never_lapses() -> None:
    term = LeaseTerm()
    term.never_ends()
    assert not term.is_over(1e18)
    term.end()
    assert term.is_over(0.0)
    term.renewed(sent_ms=10.0, ttl_ms=1_000.0)
    assert not term.is_over(900.0), "and a new one counts again"
