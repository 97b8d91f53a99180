"""What the server of a store and its clients say to each other. Pure.

A client begins with HELLO and is answered WELCOME, or REFUSED and the end of the connection. Then it asks, and may ask
on before it is answered: answers come in the order in which they are ready. HELLO, WELCOME and REFUSED keep their form
in every version, so that two versions can say that they do not fit together.

    HELLO    text "odradek store" | u32 version                WELCOME  u32 version | text cluster id (empty: none yet)
                                                                        | u64 revision
    READ     text prefix                                       SNAPSHOT u64 revision | entries
    COMMIT   u64 lease id (0: none) | expect | put | lasting   REVISION u64 revision
             | since | delete
    WATCH    text prefix | u64 after | u32 how many changes    CHANGE   u64 revision | events
    MORE     u32 how many more changes of this watch
    UNWATCH
    GRANT    u32 ttl_ms                                        GRANTED  u64 lease id | u32 ttl_ms
    RENEW    u64 lease id                                      DONE
    REVOKE   u64 lease id                                      DONE
    COMMAND  text, for who runs the server                     LINE     text, any number of them before DONE
                                                               ERROR    u8 kind | u32 errno | text, in place of any
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from odradek.broker.cluster.socket_store.wire import MalformedFrame, Packer, Unpacker
from odradek.broker.cluster.store import (
    Change,
    Compacted,
    Conflict,
    Entry,
    Event,
    LeaseLost,
    Snapshot,
    StoreDamaged,
    StoreRefused,
    StoreWentBack,
    Superseded,
    TooLarge,
    Txn,
    Unknown,
    Unreachable,
)

VERSION: Final = 1
GREETING: Final = "odradek store"


class Kind(IntEnum):
    """Of a frame; a number never changes its meaning."""

    HELLO = 1
    READ = 2
    COMMIT = 3
    WATCH = 4
    MORE = 5
    UNWATCH = 6
    GRANT = 7
    RENEW = 8
    REVOKE = 9
    COMMAND = 10
    WELCOME = 64
    REFUSED = 65
    SNAPSHOT = 66
    REVISION = 67
    CHANGE = 68
    GRANTED = 69
    DONE = 70
    ERROR = 71
    LINE = 72


class CommandRefused(Exception):
    """Who runs the server does not do what was asked for; the text says why."""


_ERRORS: Final[Mapping[int, Callable[[str], Exception]]] = {
    1: Conflict,
    2: TooLarge,
    3: LeaseLost,
    4: Compacted,
    5: StoreWentBack,
    6: Superseded,
    7: Unreachable,
    8: Unknown,
    9: StoreRefused,
    10: StoreDamaged,
    11: ValueError,
    12: CommandRefused,
}
"""By the number that stands for each on the wire."""
_NUMBERS: Final[Mapping[Callable[[str], Exception], int]] = {error: number for number, error in _ERRORS.items()}
_UNNAMED: Final = 0
"""Any other error: whether something was changed is not known."""


# ------------------------------------------------------------------------------------------------------------ greeting
class Welcome(NamedTuple):
    """What the server says of itself. `cluster_id`: empty where the store has no cluster yet."""

    version: int
    cluster_id: str
    revision: int


def encode_hello() -> bytes:
    return Packer().text(GREETING).u32(VERSION).body()


def decode_hello(body: bytes) -> int:
    """The client's version. Raises MalformedFrame for what is no client of ours."""
    unpacker = Unpacker(body)
    if unpacker.text() != GREETING:
        raise MalformedFrame("it is no greeting of a client")
    return unpacker.u32()


def encode_welcome(welcome: Welcome) -> bytes:
    return Packer().u32(welcome.version).text(welcome.cluster_id).u64(welcome.revision).body()


def decode_welcome(body: bytes) -> Welcome:
    unpacker = Unpacker(body)
    return Welcome(unpacker.u32(), unpacker.text(), unpacker.u64())


