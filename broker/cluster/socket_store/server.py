"""Serves the store of this process to others on a Unix socket.

**Leases.** A lost connection ends none: the broker connects again, and renews. A lease ends when its time is over, when
it is revoked, or when whoever runs the server has learned that the process which was granted it is gone
(`process_ended`). Its keys go by a commit as any other; where that fails, for a device that is full, it is tried again
until it is done.

**Nothing quick waits for the device.** Renewals touch no store. Reads and watches go by what the store has in memory,
while a commit is being synced by a helper thread.

The store is its owner's, who closes it after the server.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from typing import Final

from odradek.broker.cluster.keys import CLUSTER_KEY, decode_cluster
from odradek.broker.cluster.socket_store.address import remove_socket
from odradek.broker.cluster.socket_store.lease_table import BEAT_MS, LeaseTable
from odradek.broker.cluster.socket_store.messages import VERSION, Welcome
from odradek.broker.cluster.socket_store.session import Session
from odradek.broker.cluster.store import Lease, LeaseLost, MetadataStore, StoreClosed, Txn
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

RETRY_MS: Final = 200.0
LEASE_ID_BYTES: Final = 8


@dataclass(slots=True)
class _Held:
    """A lease of the store, for the process that was granted it."""

    lease: Lease
    pid: int


class StoreServer:
    """See the module. All of it in the loop's thread."""

    def __init__(
        self, store: MetadataStore, environment: Environment, path: str, *, user_id: int | None = None
    ) -> None:
        """`store`: one whose leases end with this process. `path`: of the socket, for messages and its removal.
        `user_id`: whose processes may connect; this process's by default."""
        self.store = store
        self.path = path
        self.user_id = os.geteuid() if user_id is None else user_id
        self.tasks = Tasks(environment.loop)
        self.sessions: dict[Session, None] = {}
        self.on_command: Callable[[str], AsyncGenerator[str]] | None = None
        """Does what clients ask of whoever runs the server, and tells lines. It may raise CommandRefused."""
        self._environment = environment
        self._leases = LeaseTable(environment.lease_clock_ms())
        self._held: dict[int, _Held] = {}
        self._server: asyncio.AbstractServer | None = None

    @property
    def address(self) -> str:
        """As `metadata.store` has it."""
        return f"unix:{self.path}"

    async def start(self, sock: socket.socket) -> None:
        """Answers on this socket, which listens already, and is closed by `close`."""
        self._server = await self._environment.loop.create_unix_server(lambda: Session(self), sock=sock)
        self.tasks.start(self._beat(), "end leases")

    async def close(self) -> None:
        """Clients are cut off; commits that have begun are the store's to end."""
        if self._server is not None:
            self._server.close()
        for session in list(self.sessions):
            session.transport.abort()
        await self.tasks.close()
        remove_socket(self.path)

    # -- for sessions ---------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Before anything is done in a turn of the loop: this process may have stood still."""
        if self._leases.look(self._environment.lease_clock_ms()):
            logger.warning("this process has stood still, and all leases have their full time again")

    async def welcome(self) -> Welcome:
        snapshot = await self.store.read(CLUSTER_KEY)
        entry = snapshot.entries.get(CLUSTER_KEY)
        return Welcome(VERSION, "" if entry is None else decode_cluster(entry.value), snapshot.revision)

    async def commit(self, txn: Txn, lease_id: int) -> int:
        """Raises as the store does."""
        if lease_id:
            held = self._held.get(lease_id)
            if held is None:
                raise LeaseLost(f"lease {lease_id:x} has ended")
            txn = replace(txn, lease=held.lease)
        return await self.store.commit(txn)

    async def grant(self, ttl_ms: int, pid: int) -> int:
        """The id has not been given out by any server of this store before: a client that comes from an older one
        renews nobody else's."""
        lease = await self.store.lease(ttl_ms)
        lease_id = int.from_bytes(self._environment.random_bytes(LEASE_ID_BYTES)) | 1
        self._held[lease_id] = _Held(lease, pid)
        self._leases.grant(lease_id, ttl_ms, self._environment.lease_clock_ms())
        return lease_id

    def renew(self, lease_id: int) -> bool:
        """Whether it is there to be renewed."""
        return self._leases.renew(lease_id, self._environment.lease_clock_ms())

    async def revoke(self, lease_id: int) -> None:
        """Raises OSError, and then it is tried again without the caller."""
        self._leases.end(lease_id)
        held = self._held.pop(lease_id, None)
        if held is None:
            return
        try:
            await held.lease.revoke()
        except OSError:
            self._end(held)
            raise

    # -- leases that nobody gives back ------------------------------------------------------------------------------

    def process_ended(self, pid: int) -> None:
        """The process is gone, as its parent has learned: what it has sent is not carried out any more, and its leases
        end."""
        for session in [session for session in self.sessions if session.peer.pid == pid]:
            session.transport.abort()
        for lease_id in [lease_id for lease_id, held in self._held.items() if held.pid == pid]:
            self._leases.end(lease_id)
            self._end(self._held.pop(lease_id))

    def _end(self, held: _Held) -> None:
        self.tasks.start(self._ended(held), "end a lease")

    async def _ended(self, held: _Held) -> None:
        """Returns when the keys of the lease are gone."""
        is_said = False
        while True:
            try:
                await held.lease.revoke()
                return
            except StoreClosed:
                return
            except OSError as error:
                if not is_said:
                    is_said = True
                    logger.error(
                        "the registration of process %d, which is over, cannot be deleted, which is tried again: %s",
                        held.pid,
                        error,
                    )
            await self._environment.sleep(RETRY_MS)

    async def _beat(self) -> None:
        while True:
            await self._environment.sleep(BEAT_MS)
            self.look()
            for lease_id in self._leases.take_ended(self._environment.lease_clock_ms()):
                held = self._held.pop(lease_id)
                logger.warning("process %d has not renewed its lease in time", held.pid)
                self._end(held)
