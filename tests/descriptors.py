"""Which files this process holds open. What other tests left open may be closed at any moment: only one's own count."""

import os
from pathlib import Path

import pytest

DESCRIPTORS = Path("/proc/self/fd")


def open_below(directory: Path) -> list[str]:
    """The paths of all descriptors on `directory` and on files below it, sorted; "PATH (deleted)" for a removed file.
    Skips the test where a process cannot see its descriptors."""
    if not DESCRIPTORS.exists():
        pytest.skip("needs /proc to see which descriptors are open")
    directory, paths = directory.resolve(), list[str]()
    for descriptor in os.listdir(DESCRIPTORS):
        try:
            path = os.readlink(DESCRIPTORS / descriptor)
        except FileNotFoundError:  # that of the listing itself, or one closed meanwhile
            continue
        if Path(path).is_relative_to(directory):
            paths.append(path)
    return sorted(paths)
