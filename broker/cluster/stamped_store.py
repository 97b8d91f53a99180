"""The metadata store as one broker's process writes it: each commit carries the lineage (lineage.py), and needs it.

* A commit also puts `/cluster/commits/<id>/<incarnation>`, under no lease.
* It expects that this key is as new as the last commit of this process that was answered, or that was seen. A store
  that was set back meanwhile, to a moment before that one, takes nothing. It looks like any other conflict; so after
  each conflict this key is asked for, and where it is too old the store went back (`StoreWentBack`).
* The first commit of the process also makes it the broker's incarnation, and takes the key of the one before away. So
  nothing that was on its way from that one changes anything any more. A process that still runs when another one has
  begun, on a copy of its data directory, finds that out by its next commit (`Superseded`).
* A commit without an answer may have happened, be seen by others, and be lost when the store is set back, all before
  this process hears of it. So it is looked for before the next commit. If it is not there, the next commit begins
  another part of the incarnation, as a process begins: the list of former ones says that it is not in this history,
  and it comes too late if it still is on its way.

A commit that deletes keys that are not there takes a revision here, for it writes this key.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

from odradek.broker.cluster.keys import CLUSTER_KEY, commit_key, incarnation_key
from odradek.broker.cluster.lineage import (
    Commit,
    Incarnations,
    KnownHistory,
    Lineage,
    contradiction,
    decode_commit,
    encode_commit,
    part_of,
)
from odradek.broker.cluster.store import (
    CHUNK_SIZE,
    NOTHING_CHANGED,
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

    def __init__(self, store: MetadataStore, node_id: int, process: str) -> None:
        """`process`: a text without a dot that no other process has."""
        self._store = store
        self._node_id = node_id
        self._process = process
        self._part = 0
        self._has_begun = False  # whether the present part has committed anything
        self._beginning = asyncio.Lock()
        self._former = Lineage()  # what the first commit of the next part expects to find
        self._number = 0
        self._newest: Commit | None = None  # the process's newest commit, as far as is known
        self._unanswered = set[int]()  # numbers of commits of the present part that may have happened, or may yet

    def begin(self, lineage: Lineage) -> None:
        """To be called once, before the first commit. `lineage`: as it was read last."""
        self._former = lineage

    async def read(self, prefix: str) -> Snapshot:
        return await self._store.read(prefix)

    async def commit(self, txn: Txn) -> int:
        """Raises StoreWentBack, Superseded, too."""
        while not self._has_begun or self._unanswered:
            async with self._beginning:
                if self._unanswered:
                    await self._look_for_unanswered()
                if not self._has_begun:
                    if not _is_large(txn):
                        return await self._commit_first(txn)
                    await self._commit_first(Txn())
        assert self._newest is not None, "the part has begun"
        txn = replace(txn, since={**txn.since, self._key: self._newest.revision})
        try:
            if txn.put or txn.lasting or txn.delete:
                return await self._commit_stamped(txn)
            return await self._store.commit(txn)
        except Conflict:
            with suppress(OSError):  # while the store does not answer, others find out
                await self._look()
            raise

    async def _commit_first(self, txn: Txn) -> int:
        """Begins the present part. Raises Conflict also where something of the part before has come meanwhile."""
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
        lasting = {**txn.lasting, incarnation_key(node_id): now.encode()}
        try:
            return await self._commit_stamped(
                replace(txn, expect={**txn.expect, **expect}, lasting=lasting, delete=delete)
            )
        except Conflict:
            with suppress(OSError):
                await self._look_again()
            raise

    async def _commit_stamped(self, txn: Txn) -> int:
        self._number += 1
        incarnation, number = self._incarnation, self._number
        try:
            revision = await self._store.commit(replace(txn, lasting={**txn.lasting, self._key: encode_commit(number)}))
        except NOTHING_CHANGED:
            raise
        except BaseException:  # one who is cancelled does not know either
            if incarnation == self._incarnation:
                self._unanswered.add(number)
            raise
        self._adopt(Commit(incarnation, number, revision))
        return revision

    async def _look_for_unanswered(self) -> None:
        """Ends the present part if a commit of it without an answer is not found. Raises OSError, StoreWentBack,
        Superseded, StoreClosed."""
        await self._look_again()
        if self._unanswered:
            self._part += 1
            self._has_begun = False
            self._unanswered.clear()

    async def _look_again(self) -> None:
        """Finds what the next part follows, perhaps a commit of the present one. Raises as `_look`."""
        self._former = await self._look()
        if (commit := self._former.commits.get(self._node_id)) is not None:
            self._adopt(commit)

    async def _look(self) -> Lineage:
        """What the store has. Raises StoreWentBack, Superseded, StoreClosed, OSError."""
        known = self._former.followed(0)
        if (newest := self._newest) is not None:
            known = replace(known, commits={**known.commits, self._node_id: newest})
        snapshot = await self._store.read(CLUSTER_KEY)
        found = Lineage.from_snapshot(snapshot)
        _require(known, found, snapshot.revision)
        if newest is not None and found.current(self._node_id) != self._process:
            raise Superseded(f"another process has become broker {self._node_id}")
        return found

    def _adopt(self, commit: Commit) -> None:
        """That the store has this commit of the broker."""
        if commit.incarnation == self._incarnation:
            self._has_begun = True
            self._unanswered.discard(commit.number)
            if self._newest is None or commit.revision > self._newest.revision:
                self._newest = commit

    @property
    def _incarnation(self) -> str:
        return part_of(self._process, self._part)

    @property
    def _key(self) -> str:
        return commit_key(self._node_id, self._incarnation)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        async with aclosing(self._store.watch(prefix, after)) as changes:
            async for change in changes:
                for event in change.events:
                    if event.key == self._key and event.value is not None:
                        self._adopt(decode_commit(event.value, self._node_id, self._incarnation, change.revision))
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
