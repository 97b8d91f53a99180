"""Decisions: what was granted and refused in a request, by generations of rights."""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_group, of_topic
from odradek.broker.handling.decisions import (
    Decisions,
    Question,
    forget,
    forget_before,
    granted_before,
    known,
    note,
    refused_in,
)

READ: Question = (Operation.READ, of_topic("orders"))
WRITE: Question = (Operation.WRITE, of_topic("orders"))
GROUP: Question = (Operation.READ, of_group("orders"))


def test_what_was_said_is_known_in_its_generation_alone() -> None:
    decisions: Decisions = {}
    for generation in (0, 1):
        note(decisions, READ, generation, is_granted=True)
        note(decisions, WRITE, generation, is_granted=False)
        assert [known(decisions, each, generation) for each in (READ, WRITE, GROUP)] == [True, False, None]
        assert [known(decisions, each, generation + 1) for each in (READ, WRITE)] == [None, None]
    assert decisions == {READ: 1, WRITE: refused_in(1)}


def test_what_was_granted_is_asked_again_in_a_later_generation() -> None:
    decisions: Decisions = {READ: 1, WRITE: refused_in(1)}
    assert granted_before(decisions, 1) == []
    assert granted_before(decisions, 2) == [READ]
    note(decisions, READ, 2, is_granted=True)
    assert granted_before(decisions, 2) == []


def test_what_was_granted_once_counts_although_it_was_refused_later() -> None:
    """The answer may hold what was found by it."""
    decisions: Decisions = {READ: 0}
    note(decisions, READ, 2, is_granted=False)
    assert known(decisions, READ, 2) is None
    assert granted_before(decisions, 2) == [READ]


def test_what_the_answer_does_not_rest_upon_is_not_asked_again() -> None:
    decisions: Decisions = {READ: 1, WRITE: 1}
    forget(decisions, [READ, GROUP])
    assert granted_before(decisions, 2) == [WRITE]


def test_who_begins_again_forgets_what_was_granted_before() -> None:
    decisions: Decisions = {READ: 1, GROUP: 2}
    forget_before(decisions, 2)
    assert decisions == {GROUP: 2}