# -------------------------------------------------------------------------------------------------------------- errors
def encode_error(error: Exception) -> bytes:
    """Its kind is kept where it is one of the store's. What is not may have changed something."""
    number = _NUMBERS.get(type(error), _UNNAMED)
    return Packer().u8(number).u32(_errno(error)).text(str(error) or repr(error)).body()


def _errno(error: Exception) -> int:
    """0: it has none that a frame has room for."""
    number = error.errno if isinstance(error, OSError) else None
    return 0 if number is None or number < 0 else number


def decode_error(body: bytes) -> Exception:
    unpacker = Unpacker(body)
    number, code, text = unpacker.u8(), unpacker.u32(), unpacker.text()
    unpacker.end()
    error = _ERRORS.get(number, Unknown)(text)
    if isinstance(error, Unknown) and code:
        error.errno, error.strerror = code, text
    return error


# ------------------------------------------------------------------------------------------------------------- a commit
def encode_commit(txn: Txn, lease_id: int) -> bytes:
    packer = Packer().u64(lease_id)
    _pack_revisions(packer, txn.expect)
    _pack_values(packer, txn.put)
    _pack_values(packer, txn.lasting)
    _pack_revisions(packer, txn.since)
    packer.u32(len(txn.delete))
    for key in txn.delete:
        packer.text(key)
    return packer.body()


def decode_commit(body: bytes) -> tuple[Txn, int]:
    """The commit, without its lease, and the id of that one, 0 for none. Raises MalformedFrame."""
    unpacker = Unpacker(body)
    lease_id = unpacker.u64()
    expect, put, lasting = _revisions(unpacker), _values(unpacker), _values(unpacker)
    since, delete = _revisions(unpacker), tuple(unpacker.text() for _ in range(unpacker.u32()))
    unpacker.end()
    return Txn(expect, put, delete, None, lasting, since), lease_id


def _pack_revisions(packer: Packer, revisions: Mapping[str, int]) -> None:
    packer.u32(len(revisions))
    for key, revision in revisions.items():
        packer.text(key).u64(revision)


def _revisions(unpacker: Unpacker) -> dict[str, int]:
    return {unpacker.text(): unpacker.u64() for _ in range(unpacker.u32())}


def _pack_values(packer: Packer, values: Mapping[str, bytes]) -> None:
    packer.u32(len(values))
    for key, value in values.items():
        packer.text(key).blob(value)


def _values(unpacker: Unpacker) -> dict[str, bytes]:
    return {unpacker.text(): unpacker.blob() for _ in range(unpacker.u32())}


# ------------------------------------------------------------------------------------------------ what the store holds
def encode_snapshot(snapshot: Snapshot) -> bytes:
    packer = Packer().u64(snapshot.revision).u32(len(snapshot.entries))
    for key, entry in snapshot.entries.items():
        packer.text(key).u64(entry.revision).blob(entry.value)
    return packer.body()


def decode_snapshot(body: bytes) -> Snapshot:
    unpacker = Unpacker(body)
    revision = unpacker.u64()
    entries: dict[str, Entry] = {}
    for _ in range(unpacker.u32()):
        key, at = unpacker.text(), unpacker.u64()
        entries[key] = Entry(unpacker.blob(), at)
    unpacker.end()
    return Snapshot(revision, entries)


def encode_change(change: Change) -> bytes:
    packer = Packer().u64(change.revision).u32(len(change.events))
    for event in change.events:
        packer.text(event.key).u8(event.value is not None)
        if event.value is not None:
            packer.blob(event.value)
    return packer.body()


def decode_change(body: bytes) -> Change:
    unpacker = Unpacker(body)
    revision = unpacker.u64()
    events: list[Event] = []
    for _ in range(unpacker.u32()):
        key = unpacker.text()
        events.append(Event(key, unpacker.blob() if unpacker.u8() else None))
    unpacker.end()
    return Change(revision, tuple(events))
