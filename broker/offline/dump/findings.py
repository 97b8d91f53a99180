"""What verifying finds: an inconsistency ends it, a note is worth knowing and no fault."""

from typing import NamedTuple


class Inconsistency(Exception):
    """Files that contradict themselves, each other or their format: where, and what was expected instead."""

    def __init__(
        self,
        path: str,
        text: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        line: int | None = None,
    ) -> None:
        """`position` counts bytes in the file at `path`, `line` its lines from 1, `offset` records in the log.

        A `text` that begins with the path names the place itself.
        """
        places = (("position", position), ("line", line), ("offset", offset))
        where = "".join(f", {name} {number}" for name, number in places if number is not None)
        super().__init__(text if text.startswith(path) else f"{path}{where}: {text}")
        self.path = path
        self.text = text.removeprefix(path).lstrip(":, ")
        self.position = position
        self.line = line
        self.offset = offset


class Note(NamedTuple):
    """Something to know about a file or directory that is as it may be."""

    path: str
    text: str
