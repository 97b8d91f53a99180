"""A disk in memory of which a test says what is in memory: reads of the rest fail, or are found out.

    disk = ColdDisk()
    disk.evict(path)                 # all of it is cold from here on
    disk.evict(path, keep_bytes=100) # but for its first bytes

Within `cached_only` what is cold raises NotCached until `read_range` has fetched it, which takes only what it was asked
for. Outside of it whoever reads what is cold waits: that is for helper threads, and `waits` notes it for the thread
that made the disk, the loop's.
"""

from threading import get_ident

from odradek.broker.disk.memory_disk import MemoryDisk


class ColdDisk(MemoryDisk):
    """Everything is hot until it is evicted."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[tuple[str, int, int]] = []
        """Path, position and size of what was fetched."""
        self.waits: list[str] = []
        """What the loop's thread waited for."""
        self.evicts_at_once = False
        """Memory is so short that nothing that is fetched stays."""
        self._hot_bytes: dict[str, int] = {}
        self._loop_thread_id = get_ident()

    def evict(self, path: str, keep_bytes: int = 0) -> None:
        self._hot_bytes[path] = keep_bytes

    def evict_all(self, directory: str) -> None:
        for name in self.sizes(directory):
            self.evict(f"{directory}/{name}")

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        hot_bytes = self._hot_bytes.get(path)
        return size_bytes if hot_bytes is None else max(0, min(size_bytes, hot_bytes - position))

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        there = super().readable_bytes(path, position, size_bytes)
        is_waiting = self._cached_only.thread_id != get_ident() == self._loop_thread_id
        if (
            is_waiting
            and max(self._warmed.size_at(path, position), self.cached_bytes(path, position, size_bytes)) < there
        ):
            self.waits.append(path)
        return there

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        self.fetched.append((path, position, size_bytes))
        if self.evicts_at_once:
            content = self._content(path)
            return content.on_disk(position, position + size_bytes)
        return super().read_range(path, position, size_bytes)
