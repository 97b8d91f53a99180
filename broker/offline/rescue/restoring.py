"""Brings a backup back into a metadata store, whichever it is, in as many commits as that takes.

It only ever begins in an empty store. From the first commit to the last one a mark stands under `/cluster`
(cluster/backup.py), and every commit in between expects it: so two restores never mix, a broker that starts meanwhile
refuses the store, and what was interrupted is gone on with when the same backup is given again.

**Revisions.** Each broker has written down how new the metadata was that it followed
(directories/metadata_revision.py), and refuses older ones, for these know less than its directories hold. Who restores
has decided that the backup counts nevertheless. So the last commit writes an origin (cluster/lineage.py), which
supersedes all that came before it; and the store is left at a revision that nobody has seen: `REVISIONS_SKIPPED` above
the backup's, or above what the caller knows of. A store counts commits and nothing else, so these are made, of the mark
itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.broker.cluster.backup import Backup, chunks, described, restored_values
from odradek.broker.cluster.keys import CLUSTER_KEY, ORIGIN_KEY, KeyKind, decode_restoring, encode_restoring, parse_key
from odradek.broker.cluster.lineage import Origin
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, Entry, MetadataStore, Txn

REVISIONS_SKIPPED: Final = 10_000
"""So many changes may have been made since the backup. On etcd this takes some seconds."""


class RestoreRefused(Exception):
    """The store is not one to restore into; the text says what is there. Nothing was changed."""


class RestoreInterrupted(Exception):
    """Somebody else changed the store meanwhile."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was done."""

    key_count: int
    revision: int


async def restore(
    store: MetadataStore,
    backup: Backup,
    *,
    revision_at_least: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Restores into an empty store, or goes on where the same restore was interrupted.

    `revision_at_least`: the largest in the `metadata.revision` of the brokers, where that is known. Raises
    RestoreRefused, RestoreInterrupted, MalformedMetadata, and what `MetadataStore.commit` raises but Conflict.
    """
    values = restored_values(backup)
    mark = encode_restoring(backup.checksum)
    present = (await store.read("/")).entries
    try:
        mark_revision = await _begin(store, mark, backup, present)
        for chunk in chunks(values):
            missing = {key: value for key, value in chunk.items() if key not in present or present[key].value != value}
            if missing:
                await store.commit(Txn(expect={CLUSTER_KEY: mark_revision}, put=missing))
        tell(f"{len(values) - 1} keys are there")
        least = max(revision_at_least, backup.revision) + REVISIONS_SKIPPED
        while mark_revision < least:
            mark_revision = await store.commit(Txn(expect={CLUSTER_KEY: mark_revision}, put={CLUSTER_KEY: mark}))
        final = {CLUSTER_KEY: values[CLUSTER_KEY], ORIGIN_KEY: Origin.of(values, mark_revision).encode()}
        revision = await store.commit(Txn(expect={CLUSTER_KEY: mark_revision}, put=final))
    except Conflict as error:
        raise RestoreInterrupted(f"somebody else has changed the store meanwhile: {error}; look who that is") from error
    return Restored(len(values), revision)


async def clear(store: MetadataStore) -> int:
    """Removes what an interrupted restore has written, and returns how many keys that were.

    Raises RestoreRefused where none was interrupted, RestoreInterrupted, and what `MetadataStore.commit` raises.
    """
    present = (await store.read("/")).entries
    mark = present.get(CLUSTER_KEY)
    if mark is None or decode_restoring(mark.value) is None:
        raise RestoreRefused(f"no restore was interrupted here: the store holds {described(list(present))}")
    keys = [key for key in present if key != CLUSTER_KEY and parse_key(key)[0] is not KeyKind.FOREIGN]
    expect = {CLUSTER_KEY: mark.revision}
    try:
        for start in range(0, len(keys), OPERATIONS_MAX):
            await store.commit(Txn(expect=expect, delete=tuple(keys[start : start + OPERATIONS_MAX])))
        await store.commit(Txn(expect=expect, delete=(CLUSTER_KEY,)))
    except Conflict as error:
        raise RestoreInterrupted(f"somebody else has changed the store meanwhile: {error}; look who that is") from error
    return 1 + len(keys)


async def _begin(store: MetadataStore, mark: bytes, backup: Backup, present: dict[str, Entry]) -> int:
    """Puts the mark, or finds it, and returns its revision. Raises RestoreRefused, Conflict."""
    if not present:
        return await store.commit(Txn(expect={CLUSTER_KEY: 0}, put={CLUSTER_KEY: mark}))
    found = present.get(CLUSTER_KEY)
    checksum = None if found is None else decode_restoring(found.value)
    if found is None or checksum is None:
        raise RestoreRefused(f"the store is not empty, it holds {described(list(present))}: give one that is")
    if checksum != backup.checksum:
        raise RestoreRefused(
            f"a restore of another backup, with the checksum {checksum}, was interrupted here: give that one, or clear "
            "the store first"
        )
    return found.revision
