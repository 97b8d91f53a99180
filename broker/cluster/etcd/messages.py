"""The requests that we send to etcd and the answers that we read, field by field. Pure.

Numbers of fields and names of methods are those of etcd's public API (rpc.proto and kv.proto, version 3). They never
change: etcd adds fields and leaves the old ones where they are.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from odradek.broker.cluster.etcd.wire import Fields, blob, integer, message, present

RANGE: Final = "/etcdserverpb.KV/Range"
TXN: Final = "/etcdserverpb.KV/Txn"
WATCH: Final = "/etcdserverpb.Watch/Watch"
LEASE_GRANT: Final = "/etcdserverpb.Lease/LeaseGrant"
LEASE_REVOKE: Final = "/etcdserverpb.Lease/LeaseRevoke"
LEASE_KEEP_ALIVE: Final = "/etcdserverpb.Lease/LeaseKeepAlive"
AUTHENTICATE: Final = "/etcdserverpb.Auth/Authenticate"
STATUS: Final = "/etcdserverpb.Maintenance/Status"

_COMPARE_EQUAL, _COMPARE_GREATER = 0, 1
_COMPARE_MOD = 2


class KeyValue(NamedTuple):
    """One key; `revision` is that of its last write, or of its deletion."""

    key: bytes
    value: bytes
    revision: int


class RangeReply(NamedTuple):
    """A page of keys in order; `revision` is the store's."""

    revision: int
    keys: list[KeyValue]
    has_more: bool


class TxnReply(NamedTuple):
    """`revision` is the transaction's if it changed anything, else the store's."""

    revision: int
    has_succeeded: bool
    deleted: int


class WatchEvent(NamedTuple):
    """One key put, or deleted."""

    is_delete: bool
    entry: KeyValue


class WatchReply(NamedTuple):
    """`is_fragment`: the rest follows in the next replies. `compact_revision`, if any: changes before it are gone."""

    is_created: bool
    is_cancelled: bool
    is_fragment: bool
    compact_revision: int
    cancel_reason: str
    events: list[WatchEvent]


class LeaseReply(NamedTuple):
    """The id, and for how many seconds from now on; 0 or less: there is no such lease."""

    lease_id: int
    ttl_s: int


def prefix_end(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`, which is text, so no byte of it is 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


# -- keys and values ------------------------------------------------------------------------------------------------


def range_request(key: bytes, end: bytes, limit: int, revision: int) -> bytes:
    """Keys from `key` up to, and without, `end`, as of `revision`; 0: as of now."""
    return blob(1, key) + blob(2, end) + integer(3, limit) + integer(4, revision)


def decode_range(data: bytes) -> RangeReply:
    fields = Fields(data)
    keys = [_key_value(Fields(body)) for body in fields.blobs(2)]
    return RangeReply(fields.fields(1).integer(3), keys, fields.flag(3))


def _key_value(fields: Fields) -> KeyValue:
    return KeyValue(fields.blob(1), fields.blob(5), fields.integer(3))


def txn_request(
    expect: Iterable[tuple[bytes, int]],
    put: Iterable[tuple[bytes, bytes, int]],
    delete: Iterable[bytes],
    look_at: bytes,
    since: Iterable[tuple[bytes, int]] = (),
) -> bytes:
    """Puts and deletes, in this order, if each key of `expect` was last written at its revision (0: is absent), and
    each of `since` at its revision or later. `put` has each with the id of its lease, 0 without one.

    Without any of them `look_at` is counted. It must be a request of its own, for etcd answers a transaction that asks
    for nothing from what the member happens to know, be it outdated.
    """
    compares = [_compare(_COMPARE_EQUAL, key, revision) for key, revision in expect]
    compares += [_compare(_COMPARE_GREATER, key, revision - 1) for key, revision in since]
    writes = [_operation(2, blob(1, key) + blob(2, value) + integer(3, lease_id)) for key, value, lease_id in put]
    writes += [_operation(3, blob(1, key)) for key in delete]
    if not writes:
        writes = [_operation(1, blob(1, look_at) + integer(9, 1))]
    return b"".join((*compares, *writes))


def _compare(result: int, key: bytes, revision: int) -> bytes:
    """A condition on the revision at which a key was last written, which is field 1 of a transaction."""
    return message(1, integer(1, result) + integer(2, _COMPARE_MOD) + blob(3, key) + present(6, revision))


def _operation(number: int, request: bytes) -> bytes:
    """What is done on success, which is field 2 of a transaction."""
    return message(2, message(number, request))


def decode_txn(data: bytes) -> TxnReply:
    fields = Fields(data)
    deleted = sum(Fields(body).fields(3).integer(2) for body in fields.blobs(3))
    return TxnReply(fields.fields(1).integer(3), fields.flag(2), deleted)


# -- watching -------------------------------------------------------------------------------------------------------


def watch_request(key: bytes, end: bytes, start_revision: int) -> bytes:
    """Every change from `start_revision` on. What is too large for one reply may come in fragments."""
    return message(1, blob(1, key) + blob(2, end) + integer(3, start_revision) + integer(8, 1))


def progress_request() -> bytes:
    """Asks for a sign of life."""
    return message(3, b"")


def decode_watch(data: bytes) -> WatchReply:
    fields = Fields(data)
    events = [_event(Fields(body)) for body in fields.blobs(11)]
    return WatchReply(fields.flag(3), fields.flag(4), fields.flag(7), fields.integer(5), fields.text(6), events)


def _event(fields: Fields) -> WatchEvent:
    return WatchEvent(fields.flag(1), _key_value(fields.fields(2)))


# -- leases ---------------------------------------------------------------------------------------------------------


def lease_grant_request(ttl_s: int) -> bytes:
    return integer(1, ttl_s)


def lease_request(lease_id: int) -> bytes:
    """To revoke, or to keep alive."""
    return integer(1, lease_id)


def decode_lease(data: bytes) -> LeaseReply:
    """The answer to a grant or to a keep-alive."""
    fields = Fields(data)
    return LeaseReply(fields.integer(2), fields.integer(3))


# -- who we are, and who they are -----------------------------------------------------------------------------------


def authenticate_request(username: str, password: str) -> bytes:
    return blob(1, username.encode()) + blob(2, password.encode())


def decode_token(data: bytes) -> str:
    return Fields(data).text(2)


def decode_cluster_id(data: bytes) -> int:
    """Every answer begins with it."""
    return Fields(data).fields(1).integer(1)
