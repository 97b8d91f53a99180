"""A memory disk of several devices, each of which a test can take away: what is below a path fails from then on.

disk = FailingDisk()
disk.fail("b")                       # every call below it raises EIO; what is open there, too
disk.fail("b", errno.EROFS, reads=False)
disk.unmount("b")                    # an empty directory is left
disk.mend("b")
"""

import errno
import os
from collections.abc import Iterable

from odradek.broker.disk.disk import File, Lock
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.protocol.primitives import Buffer


class FailingDisk(MemoryDisk):
    """Files belong to the device under whose path they were opened last."""

    def __init__(self) -> None:
        super().__init__()
        self._failing: dict[str, tuple[int, bool]] = {}
        self._paths: dict[int, tuple[Content, str]] = {}

    def fail(self, path: str, number: int = errno.EIO, *, reads: bool = True) -> None:
        self._failing[path] = number, reads

    def mend(self, path: str) -> None:
        del self._failing[path]

    def unmount(self, path: str) -> None:
        """What was there can be seen under `<path>-unmounted`, by those who know."""
        super().rename(path, f"{path}-unmounted")
        super().make_dir(path)

    def _touch(self, path: str, *, writes: bool = True) -> None:
        for place, (number, reads) in self._failing.items():
            if (path == place or path.startswith(f"{place}/")) and (writes or reads):
                raise OSError(number, os.strerror(number), path)

    def _touch_content(self, content: Content) -> None:
        if id(content) in self._paths:
            self._touch(self._paths[id(content)][1])

    # -- what is written --------------------------------------------------------------------------------------------

    def write(self, content: Content, data: Buffer) -> None:
        self._touch_content(content)
        super().write(content, data)

    def sync(self, content: Content) -> None:
        self._touch_content(content)
        super().sync(content)

    def open(self, path: str, size_bytes: int | None = None) -> File:
        self._touch(path, writes=not self.exists(path))
        file = super().open(path, size_bytes)
        content = self._content(path)
        self._paths[id(content)] = content, path
        return file

    def make_dir(self, path: str) -> None:
        self._touch(path, writes=not self.exists(path))
        super().make_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._touch(source)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._touch(path)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self._touch(path)
        super().remove_tree(path)

    def write_new(self, path: str, parts: Iterable[Buffer]) -> int:
        self._touch(path)
        return super().write_new(path, parts)

    def write_whole(self, path: str, data: Buffer) -> None:
        self._touch(path)
        super().write_whole(path, data)

    def sync_dir(self, path: str) -> None:
        self._touch(path)
        super().sync_dir(path)

    def lock(self, path: str) -> Lock:
        self._touch(path)
        return super().lock(path)

    # -- what is read -----------------------------------------------------------------------------------------------

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self._touch(path, writes=False)
        return super().readable_bytes(path, position, size_bytes)

    def list_dir(self, path: str) -> list[str]:
        self._touch(path, writes=False)
        return super().list_dir(path)

    def sizes(self, path: str) -> dict[str, int]:
        self._touch(path, writes=False)
        return super().sizes(path)

    def read_whole(self, path: str) -> bytes:
        self._touch(path, writes=False)
        return super().read_whole(path)

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        self._touch(path, writes=False)
        return super().read_range(path, position, size_bytes)

    def free_bytes(self, path: str) -> int:
        self._touch(path, writes=False)
        return super().free_bytes(path)
