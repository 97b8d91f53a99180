"""The metadata store of another process of this machine, `unix:PATH`: the five methods, over its socket.

What may be repeated (reading, granting, renewing, revoking) is asked again on another connection until its time is
over; a commit is sent once, and without an answer its outcome is `Unknown`. While nobody listens at the path, requests
wait for that, as long as a request may take.

Each new connection says which cluster's store it is, and at which revision. Another cluster's, or one at a lower
revision than was known, has gone back (`StoreWentBack`), and nothing is asked of it any more. A store that went back
and has come further since is found by what it holds (lineage.py), as with etcd.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Final

from odradek.broker.cluster.socket_store.connection import Connection, ConnectionLost, connect
from odradek.broker.cluster.socket_store.messages import Kind, Welcome, decode_snapshot, encode_commit
from odradek.broker.cluster.socket_store.wire import Packer, Unpacker
from odradek.broker.cluster.store import (
    Change,
    Lease,
    LeaseLost,
    Snapshot,
    StoreClosed,
    StoreWentBack,
    Txn,
    Unknown,
    Unreachable,
    check_size,
)
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

RETRY_MS: Final = 20.0
WATCH_RETRY_MS: Final = 100.0


class SocketLease:
    """A lease that lapses when it is not renewed."""

    __slots__ = ("_is_late", "_store", "lapses", "lease_id", "ttl_ms")

    def __init__(self, store: "SocketStore", lease_id: int, ttl_ms: int) -> None:
        self._store = store
        self.lease_id = lease_id
        self.ttl_ms = ttl_ms
        self.lapses = True
        self._is_late = False  # the last renewal was not answered in time

    async def renew(self) -> None:
        """Without an answer it raises in time for others before the end: after a quarter of the lease's time, and
        after half of it when the one before was not answered."""
        limit_ms = self.ttl_ms / (2 if self._is_late else 4)
        self._is_late = True
        try:
            await self._store.ask(Kind.RENEW, Packer().u64(self.lease_id).body(), limit_ms)
        except LeaseLost:
            raise LeaseLost(f"lease {self.lease_id:x} has ended") from None
        self._is_late = False

    async def revoke(self) -> None:
        await self._store.ask(Kind.REVOKE, Packer().u64(self.lease_id).body())


class SocketStore:
    """A `MetadataStore` for the brokers of one machine."""

    def __init__(self, environment: Environment, path: str, request_timeout_ms: float) -> None:
        self._environment = environment
        self._path = path
        self._request_timeout_ms = request_timeout_ms
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._cluster_id: str = ""  # empty: not known
        self._revision = 0  # the newest that any answer has named
        self._went_back: StoreWentBack | None = None
        self._closed = asyncio.Event()

    async def read(self, prefix: str) -> Snapshot:
        snapshot = decode_snapshot(await self.ask(Kind.READ, Packer().text(prefix).body()))
        self._revision = max(self._revision, snapshot.revision)
        return snapshot

    async def commit(self, txn: Txn) -> int:
        self._check_open()
        check_size(txn)
        lease_id = 0 if txn.lease is None else txn.lease.lease_id
        answer = await self._ask(Kind.COMMIT, encode_commit(txn, lease_id), self._request_timeout_ms, is_repeated=False)
        revision = Unpacker(answer).u64()
        self._revision = max(self._revision, revision)
        return revision

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        is_first, is_told = True, False
        while not self._has_ended():
            try:
                connection = await self._connected(self._deadline_ms(self._request_timeout_ms))
                if max(self._revision, connection.welcome.revision) < after:
                    raise self._gone_back(f"it is at revision {connection.welcome.revision}, and was at {after} before")
                feed = connection.watch(prefix, after)
                try:
                    if not is_first:
                        yield Change(after, ())
                    if is_told:
                        logger.info("changes of the metadata after revision %d come again", after)
                    is_first = is_told = False
                    while True:
                        change = await feed.take()
                        self._revision = max(self._revision, change.revision)
                        after = change.revision
                        yield change
                        if self._has_ended():
                            return
                finally:
                    feed.close()
            except StoreClosed:
                return
            except (ConnectionLost, OSError) as error:
                if self._has_ended():
                    return
                if not is_told:
                    is_told = True
                    logger.warning("changes of the metadata after revision %d do not come: %s", after, error)
            await self._pause(WATCH_RETRY_MS)

    async def lease(self, ttl_ms: int) -> Lease:
        unpacker = Unpacker(await self.ask(Kind.GRANT, Packer().u32(ttl_ms).body()))
        return SocketLease(self, unpacker.u64(), unpacker.u32())

    async def close(self) -> None:
        self._closed.set()
        if self._connection is not None:
            self._connection.close()

    # -- asking ---------------------------------------------------------------------------------------------------

    async def ask(self, kind: Kind, body: bytes, timeout_ms: float | None = None) -> bytes:
        """What may be repeated. Raises StoreClosed, StoreWentBack, OSError, and what the server answers."""
        limit_ms = self._request_timeout_ms if timeout_ms is None else min(timeout_ms, self._request_timeout_ms)
        return await self._ask(kind, body, limit_ms, is_repeated=True)

    async def _ask(self, kind: Kind, body: bytes, timeout_ms: float, *, is_repeated: bool) -> bytes:
        deadline_ms = self._deadline_ms(timeout_ms)
        while True:
            connection = await self._connected(deadline_ms)
            left_ms = deadline_ms - self._environment.monotonic_ms()
            try:
                async with asyncio.timeout(max(0.001, left_ms / 1000.0)):
                    return await connection.ask(kind, body)
            except TimeoutError:
                self._check_open()
                raise Unknown(f"the metadata store at {self._path} gave no answer within {timeout_ms:.0f} ms") from None
            except ConnectionLost as error:
                self._check_open()
                if not is_repeated:
                    raise Unknown(f"the metadata store at {self._path} gave no answer: {error}") from None

    async def _connected(self, deadline_ms: float) -> Connection:
        """Raises Unreachable after the deadline, StoreRefused, StoreWentBack, StoreClosed."""
        while True:
            self._check_open()
            if self._went_back is not None:
                raise self._went_back
            if (connection := self._connection) is not None and not connection.is_lost:
                return connection
            try:
                async with asyncio.timeout(max(0.001, (deadline_ms - self._environment.monotonic_ms()) / 1000.0)):
                    async with self._connecting:
                        if self._connection is connection:  # nobody has connected while we waited
                            await self._connect()
                        continue
            except (TimeoutError, ConnectionLost, OSError) as error:
                self._check_open()
                if isinstance(error, PermissionError):
                    raise Unreachable(
                        f"the metadata store at {self._path} may not be used by this user: run it as the one who "
                        "runs the cluster"
                    ) from error
                if self._environment.monotonic_ms() + RETRY_MS >= deadline_ms or not _is_worth_repeating(error):
                    raise _unreachable(self._path, error) from None
            await self._pause(RETRY_MS)

    async def _connect(self) -> None:
        connection = await connect(self._path, self._environment.loop)
        if self._has_ended():
            connection.close()
            raise StoreClosed("the metadata store is closed")
        try:
            self._compare(connection.welcome)
        except StoreWentBack:
            connection.close()
            raise
        self._connection = connection

    def _compare(self, welcome: Welcome) -> None:
        """That it is the store that was known. Raises StoreWentBack."""
        if self._cluster_id and welcome.cluster_id != self._cluster_id:
            raise self._gone_back(
                f"it belonged to cluster {self._cluster_id}, and belongs to {welcome.cluster_id or 'none'}"
            )
        if welcome.revision < self._revision:
            raise self._gone_back(f"it is at revision {welcome.revision}, and was at {self._revision} before")
        self._cluster_id = welcome.cluster_id
        self._revision = welcome.revision

    def _gone_back(self, why: str) -> StoreWentBack:
        """From now on nothing is asked of it."""
        self._went_back = StoreWentBack(f"the metadata store at {self._path} is another one than before: {why}")
        return self._went_back

    # -- below ----------------------------------------------------------------------------------------------------

    def _deadline_ms(self, timeout_ms: float) -> float:
        return self._environment.monotonic_ms() + timeout_ms

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise StoreClosed("the metadata store is closed")

    def _has_ended(self) -> bool:
        return self._closed.is_set()

    async def _pause(self, pause_ms: float) -> None:
        try:
            async with asyncio.timeout(pause_ms / 1000.0):
                await self._closed.wait()
        except TimeoutError:
            return


def _is_worth_repeating(error: Exception) -> bool:
    """Whether it may go otherwise in a moment: nobody listens yet, or again, or has no time for us."""
    return isinstance(error, TimeoutError | ConnectionLost | FileNotFoundError | ConnectionError | BlockingIOError)


def _unreachable(path: str, error: Exception) -> OSError:
    """What is told of an attempt that brought no connection: a refusal as it is."""
    if isinstance(error, OSError) and type(error).__module__ != "builtins":
        return error
    why = "nobody listens there" if isinstance(error, FileNotFoundError | ConnectionRefusedError) else str(error)
    return Unreachable(f"the metadata store at {path} is not reached: {why or 'it does not answer'}")
