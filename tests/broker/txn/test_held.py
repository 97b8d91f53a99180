"""Requests wait by transactional id, in order, until they are taken or are late."""

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.txn.held import Held, HeldRequest


def operation(now: Now) -> None:
    raise AssertionError(f"{now}: nobody calls it here")


def request(until_ms: int) -> HeldRequest:
    return HeldRequest(operation, Waiting[None](), until_ms)


def test_all_of_an_id_are_taken_in_order_and_wait_no_more() -> None:
    held, first, second, other = Held(), request(10), request(20), request(5)
    for transactional_id, each in (("a", first), ("b", other), ("a", second)):
        held.add(transactional_id, each)
    assert held.deadline_ms("a") == 10
    assert list(held.take("a")) == [first, second]
    assert list(held.take("a")) == []
    assert (held.deadline_ms("a"), held.deadline_ms("b")) == (None, 5)


def test_those_that_have_waited_for_long_enough_are_taken_alone() -> None:
    held, first, second = Held(), request(10), request(20)
    held.add("a", first)
    held.add("a", second)
    assert held.take_late("a", 9) == []
    assert held.take_late("a", 10) == [first]
    assert held.deadline_ms("a") == 20
    assert held.take_late("a", 25) == [second]
    assert held.deadline_ms("a") is None
    assert held.take_late("a", 25) == []
