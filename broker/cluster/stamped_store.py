"""The metadata store as one broker's process writes it: each commit carries the lineage (lineage.py), and needs it.

* A commit also puts `/cluster/commits/<id>/<incarnation>`, under no lease.
* It expects that this key is as new as the last commit of this process that was answered, or that was seen. A store
  that was set back meanwhile, to a moment before that one, takes nothing. It looks like any other conflict; so after
  each conflict this key is asked for, and where it is too old the store went back (`StoreWentBack`).
* The first commit of the process also makes it the broker's incarnation, and takes the key of the one before away. So
  nothing that was on its way from that one changes anything any more. A process that still runs when another one has
  begun, on a copy of its data directory, finds that out by its next commit (`Superseded`).

A commit that deletes keys that are not there takes a revision here, for it writes this key.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

from odradek.broker.cluster.keys import CLUSTER_KEY, commit_key, incarnation_key
from odradek.broker.cluster.lineage import Commit, Incarnations, KnownHistory, Lineage, contradiction, encode_commit
from odradek.broker.cluster.store import (
    CHUNK_SIZE,
    Change,
    Conflict,
    Lease,
    MetadataStore,
    Snapshot,
    StoreWentBack,
    Superseded,
    Txn,
)


class StampedStore:
    """A `MetadataStore` over another one, which others may use, too."""

    def __init__(self, store: MetadataStore, node_id: int, incarnation: str) -> None:
        """`incarnation`: a text that no other process has."""
        self._store = store
        self._key = commit_key(node_id, incarnation)
        self._node_id = node_id
        self._incarnation = incarnation
        self._former = Lineage()  # until the first commit: what it expects to find
        self._beginning = asyncio.Lock()
        self._number = 0
        self._newest = 0  # the revision of this process's newest commit, as far as is known; 0 before the first

    def begin(self, lineage: Lineage) -> None:
        """To be called once, before the first commit. `lineage`: as it was read last."""
        self._former = lineage

    async def read(self, prefix: str) -> Snapshot:
        return await self._store.read(prefix)

    async def commit(self, txn: Txn) -> int:
        """Raises StoreWentBack, Superseded, too."""
        if not self._newest:
            async with self._beginning:
                if not self._newest:
                    if _is_large(txn):
                        await self._commit_first(Txn())
                    else:
                        return await self._commit_first(txn)
        since = {**txn.since, self._key: self._newest}
        if txn.put or txn.lasting or txn.delete:
            txn = replace(txn, lasting={**txn.lasting, self._key: self._next_stamp()})
        try:
            revision = await self._store.commit(replace(txn, since=since))
        except Conflict:
            await self._check_own()
            raise
        if txn.lasting:
            self._newest = max(self._newest, revision)
        return revision

    async def _commit_first(self, txn: Txn) -> int:
        """Raises Conflict also where something of the last process's has come meanwhile."""
        node_id, former = self._node_id, self._former
        commit, incarnations = former.commits.get(node_id), former.incarnations.get(node_id)
        now = Incarnations(self._incarnation)
        expect = {self._key: 0, incarnation_key(node_id): 0}
        delete = txn.delete
        if incarnations is not None:
            end = incarnations.revision if commit is None else commit.revision
            now = incarnations.followed_by(self._incarnation, end)
            expect[incarnation_key(node_id)] = incarnations.revision
        if commit is not None:
            key = commit_key(node_id, commit.incarnation)
            expect[key] = commit.revision
            delete = *delete, key
        lasting = {**txn.lasting, incarnation_key(node_id): now.encode(), self._key: self._next_stamp()}
        try:
            self._newest = await self._store.commit(
                replace(txn, expect={**txn.expect, **expect}, lasting=lasting, delete=delete)
            )
        except Conflict:
            await self._look_again()
            raise
        return self._newest

    async def _look_again(self) -> None:
        """Who is the broker's incarnation by now: perhaps this process, by a commit without an answer. Raises
        StoreWentBack, StoreClosed."""
        with suppress(OSError):
            snapshot = await self._store.read(CLUSTER_KEY)
            found = Lineage.from_snapshot(snapshot)
            _require(self._former.followed(0), found, snapshot.revision)
            self._former = found
            commit = found.commits.get(self._node_id)
            if commit is not None and commit.incarnation == self._incarnation:
                self._newest = commit.revision

    def _next_stamp(self) -> bytes:
        self._number += 1
        return encode_commit(self._number)

    async def _check_own(self) -> None:
        """Raises StoreWentBack, Superseded, StoreClosed. While the store does not answer, others find out."""
        known = self._newest
        with suppress(OSError):
            snapshot = await self._store.read(CLUSTER_KEY)
            lineage = Lineage.from_snapshot(snapshot)
            commit = lineage.commits.get(self._node_id)
            if commit is None or commit.incarnation != self._incarnation or commit.revision < known:
                mine = {self._node_id: Commit(self._incarnation, self._number, known)}
                _require(KnownHistory(0, lineage.origin_id, mine), lineage, snapshot.revision)
                raise Superseded(f"another process has become broker {self._node_id}")

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        async with aclosing(self._store.watch(prefix, after)) as changes:
            async for change in changes:
                if any(event.key == self._key and event.value is not None for event in change.events):
                    self._newest = max(self._newest, change.revision)
                yield change

    async def lease(self, ttl_ms: int) -> Lease:
        return await self._store.lease(ttl_ms)

    async def close(self) -> None:
        """The other one stays open: it belongs to whoever opened it."""


def _is_large(txn: Txn) -> bool:
    """Whether it has no room for what the first commit adds."""
    return max(len(txn.expect), len(txn.put) + len(txn.delete)) > CHUNK_SIZE


def _require(known: KnownHistory, found: Lineage, revision: int) -> None:
    """Raises StoreWentBack for a store that does not follow what is known."""
    if (reason := contradiction(known, found, revision)) is not None:
        raise StoreWentBack(f"the metadata store was set back to an older state, or is another one: {reason}")
