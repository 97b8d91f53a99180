"""What lies where in the directory of `odradek cluster run`, whichever way its brokers run, and the note of a take.

DIR/metadata/metadata.log    the metadata of all brokers
DIR/broker-<id>/             the data directory of each; their ids follow one another
DIR/.odradek-take            a take (offline/take/) has begun and not ended: nothing is started on the directory

version=1
serve.dir="/var/lib/odradek"
cluster.id=Rk9P4m2xT0eXK1m0Vb7n1w
node.id=0
directory.id=x1cP0mQnTq6vVtJzW8h3lQ
"""

import json
import posixpath
import re
from dataclasses import dataclass
from typing import Final

from odradek.broker.directories.meta_properties import ForeignDirectory, MetaProperties, read_properties
from odradek.broker.disk.disk import Disk

NOTE_FILE: Final = ".odradek-take"
METADATA_DIRECTORY: Final = "metadata"
FIRST_ID: Final = 1
"""Of the brokers of a new directory."""
_BROKER: Final = re.compile(r"broker-(0|[1-9][0-9]{0,9})")
_SERVE_DIR: Final = "serve.dir"


def metadata_directory(data_dir: str) -> str:
    return posixpath.join(data_dir, METADATA_DIRECTORY)


def broker_directory(data_dir: str, broker_id: int) -> str:
    return posixpath.join(data_dir, f"broker-{broker_id}")


def broker_ids(disk: Disk, data_dir: str) -> list[int]:
    """Of the brokers that have a directory here, in order. Raises OSError."""
    if not disk.is_dir(data_dir):
        return []
    found = [int(match[1]) for name in disk.list_dir(data_dir) if (match := _BROKER.fullmatch(name))]
    return sorted(each for each in found if disk.is_dir(broker_directory(data_dir, each)))


def first_broker_id(disk: Disk, data_dir: str) -> int:
    """The id with which those of the brokers begin: what was taken from `odradek serve` keeps its own. Raises
    OSError."""
    return min(broker_ids(disk, data_dir), default=FIRST_ID)


@dataclass(frozen=True, slots=True)
class TakeNote:
    """Between which directory of `odradek serve` and this one a broker's directory is being moved, and which it is."""

    serve_dir: str
    known: MetaProperties

    def encode(self) -> bytes:
        return f"{_SERVE_DIR}={json.dumps(self.serve_dir)}\n".encode() + self.known.encode()


def load_note(disk: Disk, data_dir: str) -> TakeNote | None:
    """The note; None where no take is under way. Raises ForeignDirectory, OSError."""
    path = posixpath.join(data_dir, NOTE_FILE)
    found = read_properties(disk, path)
    if found is None:
        return None
    try:
        serve_dir = json.loads(found[_SERVE_DIR])
        known = MetaProperties(found["cluster.id"], int(found["node.id"]), found["directory.id"])
    except (KeyError, ValueError) as error:
        raise ForeignDirectory(
            f"{path}, the note of an `odradek cluster take`, is damaged ({error!r}): find out in which directory "
            "metadata.log is, move that by hand, and remove the note"
        ) from error
    return TakeNote(str(serve_dir), known)


def check_whole(disk: Disk, data_dir: str) -> None:
    """Refuses a start on a directory into which, or out of which, a broker is being moved. Raises ForeignDirectory,
    OSError."""
    note = load_note(disk, data_dir)
    if note is not None:
        raise ForeignDirectory(
            f"a move between {note.serve_dir} and {data_dir} was begun and has not ended: give `odradek cluster take "
            f"{note.serve_dir} --data-dir {data_dir}` again, with --back if it was one back. Nothing was changed"
        )
