"""The broker's view of the cluster: the newest image, followed from the metadata store.

Handlers read `image` synchronously and never ask the store. Who changes something commits to the store and then waits
until the image has come that far (`applied`), so that the answer to CreateTopics is true for the next Metadata.
Listeners are called, in order, for each applied change, in the loop's thread.

**The same history.** Behind the same address another store may stand: an older copy, which has gone on without us. Its
changes must not be taken for the next ones of ours, and a topic that it does not know was not deleted. So the store is
compared with the image (cluster/lineage.py): before the first change that a watch tells, after each time that it lost
its way to the store, before a topic is deleted here, and whenever all of it is read again.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Final

from odradek.broker.cluster.image import ClusterImage, Delta, compare
from odradek.broker.cluster.keys import CLUSTER_KEY, decode_cluster
from odradek.broker.cluster.lineage import Lineage, contradiction
from odradek.broker.cluster.store import Change, Compacted, MetadataStore, Snapshot, StoreClosed, StoreWentBack
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress

logger = logging.getLogger(__name__)

RETRY_MS: Final = 100.0

Listener = Callable[[ClusterImage, Delta], None]


class ImageFollower:
    """Image and store of one broker."""

    __slots__ = ("_listeners", "image", "revision", "store")

    def __init__(self, store: MetadataStore, image: ClusterImage) -> None:
        self.store = store
        self.image = image
        self.revision = Progress(image.revision)
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def follow(self, environment: Environment) -> None:
        """Applies every change of the store, while the broker runs. Raises MalformedMetadata, StoreWentBack."""
        with suppress(StoreClosed):
            while True:
                try:
                    async with aclosing(self.store.watch("/", self.image.revision)) as changes:
                        await self._follow(changes, environment)
                    return
                except Compacted:
                    # We fell so far behind that the changes are gone: what they came to is still there to be read.
                    snapshot = await self._read("/", environment)
                    self._require_history(snapshot)
                    image = ClusterImage.from_snapshot(snapshot)
                    self._advance(image, compare(self.image, image))

    async def _follow(self, changes: AsyncGenerator[Change, None], environment: Environment) -> None:
        is_compared = False
        async for change in changes:
            if not is_compared or not change.events:
                await self._compare(environment)
                is_compared = True
            if change.events:
                image, delta = self.image.apply(change)
                if delta.deleted:
                    await self._compare(environment)
                self._advance(image, delta)

    async def _compare(self, environment: Environment) -> None:
        """Raises StoreClosed, StoreWentBack, MalformedMetadata."""
        self._require_history(await self._read(CLUSTER_KEY, environment))

    def _require_history(self, snapshot: Snapshot) -> None:
        """Raises StoreWentBack, MalformedMetadata."""
        cluster = snapshot.entries.get(CLUSTER_KEY)
        self._require_cluster(None if cluster is None else decode_cluster(cluster.value))
        found = Lineage.from_snapshot(snapshot)
        if (reason := contradiction(self.image.followed, found, snapshot.revision)) is not None:
            raise StoreWentBack(f"the metadata store was set back to an older state, or is another one: {reason}")

    def _require_cluster(self, cluster_id: str | None) -> None:
        """Raises StoreWentBack for another cluster, or none: what is missing there was not deleted."""
        if self.image.cluster_id not in (None, cluster_id):
            raise StoreWentBack(
                f"the metadata store was emptied, or is another cluster's: it belonged to cluster "
                f"{self.image.cluster_id}, and belongs to {cluster_id or 'none'}"
            )

    async def _read(self, prefix: str, environment: Environment) -> Snapshot:
        """However long the store does not answer: who gave up would never again hear of a change. Raises StoreClosed,
        StoreWentBack."""
        is_told = False
        while True:
            try:
                return await self.store.read(prefix)
            except OSError as error:
                if not is_told:
                    is_told = True
                    logger.warning(
                        "the metadata is known up to revision %d, and what came next is not taken before the store can "
                        "be read, which is tried again: %s",
                        self.image.revision,
                        error,
                    )
                await environment.sleep(RETRY_MS)

    def _advance(self, image: ClusterImage, delta: Delta) -> None:
        """Raises StoreWentBack."""
        self._require_cluster(image.cluster_id)
        self.image = image
        for listener in self._listeners:
            try:
                listener(image, delta)
            except Exception:
                logger.exception("the metadata at revision %d could not be applied", image.revision)
        self.revision.advance(image.revision)

    async def applied(self, revision: int) -> None:
        """Returns once the image holds everything up to `revision`."""
        await self.revision.reach(revision)
