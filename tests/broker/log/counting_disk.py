"""A memory disk that counts what is opened, read and written: the work of a start, file by file."""

from collections import Counter

from odradek.broker.disk.disk import File
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.protocol.primitives import Buffer


class CountingDisk(MemoryDisk):
    """`bytes_read` by the file's path; `opened` are the files that were asked for, whose size was not known already."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()
        self.bytes_written = 0

    def forget(self) -> None:
        """Begins to count anew."""
        self.opened.clear()
        self.bytes_read.clear()
        self.bytes_written = 0

    @property
    def all_bytes_read(self) -> int:
        return sum(self.bytes_read.values())

    @property
    def touched(self) -> set[str]:
        """The names of the files that were opened or read."""
        return {path.rpartition("/")[2] for path in (*self.opened, *self.bytes_read)}

    def open(self, path: str, size_bytes: int | None = None) -> File:
        if size_bytes is None:
            self.opened[path] += 1
        return super().open(path, size_bytes)

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self.bytes_read[path] += size_bytes
        return super().readable_bytes(path, position, size_bytes)

    def read_whole(self, path: str) -> bytes:
        data = super().read_whole(path)
        self.opened[path] += 1
        self.bytes_read[path] += len(data)
        return data

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        data = super().read_range(path, position, size_bytes)
        self.opened[path] += 1
        self.bytes_read[path] += len(data)
        return data

    def write(self, content: Content, data: Buffer) -> None:
        self.bytes_written += len(data)
        super().write(content, data)
