"""The metadata store on etcd: the five methods, each made of etcd's own transactions, watches and leases.

Every key stands under the prefix of `metadata.store`; no other key is read or written, so etcd may serve others, too. A
revision is etcd's, and grows with what others write as well. Two things follow from it.

* The revision that a commit which changes nothing answers is the newest of *this prefix* that the store has met, by
  reading, writing or watching. etcd's own may be another program's, and no watch here would ever come that far.
* etcd may compact its history at any time; a watch that fell behind is told so (`Compacted`).

Answers never name a revision below one that was known when they were asked for, since reads are linearizable. If one
does, etcd has another history than before (`StoreWentBack`). A watch would simply wait there, so it asks first. An etcd
that others have moved beyond a known revision is not noticed here, but by what it holds (lineage.py).

Reads page by key at the revision of their first page. What etcd lets one user do with the prefix
is reading and writing it; nothing else is needed.
"""

from collections.abc import AsyncGenerator
from typing import Final

from odradek.broker.cluster.etcd.certificates import load_certificates
from odradek.broker.cluster.etcd.client import Client, Credentials, EtcdRefusal
from odradek.broker.cluster.etcd.lease import grant
from odradek.broker.cluster.etcd.members import Members
from odradek.broker.cluster.etcd.messages import (
    RANGE,
    TXN,
    KeyValue,
    RangeReply,
    WatchEvent,
    decode_range,
    decode_txn,
    prefix_end,
    range_request,
    txn_request,
)
from odradek.broker.cluster.etcd.watch import Watches
from odradek.broker.cluster.store import (
    Change,
    Conflict,
    Entry,
    Event,
    Lease,
    LeaseLost,
    Snapshot,
    StoreRefused,
    StoreWentBack,
    Txn,
    check_size,
)
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.store_address import parse_store_address
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

PAGE_KEYS: Final = 1000
PAGE_BYTES: Final = 1024 * 1024
"""What a page of keys should come to; the next one is made smaller or larger by what the last one was."""
READ_ATTEMPTS: Final = 5
_CODEC: Final = ("utf-8", "surrogateescape")
"""Whatever bytes others may have written as keys under our prefix, they can be read and named."""


