"""A directory that is there as a whole or not at all, for its owner alone, and never in the place of another one.

It is filled under the name `DIR.partial` and then renamed. What fails leaves nothing behind; a kill may leave
`DIR.partial`, which the next call names.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

__all__ = ["DirectoryExists", "NewDirectory", "new_directory"]

FOR_OWNER: Final = 0o600
DIRECTORY_FOR_OWNER: Final = 0o700


class DirectoryExists(Exception):
    """There is something already; one sentence names it. Nothing was changed."""


class NewDirectory:
    """Where the files are until the end."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make_dir(self, name: str) -> str:
        """A directory in it, with those above it, and returns its path."""
        path = self.path
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path, DIRECTORY_FOR_OWNER)
        return path

    def write(self, name: str, text: str) -> None:
        """A file in it or in a directory that was made in it, which is synced."""
        path = os.path.join(self.path, name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FOR_OWNER)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def new_directory(path: str) -> Generator[NewDirectory]:
    """At the end of the block the directory is at its place. Raises DirectoryExists, OSError."""
    partial = f"{path}.partial"
    for taken, hint in ((path, "nothing is overwritten: give another --directory"), (partial, "remove it")):
        if os.path.lexists(taken):
            raise DirectoryExists(f"{taken} is there already; {hint}")
    parent = os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    os.mkdir(partial, DIRECTORY_FOR_OWNER)
    try:
        yield NewDirectory(partial)
        _sync_directories(partial)
        os.rename(partial, path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync(parent)


def _sync_directories(path: str) -> None:
    for directory, _, _ in os.walk(path):
        _sync(directory)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
