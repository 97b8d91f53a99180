"""The state of a store forgets old changes within bounds, and tells who asks for them."""

import pytest

from odradek.broker.cluster import state as state_module
from odradek.broker.cluster.state import State
from odradek.broker.cluster.store import Compacted, Txn


def put(state: State, key: str, value: bytes) -> None:
    prepared = state.prepare(Txn(put={key: value}))
    assert prepared is not None
    state.apply(prepared)


def test_changes_are_kept_up_to_a_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "HISTORY_CHANGES_MAX", 5)
    state = State()
    for number in range(12):
        put(state, f"/{number}", b"")
    assert [change.revision for change in state.changes("/", 7)] == [8, 9, 10, 11, 12]
    assert [change.revision for change in state.changes("/", 11)] == [12]
    assert state.changes("/", 12) == state.changes("/", 99) == []
    with pytest.raises(Compacted, match="up to revision 7 are no longer kept; asked for those after 6"):
        state.changes("/", 6)
    assert len(state.read("/").entries) == 12


def test_changes_are_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_module, "HISTORY_BYTES_MAX", 100)
    state = State()
    for _ in range(10):
        put(state, "/k", bytes(28))
    assert [change.revision for change in state.changes("/", 7)] == [8, 9, 10]
    with pytest.raises(Compacted):
        state.changes("/", 6)
    put(state, "/k", bytes(1000))  # larger than all that is kept
    with pytest.raises(Compacted):
        state.changes("/", 10)
    assert state.changes("/", 11) == []


def test_what_happened_before_the_start_is_not_known() -> None:
    state = State({}, revision=5)
    with pytest.raises(Compacted):
        state.changes("/", 4)
    assert state.changes("/", 5) == []


def test_a_change_is_applied_in_its_turn_only() -> None:
    state = State()
    first = state.prepare(Txn(put={"/a": b""}))
    second = state.prepare(Txn(put={"/b": b""}))
    assert first is not None
    assert second is not None
    state.apply(first)
    with pytest.raises(AssertionError):
        state.apply(second)
