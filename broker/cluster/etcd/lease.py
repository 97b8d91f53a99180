"""Leases of etcd: keys that vanish unless somebody says in time that they shall stay.

etcd grants whole seconds, and its cluster's election time and a half at least (2 s by default). Renewals have a stream
of their own, which nothing else can hold up (`Member.converse`), and go on with another member when one is gone.
"""

from typing import Final

from odradek.broker.cluster.etcd.client import Client, EtcdRefusal
from odradek.broker.cluster.etcd.messages import (
    LEASE_GRANT,
    LEASE_KEEP_ALIVE,
    LEASE_REVOKE,
    decode_lease,
    lease_grant_request,
    lease_request,
)
from odradek.broker.cluster.store import LeaseLost

_MS_PER_S: Final = 1000


class EtcdLease:
    """A lease that lapses when it is not renewed."""

    __slots__ = ("_client", "_is_late", "lapses", "lease_id", "ttl_ms")

    def __init__(self, client: Client, lease_id: int, ttl_ms: int) -> None:
        self._client = client
        self.lease_id = lease_id
        self.ttl_ms = ttl_ms
        self.lapses = True
        self._is_late = False  # the last renewal was not answered in time

    async def renew(self) -> None:
        """Returns when etcd has answered. Without an answer it raises Unknown in time for others before the end: after
        a quarter of the lease's time, lest one lost packet costs the lease; after one that failed so, after half of it,
        for an etcd that is slow."""
        request, limit_ms = lease_request(self.lease_id), self.ttl_ms / (2 if self._is_late else 4)
        self._is_late = True
        reply = await self._client.repeatedly(LEASE_KEEP_ALIVE, request, limit_ms, is_stream=True)
        self._is_late = False
        if decode_lease(reply).ttl_s <= 0:
            raise LeaseLost(f"lease {self.lease_id:x} has ended")

    async def revoke(self) -> None:
        try:
            await self._client.repeatedly(LEASE_REVOKE, lease_request(self.lease_id))
        except EtcdRefusal as refusal:
            if refusal.code != "NOT_FOUND":
                raise


async def grant(client: Client, ttl_ms: int) -> EtcdLease:
    """A lease of at least this time. One whose answer got lost has no keys, and ends by itself."""
    reply = decode_lease(await client.repeatedly(LEASE_GRANT, lease_grant_request(-(-ttl_ms // _MS_PER_S))))
    return EtcdLease(client, reply.lease_id, reply.ttl_s * _MS_PER_S)
