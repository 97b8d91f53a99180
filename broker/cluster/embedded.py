"""The metadata store of one process that survives it: a log of commits in `metadata.log`, written through the disk.

A commit is answered after it was appended and synced; the file's format and what a crash can leave of it stand in
journal.py. When the file has grown by its own size (and at least by COMPACTION_BYTES_MIN) it is replaced by a snapshot.

* An append that fails (disk full) leaves everything as it was: the commit raises OSError, later ones may succeed.
* A sync that fails leaves it unknown what reached the device, and syncing again would not tell (Linux marks the pages
  clean). So the next commit first writes the whole state to a new file, or fails like this one.
* The process may end with that, and the next one finds in the page cache what the device does not have, and will lose
  it with the power, in the middle of its own commits. So `open` writes the file anew.
* Leases end with the process, so `open` deletes the keys that were under one. That takes a revision of its own, since a
  revision (a broker epoch, for one) is never given out twice.

Encoding a snapshot happens in the caller's thread; 100,000 keys take 0.4 s to write anew and 0.6 s to open.

With `run_blocking` and `tasks` the waiting for the device happens in a helper thread; commits still go one after the
other, and one whose caller was cancelled runs to its end. Without, a commit blocks its caller and never yields.
"""

import asyncio
import logging
import posixpath
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.broker.cluster.journal import Journal, decode_file, encode_commit, encode_file
from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.state import Prepared, State
from odradek.broker.cluster.store import StoreDamaged
from odradek.broker.disk.disk import Disk, File
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

FILE_NAME = "metadata.log"
COMPACTION_BYTES_MIN = 4 * 1024 * 1024

RunBlocking = Callable[..., Coroutine[Any, Any, Any]]


class EmbeddedStore(LocalStore):
    """A `MetadataStore` in the data directory, which the caller has locked."""

    def __init__(
        self, disk: Disk, path: str, file: File, state: State, run_blocking: RunBlocking | None, tasks: Tasks | None
    ) -> None:
        super().__init__(state)
        self._disk = disk
        self._path = path
        self._file = file
        self._run_blocking = run_blocking
        self._tasks = tasks
        self._turn = asyncio.Lock()
        self._is_damaged = False
        """What the file holds is unknown: the next commit writes it anew first."""
        self.on_disk_error: Callable[[OSError], None] = _nothing
        """Told of each commit that failed for the disk."""
        self._compact_at_bytes = file.size_bytes + max(file.size_bytes, COMPACTION_BYTES_MIN)

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        *,
        run_blocking: RunBlocking | None = None,
        tasks: Tasks | None = None,
        check: Callable[[Journal], None] | None = None,
    ) -> "EmbeddedStore":
        """Reads the store of a data directory, or begins one. Blocks.

        `check` sees what is there, before anything is written, and may refuse it by raising. Raises OSError, and
        StoreDamaged with the path and the reason; in that case nothing was written.
        """
        assert (run_blocking is None) == (tasks is None), "a helper thread and somebody to wait for it, or neither"
        path, state = opened(disk, directory, check)
        return cls(disk, path, disk.open(path), state, run_blocking, tasks)

    async def close(self) -> None:
        if self._is_closed:
            return
        await super().close()
        async with self._turn:
            self._file.close()

    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        if self._tasks is None:
            outcome = await self._change_in_turn(prepare)
        else:
            task = self._tasks.start(self._change_in_turn(prepare), "commit to the metadata store")
            outcome = await asyncio.shield(task)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _change_in_turn(self, prepare: Callable[[], Prepared | None]) -> int | Exception:
        """Answers errors instead of raising them: they are the caller's, not the task's."""
        async with self._turn:
            try:
                self._check_open()
                if (prepared := prepare()) is not None:
                    if self._is_damaged:
                        await self._rewrite()
                    await self._append(encode_commit(prepared.change, prepared.leased))
                    self._apply(prepared)
                    await self._compact()
            except Exception as error:  # noqa: BLE001 - handed to the caller, who raises it
                if isinstance(error, OSError):
                    self.on_disk_error(error)
                return error
            return self._state.revision

    async def _append(self, record: bytes) -> None:
        self._file.append([record])
        try:
            await self._run(self._file.syncer())
        except OSError:
            self._is_damaged = True
            raise

    async def _compact(self) -> None:
        if self._file.size_bytes < self._compact_at_bytes:
            return
        try:
            await self._rewrite()
        except OSError as error:
            # The commits are safe where they are. Try again when the file has grown once more.
            logger.warning("%s could not be compacted: %s", self._path, error)
            self._compact_at_bytes = self._file.size_bytes + COMPACTION_BYTES_MIN

    async def _rewrite(self) -> None:
        """Replaces the file by a snapshot of the state as it is. Raises OSError."""
        leased = (key for key in self._state.entries if self._state.is_leased(key))
        data = encode_file(self._state.entries, leased, self._state.revision)
        was_damaged, former_size_bytes = self._is_damaged, self._file.size_bytes
        self._is_damaged = True
        self._file.close()
        try:
            await self._run(self._disk.write_whole, self._path, data)
        except OSError:
            # It may be the old file still (no room), or the new one whose name is not yet durable.
            self._file = self._disk.open(self._path)
            self._is_damaged = was_damaged or self._file.size_bytes != former_size_bytes
            raise
        self._file = self._disk.open(self._path)
        self._is_damaged = False
        self._compact_at_bytes = len(data) + max(len(data), COMPACTION_BYTES_MIN)

    async def _run(self, function: Callable[..., None], *args: Any) -> None:
        if self._run_blocking is None:
            function(*args)
        else:
            await self._run_blocking(function, *args)


def opened(disk: Disk, directory: str, check: Callable[[Journal], None] | None = None) -> tuple[str, State]:
    """The path of the file, and what it says, without the leases of those who are gone; the file says that then, too.

    Blocks. See `EmbeddedStore.open`. Raises OSError, StoreDamaged.
    """
    path = posixpath.join(directory, FILE_NAME)
    is_new = not disk.exists(path)
    data = encode_file({}, (), 0) if is_new else disk.read_whole(path)
    try:
        journal = decode_file(data)
    except StoreDamaged as error:
        raise StoreDamaged(f"{path} can not be used: {error}") from None
    if check is not None:
        check(journal)
    if journal.end_position < len(data):
        logger.warning("%s: cut off %d bytes of an unfinished commit", path, len(data) - journal.end_position)
    for key in journal.leased:
        del journal.entries[key]
    revision = journal.revision + bool(journal.leased)
    disk.write_whole(path, encode_file(journal.entries, (), revision))
    return path, State(journal.entries, revision)


def _nothing(error: OSError) -> None: ...
