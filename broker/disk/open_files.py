"""Who may read what holds secrets, by the mode of the file: a warning for what others than its owner may.

What is read here are modes alone. A path that leads to nothing has none, as in memory and on simulated disks.
"""

import logging
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

logger = logging.getLogger(__name__)

OTHERS: Final = 0o077
"""The group, and everybody else."""
OWNER_ALONE: Final = 0o700


def warn_of_open_file(path: str) -> None:
    """Logs a warning if others than its owner may read or change a file that holds secrets."""
    mode = mode_of(path)
    if mode is not None and (who := others_may(mode)) is not None:
        logger.warning("%s holds secrets and has mode %04o, so %s: chmod 600 %s", path, mode, who, path)


def warn_of_open_directory(path: str) -> None:
    """Logs a warning if others than its owner may look into a directory with data, which may hold secrets, too."""
    mode = mode_of(path)
    if mode is not None and (who := others_may(mode)) is not None:
        logger.warning(
            "the directory %s holds records and secrets and has mode %04o, so %s: chmod 700 %s", path, mode, who, path
        )


def mode_of(path: str) -> int | None:
    """The permissions of what is at the path; None for nothing, or what cannot be seen."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None


def others_may(mode: int) -> str | None:
    """What others than the owner may do by this mode, as a part of a sentence; None for nothing."""
    if not mode & OTHERS:
        return None
    who = "everybody on this machine" if mode & 0o007 else "its group"
    reads, writes = mode & 0o044, mode & 0o022
    return f"{who} may {'read and change' if reads and writes else 'change' if writes else 'read'} it"


@contextmanager
def for_owner_alone() -> Generator[None]:
    """Files that this process makes within the block are for their owner alone. For commands: a process has one such
    mask, whatever threads it has."""
    before = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(before)
