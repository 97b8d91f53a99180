"""The disk of one simulated process: its machine's device, with what can go wrong, and out of reach once it is killed.

Every call goes through `_step`: it is traced, takes time, may fail, and may be the one in the middle of which the
process or its machine dies (`DiskFaults.crash_in` counts the changes). A write that is struck by that has been done
in part. After the process's end every call raises Killed and changes nothing.

Faults belong to the machine and outlive the process: `machine.disk_faults`.
"""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from odradek.broker.disk.disk import File, Lock
from odradek.broker.disk.memory_disk import Content
from odradek.protocol.primitives import Buffer
from odradek.testing.killed import Killed
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.process import Process


@dataclass(slots=True)
class DiskFaults:
    """What is wrong with a machine's disk. `_share`: the part of such calls that fail with EIO."""

    read_share: float = 0.0
    write_share: float = 0.0
    sync_share: float = 0.0
    dead_directory: str | None = None
    """Every call about it, or about something in it, fails with EIO."""
    is_full: bool = False
    """Writes fail with ENOSPC, after a part of them was done."""
    call_ms: float = 0.0
    """How long each call takes, besides the usual."""
    sync_ms: float = 0.3
    """How long a sync takes."""
    cold_share: float = 0.0
    """The part of reads that find nothing in the page cache."""
    crash_in: int | None = None
    crash: Callable[[], object] | None = None

    def arm(self, crash_in: int, crash: Callable[[], object]) -> None:
        """After so many changes on the disk `crash` is called, in the middle of the next one. It ends the process."""
        self.crash_in, self.crash = crash_in, crash

    def heal(self) -> None:
        self.read_share = self.write_share = self.sync_share = self.cold_share = 0.0
        self.is_full = False
        self.dead_directory = None
        self.call_ms, self.sync_ms = 0.0, 0.3
        self.crash_in = None
        self.crash = None


class SimDisk(LosingDevice):
    """See the module."""

    def __init__(self, process: Process, former: LosingDevice, faults: DiskFaults, rng: random.Random) -> None:
        super().__init__(former)
        self.process = process
        self.faults = faults
        self.changes = 0
        self._rng = rng
        self._paths: dict[int, str] = {}  # of the files that were opened, by the identity of their content

    @property
    def is_visible_outside(self) -> bool:
        return True

    # -- every call ------------------------------------------------------------------------------------------------

    def _step(self, what: str, path: str, fail_share: float = 0.0) -> None:
        """Raises Killed, OSError."""
        self.process.check()
        self.process.trace.note(self.process.name, what, path)
        faults = self.faults
        if faults.call_ms:
            self.process.spend(faults.call_ms * (0.5 + self._rng.random()) / 1000.0)
        if faults.dead_directory is not None and self._is_in(faults.dead_directory, path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if fail_share and self._rng.random() < fail_share:
            self.process.trace.note(self.process.name, "failed")
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    @staticmethod
    def _is_in(directory: str, path: str) -> bool:
        path = path.split(" ", 1)[0]
        return path == directory or path.startswith(f"{directory}/")

    def _check_content(self, content: Content) -> None:
        """As for a path, for what is done to a file that is open. Raises OSError."""
        dead = self.faults.dead_directory
        if dead is not None and self._is_in(dead, self._paths.get(id(content), "")):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _is_struck(self) -> bool:
        """Whether this change is the one in the middle of which the process dies. Counts it."""
        self.changes += 1
        faults = self.faults
        if faults.crash_in is None:
            return False
        faults.crash_in -= 1
        return faults.crash_in < 0

    def _die(self) -> NoReturn:
        faults = self.faults
        crash, faults.crash, faults.crash_in = faults.crash, None, None
        assert crash is not None, "`arm` sets both"
        self.process.trace.note(self.process.name, "is struck in a call of its disk")
        crash()
        assert self.process.is_dead, "that is what `crash` is for"
        raise Killed

    def _change(self, what: str, path: str) -> None:
        """A change of a name. Raises Killed, OSError."""
        self._step(what, path, self.faults.write_share)
        if self._is_struck():
            self._die()

    # -- content ---------------------------------------------------------------------------------------------------

    def write(self, content: Content, data: Buffer) -> None:
        view = memoryview(data)
        self._step("write", f"{len(view)} at {len(content)}")
        self._check_content(content)
        faults = self.faults
        if self._is_struck():
            super().write(content, view[: self._rng.randint(0, len(view))])
            self._die()
        if faults.is_full or (faults.write_share and self._rng.random() < faults.write_share):
            super().write(content, view[: self._rng.randrange(max(1, len(view)))])
            number = errno.ENOSPC if faults.is_full else errno.EIO
            self.process.trace.note(self.process.name, "failed")
            raise OSError(number, os.strerror(number))
        super().write(content, data)

    def cut(self, content: Content, size_bytes: int) -> None:
        self._step("cut", f"to {size_bytes} from {len(content)}", self.faults.write_share)
        self._check_content(content)
        if self._is_struck():
            self._die()
        super().cut(content, size_bytes)

    def reserve(self, content: Content, size_bytes: int) -> None:
        self._step("reserve", str(size_bytes), self.faults.write_share)
        self._check_content(content)
        if self.faults.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._is_struck():
            self._die()
        super().reserve(content, size_bytes)

    def sync(self, content: Content) -> None:
        self.process.spend(self.faults.sync_ms * self._rng.expovariate(1.0) / 1000.0)
        try:
            self._step("sync", str(len(content)), self.faults.sync_share)
            self._check_content(content)
        except OSError:
            self.sync_failed(content)
            raise
        if self._is_struck():
            self._die()
        super().sync(content)

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self._step("read", f"{path} {size_bytes} at {position}", self.faults.read_share)
        return super().readable_bytes(path, position, size_bytes)

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        share = self.faults.cold_share
        return 0 if share and self._rng.random() < share else size_bytes

    def read_whole(self, path: str) -> bytes:
        self._step("read", path, self.faults.read_share)
        return super().read_whole(path)

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        self._step("read", f"{path} {size_bytes} at {position}", self.faults.read_share)
        return super().read_range(path, position, size_bytes)

    # -- names -----------------------------------------------------------------------------------------------------

    def open(self, path: str, size_bytes: int | None = None) -> File:
        self.process.check()
        if not self.exists(path):
            self._change("create", path)
        elif self.faults.dead_directory is not None:
            self._step("open", path)
        file = super().open(path, size_bytes)
        self._paths[id(self.content(path))] = path
        return file

    def make_dir(self, path: str) -> None:
        if not self.exists(path):
            self._change("make", path)
        super().make_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._change("rename", f"{source} {target}")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._change("remove", path)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self._change("remove", path)
        super().remove_tree(path)

    def sync_dir(self, path: str) -> None:
        self.process.spend(self.faults.sync_ms * self._rng.expovariate(1.0) / 1000.0)
        self._step("sync", path, self.faults.sync_share)
        if self._is_struck():
            self._die()
        super().sync_dir(path)

    def lock(self, path: str) -> Lock:
        self._step("lock", path)
        return super().lock(path)

    def list_dir(self, path: str) -> list[str]:
        self.process.check()
        if self.faults.dead_directory is not None:
            self._step("list", path)
        return super().list_dir(path)

    def sizes(self, path: str) -> dict[str, int]:
        self.process.check()
        if self.faults.dead_directory is not None:
            self._step("list", path)
        return super().sizes(path)
