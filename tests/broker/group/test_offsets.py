"""Committed offsets, by a model that knows nothing of how they are kept: a list of what happened."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.offsets import Committed, Offsets, Position, Undo

POSITIONS: Sequence[Position] = (("orders", 0), ("orders", 1), ("bills", 0))
GROUPS = ("a", "b")


class Event(NamedTuple):
    """commit, pending (of a producer), remove, or the end of a transaction."""

    kind: str
    group_id: str
    position: Position
    producer_id: int
    number: int


EVENTS = st.builds(
    Event,
    st.sampled_from(["commit", "commit", "pending", "pending", "remove", "committed", "aborted", "undo"]),
    st.sampled_from(GROUPS),
    st.sampled_from(POSITIONS),
    st.integers(1, 2),
    st.integers(0, 100),
)


def expected(events: Sequence[Event]) -> tuple[dict[tuple[str, Position], int], set[tuple[str, Position]]]:
    """What counts, and what is pending, by going through the events once."""
    counts: dict[tuple[str, Position], tuple[int, int]] = {}
    pending: dict[int, dict[tuple[str, Position], tuple[int, int]]] = {}
    for order, event in enumerate(events):
        key = (event.group_id, event.position)
        if event.kind == "commit":
            counts[key] = (order, event.number)
        elif event.kind == "pending":
            pending.setdefault(event.producer_id, {})[key] = (order, event.number)
        elif event.kind == "remove":
            counts.pop(key, None)
            for each in pending.values():
                each.pop(key, None)
        else:
            for found, (since, number) in pending.pop(event.producer_id, {}).items():
                if event.kind == "committed" and counts.get(found, (-1, 0))[0] < since:
                    counts[found] = (since, number)
    return {key: number for key, (_, number) in counts.items()}, {key for each in pending.values() for key in each}


def take(offsets: Offsets, event: Event) -> Undo:
    committed = Committed(event.number)
    match event.kind:
        case "commit":
            return offsets.commit(event.group_id, event.position, committed)
        case "pending":
            return offsets.commit_pending(event.producer_id, event.group_id, event.position, committed)
        case "remove":
            return offsets.remove(event.group_id, event.position)
        case _:
            return offsets.end_transaction(event.producer_id, is_commit=event.kind == "committed").undo


@given(st.lists(EVENTS, max_size=40))
def test_what_counts_and_what_is_pending_follows_from_what_happened(events: list[Event]) -> None:
    """`undo` takes back the last change that is not taken back yet."""
    offsets, happened, undos = Offsets(), list[Event](), list[Undo]()
    for event in events:
        if event.kind != "undo":
            undos.append(take(offsets, event))
            happened.append(event)
        elif undos:
            undos.pop()()
            happened.pop()
        counts, pending = expected(happened)
        found = {
            (group_id, position): each.offset for group_id in GROUPS for position, each in offsets.of(group_id).items()
        }
        assert found == counts
        assert {key for key in ((g, p) for g in GROUPS for p in POSITIONS) if offsets.is_unstable(*key)} == pending
        assert {(each, position) for each in GROUPS for position in offsets.pending_positions(each)} == pending
        assert {group_id for group_id in GROUPS if offsets.has_pending(group_id)} == {key[0] for key in pending}
        assert {group_id for group_id in GROUPS if offsets.holds(group_id)} == {key[0] for key in {*counts, *pending}}
        assert len(offsets) == len(counts)
        assert set(offsets.group_ids) == {key[0] for key in counts}


def test_a_group_without_offsets_has_none() -> None:
    offsets = Offsets()
    assert offsets.of("a") == {}
    offsets.commit("a", ("orders", 0), Committed(5))()
    assert offsets.of("a") == {}
    assert list(offsets.group_ids) == []


def test_of_two_transactions_what_was_pending_last_counts() -> None:
    """In whichever order they end."""
    position: Position = ("orders", 0)
    for first, last in ((1, 2), (2, 1)):
        offsets = Offsets()
        offsets.commit_pending(1, "a", position, Committed(5))
        offsets.commit_pending(2, "a", position, Committed(3))
        offsets.end_transaction(first, is_commit=True)
        offsets.end_transaction(last, is_commit=True)
        assert offsets.of("a")[position].offset == 3


def test_an_end_that_is_taken_back_leaves_what_another_transaction_began_since() -> None:
    """Of the same producer, in another group: a batch that the log took does not depend on the marker."""
    offsets = Offsets()
    offsets.commit_pending(1, "a", ("orders", 0), Committed(5))
    undo = offsets.end_transaction(1, is_commit=True).undo
    offsets.commit_pending(1, "b", ("orders", 0), Committed(7))
    undo()
    assert {group_id: list(offsets.pending_of(group_id)) for group_id in GROUPS} == {
        "a": [(1, ("orders", 0), Committed(5))],
        "b": [(1, ("orders", 0), Committed(7))],
    }
    assert offsets.of("a") == {}


def test_a_marker_is_of_the_groups_whose_pending_offsets_are_removed() -> None:
    """Their tombstones may be refused yet."""
    offsets = Offsets()
    offsets.commit_pending(1, "a", ("orders", 0), Committed(5))
    undo = offsets.remove("a", ("orders", 0))
    assert (offsets.has_pending("a"), offsets.groups_of(1), [*offsets.pending_group_ids]) == (False, ["a"], ["a"])
    offsets.end_transaction(1, is_commit=True).undo()
    undo()
    assert list(offsets.pending_of("a")) == [(1, ("orders", 0), Committed(5))]
    offsets.end_transaction(1, is_commit=False)
    assert (offsets.groups_of(1), [*offsets.pending_group_ids]) == ([], [])


def test_an_end_out_of_its_order_is_not_taken_back() -> None:
    """The shard loads its log again then, rather than to guess."""
    offsets = Offsets()
    offsets.commit_pending(1, "a", ("orders", 0), Committed(5))
    undo = offsets.end_transaction(1, is_commit=True).undo
    offsets.commit("a", ("orders", 0), Committed(6))
    with pytest.raises(AssertionError, match="taken back before"):
        undo()
