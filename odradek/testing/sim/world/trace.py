"""All that happens in a world, as one hash: two runs with the same one did the same.

    trace.note("b1", "disk", "sync", 120)

A note is the virtual time and some words. With `log` each is also handed over as a line as it comes, for a person to
read, and for finding the first one in which two runs differ. Nothing may get into one that is not the same in each run:
no address, no order of a set. Words are texts and numbers, or tuples of these; nothing else is taken.
"""

import marshal
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from odradek.testing.sim.world.scheduler import START_S, Scheduler

BATCH_NOTES: Final = 512


class Trace:
    """See the module. `lines` counts the notes."""

    def __init__(self, scheduler: Scheduler, log: Callable[[str], object] | None = None) -> None:
        self._scheduler = scheduler
        self._log = log
        self._hash = blake2b(digest_size=16)
        self._pending: list[tuple[float, tuple[Any, ...]]] = []
        self._taken = 0

    @property
    def lines(self) -> int:
        return self._taken + len(self._pending)

    def note(self, *words: object) -> None:
        pending = self._pending
        pending.append((self._scheduler.now_s, words))
        if self._log is not None:
            self._log(f"{self._scheduler.now_s - START_S:.6f} {' '.join(map(str, words))}\n")
        if len(pending) >= BATCH_NOTES:
            self._take_in()

    @property
    def digest(self) -> str:
        """The hash of all notes so far."""
        self._take_in()
        return self._hash.hexdigest()

    def _take_in(self) -> None:
        # Version 2: the bytes follow from the values alone, not from which of them are one object.
        self._hash.update(b"".join([marshal.dumps(each, 2) for each in self._pending]))
        self._taken += len(self._pending)
        self._pending.clear()
