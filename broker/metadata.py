"""The broker's view of the cluster: the newest image, followed from the metadata store.

Handlers read `image` synchronously and never ask the store. Who changes something commits to the store and then waits
until the image has come that far (`applied`), so that the answer to CreateTopics is true for the next Metadata.
Listeners are called, in order, for each applied change, in the loop's thread.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from broker.cluster.image import ClusterImage, Delta, compare
from broker.cluster.store import Compacted, MetadataStore, Snapshot, StoreClosed, StoreWentBack
from broker.progress import Progress
from client.environment import Environment

logger = logging.getLogger(__name__)

RETRY_MS: Final = 100.0

Listener = Callable[[ClusterImage, Delta], None]


class Metadata:
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
                    async for change in self.store.watch("/", self.image.revision):
                        self._advance(*self.image.apply(change))
                    return
                except Compacted:
                    # We fell so far behind that the changes are gone: what they came to is still there to be read.
                    image = ClusterImage.from_snapshot(await self._read(environment))
                    self._advance(image, compare(self.image, image))

    async def _read(self, environment: Environment) -> Snapshot:
        """However long the store does not answer: who gave up would never again hear of a change. Raises StoreClosed,
        StoreWentBack."""
        is_told = False
        while True:
            try:
                return await self.store.read("/")
            except OSError as error:
                if not is_told:
                    is_told = True
                    logger.warning(
                        "the metadata is known up to revision %d, what came next is not kept any more, and all of it "
                        "cannot be read, which is tried again: %s",
                        self.image.revision,
                        error,
                    )
                await environment.sleep(RETRY_MS)

    def _advance(self, image: ClusterImage, delta: Delta) -> None:
        """Raises StoreWentBack for the image of another cluster, or of none: what is missing there was not deleted."""
        if self.image.cluster_id not in (None, image.cluster_id):
            raise StoreWentBack(
                f"the metadata store was emptied, or is another cluster's: it belonged to cluster "
                f"{self.image.cluster_id}, and belongs to {image.cluster_id or 'none'}"
            )
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
