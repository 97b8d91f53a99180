"""A memory disk that writes down every sync with what it is of, and a log on it."""

import errno
import os

from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.flush import Flush
from odradek.broker.log.log import Log
from odradek.protocol.primitives import Buffer
from tests.broker.log.logs import (
    DIRECTORY,
    T0,
    append,
    batch,
    open_log,
)

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=80)


class SyncDisk(MemoryDisk):
    """`synced` are the names of files and directories in the order of their syncs; whole writes stand as `=name`."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []
        self.failing: list[str] = []
        """Names of which the next sync fails, once each."""

    def sync(self, content: Content) -> None:
        name = self._name_of(content)
        self._note(name)
        super().sync(content)

    def sync_dir(self, path: str) -> None:
        self._note("data" if path.endswith("/..") else path.rpartition("/")[2])
        super().sync_dir(path)

    def write_whole(self, path: str, data: Buffer) -> None:
        self._note(f"={path.rpartition('/')[2]}")
        super().write_whole(path, data)

    def _note(self, name: str) -> None:
        if not name:
            return  # what is being written as a whole has no name yet
        self.synced.append(name)
        if name in self.failing:
            self.failing.remove(name)
            raise OSError(errno.EIO, os.strerror(errno.EIO), name)

    def _name_of(self, content: Content) -> str:
        for name in self.list_dir(DIRECTORY) if self.exists(DIRECTORY) else ():
            if self._find(f"{DIRECTORY}/{name}") is content:
                return name
        return ""

    def content(self, name: str) -> object:
        """What stands under this name in the log's directory: the same object as long as it is the same file."""
        return self._find(f"{DIRECTORY}/{name}")

    def take_synced(self) -> list[str]:
        synced, self.synced = self.synced, []
        return synced


def name(base_offset: int, suffix: str = ".log") -> str:
    return f"{base_offset:020d}{suffix}"


def log_with(disk: SyncDisk, count: int, config: LogConfig = CONFIG) -> Log:
    log = open_log(disk, config)
    for number in range(count):
        append(log, batch(T0 + number, producer=(1, 0, number)))
    return log


def flushed(log: Log, *, settle: bool, with_active: bool = True) -> Flush:
    flush = log.begin_flush(settle=settle, with_active=with_active)
    assert flush is not None
    flush.run()
    log.end_flush(flush)
    return flush
