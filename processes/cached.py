"""A folder in the user's cache that is made once: whole or not at all, by one process while others wait for it.

path = cached("kafka-python", "a1b2c3", lambda folder: ...)
"""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

MADE = "made"


def cached(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The folder `name`-`key`. `make` fills it, at the path where it stays; after an error it starts with an empty one.

    Raises what `make` raises.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    parent = Path(base, "odradek")
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"{name}-{key}"
    with open(parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / MADE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            (folder / MADE).touch()
    return folder
