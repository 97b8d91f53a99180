"""Rebuilds the metadata of a cluster from its brokers' data directories: locks and reads all, and writes one file.

What is found goes into a directory, one of those or another, as `metadata.log` and `metadata.revision`, whole and at
the very end; or into a store, as a backup would. No log is touched: what followers have beside their leader they cut
off themselves when they start. All directories stay locked until it is written, so no broker starts on what is not
there yet.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from odradek.broker.cluster.backup import Backup
from odradek.broker.cluster.keys import MalformedMetadata
from odradek.broker.directories.meta_properties import ForeignDirectory
from odradek.broker.directories.metadata_revision import load_revision
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import CorruptCheckpoint
from odradek.broker.offline.adopt.claim import DirectoryRefused, identify, locked
from odradek.broker.offline.adopt.directory import read_directory
from odradek.broker.offline.rescue.directory import read_journal, write_metadata
from odradek.broker.offline.rescue.plan import Directory, NotRebuildable, RebuildPlan, entries, make_plan


def rebuild(
    disk: Disk, data_dirs: Sequence[str], into: str, *, backup: Backup | None = None, is_dry_run: bool = False
) -> RebuildPlan:
    """Rebuilds the metadata in the directory `into`; or, with `is_dry_run`, says what that would come to, and changes
    nothing. Raises DirectoryRefused, OSError.
    """

    def write(plan: RebuildPlan) -> None:
        write_metadata(disk, into, lambda revision: entries(plan, revision), plan.revision)

    with ExitStack() as held:
        if into not in data_dirs:
            _refuse_metadata(disk, into)
            if not is_dry_run:
                disk.make_dir(into)
                held.enter_context(locked(disk, into))
        return rebuild_with(disk, data_dirs, None if is_dry_run else write, backup=backup)


def rebuild_with(
    disk: Disk, data_dirs: Sequence[str], write: Callable[[RebuildPlan], object] | None, *, backup: Backup | None = None
) -> RebuildPlan:
    """Plans a rebuild, and lets `write` do it while all directories are locked. None: a dry run.

    Raises DirectoryRefused, OSError, and what `write` raises.
    """
    with ExitStack() as held:
        for path in data_dirs:
            identify(disk, path)
            held.enter_context(locked(disk, path, is_dry_run=write is None))
        plan = _plan(disk, data_dirs, backup)
        if write is not None:
            write(plan)
    return plan


def _plan(disk: Disk, data_dirs: Sequence[str], backup: Backup | None) -> RebuildPlan:
    """Raises DirectoryRefused, OSError."""
    try:
        for path in data_dirs:
            _refuse_metadata(disk, path)
        directories = [
            Directory(path, identify(disk, path), load_revision(disk, path), read_directory(disk, path))
            for path in data_dirs
        ]
        return make_plan(directories, backup)
    except CorruptCheckpoint as error:
        raise DirectoryRefused(
            f"{error}; restore the file, or remove it, and what DeleteRecords removed may come back"
        ) from error
    except (ForeignDirectory, MalformedMetadata, NotRebuildable) as error:
        raise DirectoryRefused(str(error)) from error


def _refuse_metadata(disk: Disk, data_dir: str) -> None:
    """Raises DirectoryRefused, OSError."""
    if (journal := read_journal(disk, data_dir)) is not None and journal.entries:
        raise DirectoryRefused(
            f"{data_dir} has a metadata.log that can be used: start the brokers on it, or move it away if it is not to "
            "count"
        )
