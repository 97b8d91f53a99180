"""The metadata of a test's cluster that keeps its logs: where `odradek cluster run` finds it, in a cluster's directory.

It is written and not synced: the end of the test's process loses nothing of it, the loss of power may."""

from odradek.broker.cluster.embedded import opened
from odradek.broker.cluster.journal import encode_commit
from odradek.broker.cluster.state import Prepared
from odradek.broker.directories.cluster_layout import metadata_directory
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.cluster_directory import lock_metadata
from odradek.testing.hosting.shared_memory import SharedMemory


class KeptMetadata:
    """`memory` is what it says, and each change of that is written down until `close`."""

    def __init__(self, directory: str) -> None:
        """Raises StartRefused where another cluster runs on the directory, ForeignDirectory, StoreDamaged, OSError."""
        disk = FileDisk()
        self._lock = lock_metadata(disk, directory)
        try:
            path, state = opened(disk, metadata_directory(directory))
            self._file = disk.open(path)
        except BaseException:
            self._lock.release()
            raise
        self.memory = SharedMemory(state.entries, state.revision, self._write)

    def close(self) -> None:
        self._file.close()
        self._lock.release()

    def _write(self, prepared: Prepared) -> None:
        self._file.append([encode_commit(prepared.change, prepared.leased)])
