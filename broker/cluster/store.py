"""The metadata store: a small ordered map of keys with etcd's meaning, behind five methods.

Rules that every store keeps (one suite over all of them: tests/contract/test_store.py):

* A commit is all or nothing, and takes exactly one revision; revisions only grow, over restarts too. A commit that
  changes nothing (it deletes keys that are absent, or has conditions only) takes none and answers the present one.
* `Txn.expect` names the revision at which each key was last written, 0 where it must be absent. One that differs:
  `Conflict`, and nothing happened.
* `Txn.since` names a revision at which each key was last written, or before: one that was written earlier, or is
  absent, is a `Conflict`, too.
* A put without a lease takes the key off the lease under which it stood before.
* A watcher is told of every change after a revision, in order, none merged with another. What it may no longer be
  told, since the store has compacted it away, ends the watch with `Compacted`: read again and compare.
* A watch that lost its way to the store and found it again says so by a change without events, before what comes then:
  another store may stand there.
* Keys under a lease vanish, in one change, when it is revoked or has ended. A lease in a store that lives in this
  process (memory, embedded) ends with the process and not before: there is no network on which a keep-alive gets lost.
* A commit that raised anything other than what is in NOTHING_CHANGED may have happened: read back.

The limits are etcd's with a margin (128 operations, 1.5 MB), so that nothing works here and fails there.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

OPERATIONS_MAX = 100
"""Puts and deletes of one commit together; its conditions are counted apart, with the same limit."""
APART_MAX = 4
"""Puts of `Txn.lasting`, and conditions of `Txn.since`, which are counted by themselves."""
CHUNK_SIZE = OPERATIONS_MAX - 10
"""Keys per commit of what takes several: there must be room for those that guard it."""
COMMIT_BYTES_MAX = 1_000_000
"""Keys and values of one commit."""


class Conflict(Exception):
    """A key was not at the revision that the commit expected. Nothing was changed."""


class Compacted(Exception):
    """The changes asked for are no longer kept: read again, compare, and watch from there."""


class TooLarge(Exception):
    """The commit is over OPERATIONS_MAX or COMMIT_BYTES_MAX. Nothing was changed; split it."""


class LeaseLost(Exception):
    """The lease has ended or was revoked; the keys under it are gone."""


class StoreClosed(Exception):
    """The store was closed."""


class StoreWentBack(Exception):
    """The store is older than it was: restored from a backup, or emptied. What was read from it before is worth
    nothing, and revisions that were given out may be given out again: whoever lives by them has to stop."""


class Superseded(Exception):
    """Another process has become the broker that this one was, and this one changes nothing any more."""


class Unreachable(OSError):
    """No member of the store could be reached. Nothing was sent, so nothing was changed."""


class Unknown(OSError):
    """No answer came, or none that says how it went: what was asked for may have happened, or may happen yet."""


class StoreRefused(OSError):
    """The store said no, and the text says why: credentials, permissions, no space. Nothing was changed."""


class StoreDamaged(Exception):
    """What the store kept can not be read: damaged, or written by a newer version. Nothing was changed."""


NOTHING_CHANGED: Final = (Conflict, TooLarge, LeaseLost, Unreachable, StoreRefused, ValueError)
"""What a commit raises that did not happen, and will not."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, and the revision of the commit that wrote it."""

    value: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All keys with a prefix as of one revision, in order of the keys."""

    revision: int
    entries: dict[str, Entry]


@dataclass(frozen=True, slots=True)
class Event:
    """One key put, or deleted where `value` is None."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did: puts in the order given, then deletions."""

    revision: int
    events: tuple[Event, ...]


class Lease(Protocol):
    """A promise of the store to delete the keys put under it once nobody renews it."""

    @property
    def lease_id(self) -> int: ...

    @property
    def ttl_ms(self) -> int:
        """As granted, which may be longer than asked (etcd grants 2 s at least)."""
        ...

    @property
    def lapses(self) -> bool:
        """Whether it may end while this process lives. Not so in a store that lives in the process."""
        ...

    async def renew(self) -> None:
        """Starts the time anew, as of the moment at which this was called. Raises LeaseLost, StoreClosed, OSError."""
        ...

    async def revoke(self) -> None:
        """Ends the lease and deletes its keys now. No error when it has ended already. Raises StoreClosed, OSError."""
        ...


@dataclass(frozen=True, slots=True)
class Txn:
    """Conditions and changes of one commit. No key may be both put and deleted."""

    expect: Mapping[str, int] = field(default_factory=dict[str, int])
    put: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    delete: tuple[str, ...] = ()
    lease: Lease | None = None
    lasting: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Puts that stand under no lease, whatever `lease` is; APART_MAX of them."""
    since: Mapping[str, int] = field(default_factory=dict[str, int])
    """Keys, each with a revision at which it must have been written, or later; APART_MAX of them."""


class MetadataStore(Protocol):
    """What the cluster knows about itself."""

    async def read(self, prefix: str) -> Snapshot:
        """Every key that begins with `prefix`, at one revision. Raises StoreClosed, StoreWentBack, OSError."""
        ...

    async def commit(self, txn: Txn) -> int:
        """Applies the transaction and returns its revision.

        Raises Conflict, TooLarge, LeaseLost, StoreClosed, ValueError (a key put and deleted, or named twice), OSError,
        of which Unreachable, Unknown and StoreRefused say more. StoreWentBack says that it was done, on another
        history.
        """
        ...

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        """Each change after revision `after`, with its events under `prefix`; changes without any are left out.

        Ends when the store is closed. Raises Compacted, StoreWentBack.
        """
        ...

    async def lease(self, ttl_ms: int) -> Lease:
        """A new lease. Raises StoreClosed, OSError."""
        ...

    async def close(self) -> None:
        """Ends every watch. Later calls raise StoreClosed."""
        ...


def check_size(txn: Txn) -> None:
    """Raises TooLarge with a sentence that says by how much, and ValueError for a key named twice."""
    writes = len(txn.put) + len(txn.delete)
    if writes > OPERATIONS_MAX or len(txn.expect) > OPERATIONS_MAX:
        raise TooLarge(
            f"a commit takes at most {OPERATIONS_MAX} puts and deletes and {OPERATIONS_MAX} conditions; "
            f"this one has {writes} and {len(txn.expect)}"
        )
    assert len(txn.lasting) <= APART_MAX and len(txn.since) <= APART_MAX, "they are few by what they are for"
    size_bytes = sum(_size_bytes(key) for key in (*txn.expect, *txn.delete))
    size_bytes += sum(_size_bytes(key) + len(value) for key, value in txn.put.items())
    if size_bytes > COMMIT_BYTES_MAX:
        raise TooLarge(f"a commit takes at most {COMMIT_BYTES_MAX} bytes; this one has {size_bytes}")
    named = *txn.put, *txn.lasting, *txn.delete
    if len(set(named)) != len(named):
        raise ValueError("a commit names each key once: either put or deleted")


def _size_bytes(key: str) -> int:
    """Of keys that others wrote, too, whose bytes may be no text: those are read, and named, as surrogates."""
    return len(key.encode(errors="surrogateescape"))