class EtcdStore:
    """A `MetadataStore` for the brokers of many processes."""

    def __init__(self, client: Client, prefix: str) -> None:
        """`prefix`: as in `StoreAddress`."""
        self._client = client
        self._prefix = prefix.encode()
        self._tasks = Tasks(client.environment.loop)
        self._watches = Watches(client, self._tasks, self._check_history)
        self._revision = 0  # the newest of this prefix that we know
        self._newest = 0  # the newest of etcd that any answer has named

    async def read(self, prefix: str) -> Snapshot:
        for _ in range(READ_ATTEMPTS):
            try:
                return await self._read(prefix)
            except EtcdRefusal as refusal:
                if "compacted" not in refusal.details:
                    raise
        raise StoreRefused(
            f"etcd compacts its history faster than {prefix} can be read: let it keep some minutes of it"
        )

    async def _read(self, prefix: str) -> Snapshot:
        start, end = self._range(prefix)
        entries: dict[str, Entry] = {}
        revision, limit = 0, PAGE_KEYS
        while True:
            known = self._newest
            page = decode_range(await self._client.repeatedly(RANGE, range_request(start, end, limit, revision)))
            self._met(page.revision, known)
            revision = revision or page.revision
            for found in page.keys:
                entries[self._name(found.key)] = Entry(found.value, found.revision)
                self._revision = max(self._revision, found.revision)
            if not page.has_more or not page.keys:
                return Snapshot(revision, entries)
            start = page.keys[-1].key + b"\0"
            limit = _next_limit(limit, page)

    async def commit(self, txn: Txn) -> int:
        self._client.check_open()
        check_size(txn)
        lease_id = 0 if txn.lease is None else txn.lease.lease_id
        request = txn_request(
            [(self._key(key), revision) for key, revision in txn.expect.items()],
            [
                *((self._key(key), value, lease_id) for key, value in txn.put.items()),
                *((self._key(key), value, 0) for key, value in txn.lasting.items()),
            ],
            [self._key(key) for key in txn.delete],
            look_at=self._key("/"),
            since=[(self._key(key), revision) for key, revision in txn.since.items()],
        )
        known = self._newest
        try:
            reply = decode_txn(await self._client.once(TXN, request))
        except EtcdRefusal as refusal:
            if refusal.code == "NOT_FOUND" and txn.lease is not None:
                raise LeaseLost(f"lease {txn.lease.lease_id:x} has ended") from None
            raise
        self._met(reply.revision, known)
        if not reply.has_succeeded:
            raise Conflict(f"not every key was as expected (revision, 0: absent): {_listed(txn)}")
        if txn.put or txn.lasting or reply.deleted:
            self._revision = max(self._revision, reply.revision)
            return reply.revision
        return self._revision

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return self._watches.changes(*self._range(prefix), after, self._event)

    async def lease(self, ttl_ms: int) -> Lease:
        return await grant(self._client, ttl_ms)

    async def close(self) -> None:
        self._watches.close()
        await self._tasks.close()
        await self._client.close()

    # -- history ------------------------------------------------------------------------------------------------

    def _met(self, revision: int, known: int) -> None:
        """An answer has named a revision, whose question was asked when `known` had been. Raises StoreWentBack."""
        if revision < known:
            raise StoreWentBack(
                f"etcd is at revision {revision}, and was at {known} before: it was restored from a backup, or emptied"
            )
        self._newest = max(self._newest, revision)

    async def _check_history(self, after: int) -> None:
        """That etcd is still at the revision behind which somebody watches, or beyond. Raises as `read` does."""
        known = max(after, self._newest)
        reply = await self._client.repeatedly(RANGE, range_request(self._key("/"), b"", 1, 0))
        self._met(decode_range(reply).revision, known)

    # -- keys ---------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> bytes:
        assert name.startswith("/"), f"{name!r} would not stand under the prefix but beside it"
        return self._prefix + name.encode(*_CODEC)

    def _name(self, key: bytes) -> str:
        return key[len(self._prefix) :].decode(*_CODEC)

    def _range(self, prefix: str) -> tuple[bytes, bytes]:
        start = self._key(prefix or "/")
        return start, prefix_end(start)

    def _event(self, event: WatchEvent) -> Event:
        entry: KeyValue = event.entry
        self._revision = max(self._revision, entry.revision)
        return Event(self._name(entry.key), None if event.is_delete else entry.value)


def _next_limit(limit: int, page: RangeReply) -> int:
    """How many keys the next page asks for, so that it comes to about PAGE_BYTES."""
    size_bytes = sum(len(found.key) + len(found.value) for found in page.keys)
    return max(1, min(PAGE_KEYS, limit * PAGE_BYTES // max(1, size_bytes)))


def _listed(txn: Txn) -> str:
    first = [f"{key} at {revision}" for key, revision in list(txn.expect.items())[:3]]
    more = len(txn.expect) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


async def open_etcd(environment: Environment, config: BrokerConfig, disk: Disk) -> EtcdStore:
    """The store at `metadata.store`, which must be an etcd address. Nothing is sent yet.

    Raises ConfigError for options that do not fit together and files of the wrong kind, OSError for files that cannot
    be read.
    """
    address = parse_store_address(config.metadata_store)
    assert address.kind == "etcd", address
    certificates = await load_certificates(environment, config, disk)
    username = config.metadata_etcd_username
    credentials = Credentials(username, config.metadata_etcd_password or "") if username else None
    members = Members(address.endpoints, certificates, environment)
    client = Client(members, credentials, environment, config.metadata_request_timeout_ms)
    return EtcdStore(client, address.prefix)
