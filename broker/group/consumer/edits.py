"""Changes of a consumer group that are written together, and how they are taken back. Pure.

An operation puts values; each is applied to the state at once. Then the values are its records. If the log refuses
these, `undo` gives each key the value that it has without them: the former one, unless a later operation has written
the key again. That one's former value becomes the former value of the refused operation.

A key with changes that can still be taken back has a chain of them, oldest first. Only the operations hold their
changes: what is written leaves its chain by itself.
"""

from weakref import WeakValueDictionary, ref

from odradek.broker.group.consumer.group_state import GroupState
from odradek.broker.group.consumer.group_values import Key, Value
from odradek.broker.group.rebalance import Rebalance


class _Change:
    """A link of a key's chain."""

    __slots__ = ("__weakref__", "after", "before", "former", "key", "value")

    def __init__(self, key: Key, former: Value | None, value: Value | None, before: "_Change | None") -> None:
        self.key = key
        self.former = former
        self.value = value
        self.before = ref(before) if before is not None else None
        self.after: _Change | None = None
        if before is not None:
            before.after = self


class Newest:
    """The newest change of each key that may still be taken back."""

    __slots__ = ("changes",)

    def __init__(self) -> None:
        self.changes: WeakValueDictionary[Key, _Change] = WeakValueDictionary()


class Edits:
    """The changes of one operation."""

    __slots__ = ("_changes", "_newest", "_state", "rebalance")

    def __init__(self, state: GroupState, newest: Newest) -> None:
        self._state = state
        self._newest = newest
        self._changes: dict[Key, _Change] = {}
        self.rebalance: Rebalance | None = None
        """What was remembered with the changes, and is forgotten with them. It is in no record."""

    def put(self, key: Key, value: Value | None) -> None:
        """Does nothing where the key has that value already."""
        former = self._state.value(key)
        if former == value:
            return
        mine = self._changes.pop(key, None)
        if mine is None:
            mine = _Change(key, former, value, self._newest.changes.get(key))
            self._newest.changes[key] = mine
        mine.value = value
        self._changes[key] = mine
        self._state.apply(key, value)

    def settle(self) -> list[tuple[Key, Value | None]]:
        """What has to be written, when all is put: each key once, with its last value; those put last come last.

        A key that has come back to its former value is not written, so it must not be taken back either.
        """
        for key, change in list(self._changes.items()):
            if change.value == change.former:
                self._unlink(change)
                del self._changes[key]
        return [(key, change.value) for key, change in self._changes.items()]

    @property
    def keys(self) -> set[Key]:
        return set(self._changes)

    def undo(self) -> None:
        for change in reversed(self._changes.values()):
            self._unlink(change)
        self._changes = {}

    def _unlink(self, change: _Change) -> None:
        before = change.before() if change.before is not None else None
        after = change.after
        if after is not None:
            after.former = change.former
            after.before = change.before
        else:
            self._state.apply(change.key, change.former)
            if before is not None:
                self._newest.changes[change.key] = before
            else:
                self._newest.changes.pop(change.key, None)
        if before is not None:
            before.after = after
