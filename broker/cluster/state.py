"""What a metadata store in this process knows: entries, leases and recent changes. Pure.

`memory` and `embedded` put their own idea of durability around it. A commit goes in two steps: `prepare` checks it and
says what it would change, `apply` makes that true; between the two the embedded store writes to disk.

Beside the dict of entries stands the sorted list of its keys, so that reading a prefix costs what it finds; putting a
new key among 100,000 moves at most 800 KB of pointers, some 20 µs.
"""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

from odradek.broker.cluster.store import Change, Compacted, Conflict, Entry, Event, LeaseLost, Snapshot, Txn, check_size

HISTORY_CHANGES_MAX = 10_000
HISTORY_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Prepared:
    """A commit that was checked and is not yet applied. `lease_id` 0: without a lease, as all of `lasting` are."""

    change: Change
    lease_id: int = 0
    lasting: frozenset[str] = frozenset()

    @property
    def leased(self) -> frozenset[str]:
        """The keys that are put under the lease."""
        if not self.lease_id:
            return frozenset()
        return frozenset(event.key for event in self.change.events if event.value is not None) - self.lasting


class State:
    """Keys, values, leases, and the changes that a watcher may still ask for."""

    __slots__ = (
        "_compacted",
        "_granted",
        "_history",
        "_history_bytes",
        "_keys",
        "_last_lease_id",
        "_leased",
        "_leases",
        "entries",
        "revision",
    )

    def __init__(self, entries: dict[str, Entry] | None = None, revision: int = 0) -> None:
        self.entries: dict[str, Entry] = {} if entries is None else entries
        self._keys = sorted(self.entries)
        self.revision = revision
        self._leased: dict[str, int] = {}  # key -> lease id
        self._leases: dict[int, dict[str, None]] = {}  # lease id -> its keys, in order
        self._granted: dict[int, None] = {}  # leases under which may be put
        self._last_lease_id = 0
        self._history: deque[Change] = deque()
        self._history_bytes = 0
        self._compacted = revision  # changes up to here are no longer kept

    # -- reading ------------------------------------------------------------------------------------------------

    def read(self, prefix: str) -> Snapshot:
        keys = self._keys
        entries: dict[str, Entry] = {}
        for position in range(bisect_left(keys, prefix), len(keys)):
            key = keys[position]
            if not key.startswith(prefix):
                break
            entries[key] = self.entries[key]
        return Snapshot(self.revision, entries)

    def changes(self, prefix: str, after: int) -> list[Change]:
        """What happened under `prefix` after revision `after`. Raises Compacted."""
        if after < self._compacted:
            raise Compacted(
                f"changes up to revision {self._compacted} are no longer kept; asked for those after {after}"
            )
        changes: list[Change] = []
        # One revision is one change, so the position follows from the revision; a deque is quick near its ends.
        for index in range(after - self._compacted, len(self._history)):
            change = self._history[index]
            events = tuple(event for event in change.events if event.key.startswith(prefix))
            if events:
                changes.append(change if len(events) == len(change.events) else Change(change.revision, events))
        return changes

    def is_leased(self, key: str) -> bool:
        return key in self._leased

    # -- changing -----------------------------------------------------------------------------------------------

    def prepare(self, txn: Txn) -> Prepared | None:
        """What the commit would change, None for nothing. Raises Conflict, TooLarge, LeaseLost, ValueError."""
        check_size(txn)
        for key, revision in txn.expect.items():
            entry = self.entries.get(key)
            found = 0 if entry is None else entry.revision
            if found != revision:
                raise Conflict(f"{key} is at revision {found}, not at {revision} (0: absent)")
        for key, revision in txn.since.items():
            entry = self.entries.get(key)
            if entry is None or entry.revision < revision:
                found = 0 if entry is None else entry.revision
                raise Conflict(f"{key} is at revision {found}, and not at {revision} or later (0: absent)")
        lease_id = 0
        if txn.lease is not None:
            lease_id = txn.lease.lease_id
            if lease_id not in self._granted:
                raise LeaseLost(f"lease {lease_id} has ended")
        events = [Event(key, value) for key, value in (*txn.put.items(), *txn.lasting.items())]
        events += [Event(key, None) for key in txn.delete if key in self.entries]
        if not events:
            return None
        return Prepared(Change(self.revision + 1, tuple(events)), lease_id, frozenset(txn.lasting))

    def prepare_end(self, lease_id: int) -> Prepared | None:
        """The change that deletes all keys of a lease, None when it has none."""
        keys = self._leases.get(lease_id, {})
        return Prepared(Change(self.revision + 1, tuple(Event(key, None) for key in keys))) if keys else None

    def apply(self, prepared: Prepared) -> None:
        """Makes the prepared change true. Nothing else may have been applied in between."""
        change = prepared.change
        assert change.revision == self.revision + 1, (change.revision, self.revision)
        self.revision = change.revision
        leased = prepared.leased
        for event in change.events:
            key, value = event.key, event.value
            if (lease_id := self._leased.pop(key, 0)) != 0:
                del self._leases[lease_id][key]
                if not self._leases[lease_id] and lease_id not in self._granted:
                    del self._leases[lease_id]
            if value is None:
                del self.entries[key]
                del self._keys[bisect_left(self._keys, key)]
                continue
            if key not in self.entries:
                insort(self._keys, key)
            self.entries[key] = Entry(value, change.revision)
            if key in leased:
                self._leased[key] = prepared.lease_id
                self._leases.setdefault(prepared.lease_id, {})[key] = None
        self._remember(change)

    def _remember(self, change: Change) -> None:
        self._history.append(change)
        self._history_bytes += _size_bytes(change)
        while len(self._history) > HISTORY_CHANGES_MAX or self._history_bytes > HISTORY_BYTES_MAX:
            forgotten = self._history.popleft()
            self._history_bytes -= _size_bytes(forgotten)
            self._compacted = forgotten.revision

    # -- leases -------------------------------------------------------------------------------------------------

    def grant(self) -> int:
        """A new lease, without keys. The id is unique in this process."""
        self._last_lease_id += 1
        self._granted[self._last_lease_id] = None
        return self._last_lease_id

    def is_granted(self, lease_id: int) -> bool:
        return lease_id in self._granted

    def end_lease(self, lease_id: int) -> None:
        """From now on nobody may put under the lease. Its keys go with the change that `prepare_end` prepares."""
        self._granted.pop(lease_id, None)


def _size_bytes(change: Change) -> int:
    return sum(len(event.key) + len(event.value or b"") for event in change.events)
