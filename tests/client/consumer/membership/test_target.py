"""What is assigned by topic id, as far as it is known by name."""

from odradek.client.consumer.membership.target import Target
from tests.client.consumer.assignment.groups import parts

A, B, A_AGAIN = b"a" * 16, b"b" * 16, b"A" * 16
SOME = {A: frozenset((0, 1)), B: frozenset((0,))}


def test_only_what_has_a_name_can_be_taken() -> None:
    target = Target()
    assert target.set(SOME) and not target.set({**SOME, A_AGAIN: frozenset()})
    target.name({A: "a"})
    assert target.unnamed == {B}
    assert target.take(()) == frozenset(parts("a0 a1"))
    assert target.by_id(parts("a1")) == {A: frozenset((1,))}


def test_what_is_not_assigned_any_more_is_gone() -> None:
    target = Target()
    target.set(SOME)
    target.name({A: "a", B: "b"})
    owned = target.take(())
    target.set({A: frozenset((1, 2))})
    assert target.gone(owned) == frozenset(parts("a0 b0"))
    assert target.has_more_than(owned)
    assert target.take(parts("a1")) == frozenset(parts("a2"))
    assert not target.has_more_than(frozenset(parts("a1 a2")))


def test_a_topic_made_again_has_other_partitions_of_the_same_name() -> None:
    target = Target()
    target.set({A: frozenset((0,))})
    target.name({A: "a", A_AGAIN: "a"})
    owned = target.take(())
    target.set({A_AGAIN: frozenset((0,))})
    assert target.gone(owned) == owned
