"""Edits are taken back by key, whatever has happened since."""

import gc

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.consumer.edits import Edits, Newest
from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Key, Kind, ResolvedRegex, Value

KEYS = [Key(Kind.REGEX, name) for name in "abc"]


def value(number: int) -> ResolvedRegex | None:
    return ResolvedRegex(frozenset(), number, 0) if number else None


def edited(state: GroupState, newest: Newest, *puts: tuple[Key, Value | None]) -> Edits:
    edits = Edits(state, newest)
    for key, one in puts:
        edits.put(key, one)
    return edits


def test_a_key_is_written_once_with_its_last_value() -> None:
    state, newest = GroupState(), Newest()
    a, b, c = KEYS
    edits = edited(state, newest, (a, value(1)), (b, value(2)), (a, value(3)), (c, value(1)), (c, None), (b, value(2)))
    assert edits.settle() == [(b, value(2)), (a, value(3))]
    edits.undo()
    assert state.all_keys() == []


def test_an_undone_edit_does_not_touch_what_was_written_since() -> None:
    state, newest = GroupState(), Newest()
    a, b, _ = KEYS
    first = edited(state, newest, (a, value(1)), (b, value(1)))
    second = edited(state, newest, (a, value(2)))
    first.undo()
    assert (state.value(a), state.value(b)) == (value(2), None)
    second.undo()
    assert state.value(a) is None, "and not what the refused edit has put"


def test_what_is_written_leaves_nothing_behind() -> None:
    state, newest = GroupState(), Newest()
    edited(state, newest, (KEYS[0], value(1)))
    gc.collect()
    assert len(newest.changes) == 0


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 3)), min_size=1, max_size=4), max_size=6),
    st.data(),
)
def test_the_state_is_what_the_surviving_edits_say(plan: list[list[tuple[Key, int]]], data: st.DataObject) -> None:
    """Edits are written or refused in any order; what counts is the order in which they were made."""
    state, newest = GroupState(), Newest()
    made: list[Edits] = []
    written: list[list[tuple[Key, Value | None]]] = []
    for puts in plan:
        made.append(edited(state, newest, *((key, value(number)) for key, number in puts)))
        written.append(made[-1].settle())
    alive: list[Edits | None] = list(made)
    for index in data.draw(st.permutations(range(len(made)))):
        edits = made[index]
        if data.draw(st.booleans()):
            edits.undo()
            alive[index] = None
    expected: dict[Key, Value | None] = dict.fromkeys(KEYS)
    for index, values in enumerate(written):
        if alive[index] is not None:
            expected.update(values)
    assert {key: state.value(key) for key in KEYS} == expected
