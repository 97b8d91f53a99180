"""Whether all replicas of a cluster are in sync, as its store says."""

from odradek.broker.cluster.keys import PARTITIONS_PREFIX, decode_partition, parse_partition
from odradek.broker.cluster.store import MetadataStore


class OutOfSync:
    """Looks for partitions that lack a replica, first where one did the last time: to look through all of them takes
    the supervisor some ten microseconds each."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._last = ""

    async def first(self) -> str | None:
        """The name of a partition, or None: none lacks any. Raises MalformedMetadata, OSError."""
        if self._last:
            found = await self._first_of(PARTITIONS_PREFIX + self._last)
            if found is not None:
                return found
            self._last = ""
        return await self._first_of(PARTITIONS_PREFIX)

    async def _first_of(self, prefix: str) -> str | None:
        for key, entry in (await self._store.read(prefix)).entries.items():
            name = key.removeprefix(PARTITIONS_PREFIX)
            topic, index = parse_partition(name)
            state = decode_partition(entry.value, topic, index)
            if set(state.isr) != set(state.replicas):
                self._last = name
                return f"{topic}-{index}"
        return None
