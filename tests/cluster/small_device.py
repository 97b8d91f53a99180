"""A device so small that a test fills it: a tmpfs, which root can mount."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


class NoDevice(Exception):
    """It cannot be mounted here; the text says why."""


@contextmanager
def small_device(path: Path, size_bytes: int) -> Generator[None]:
    """Mounted at `path`, a directory that is made, as long as the block runs. Raises NoDevice."""
    if os.geteuid() != 0:
        raise NoDevice("mounting a tmpfs takes root")
    path.mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NoDevice(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)
