"""New partitions whose turn to be opened has not come yet.

To open one takes a millisecond of directories and files, and a topic may have thousands: opened in one go they would
keep heartbeats and the lease waiting. So a few are opened in each turn of the event loop, in the order in which they
came, and who asks for one sooner opens it himself (table.py).
"""

from collections.abc import Callable
from itertools import islice

from odradek.broker.directories.checkpoints import Key
from odradek.runtime.tasks import Tasks, breathe

OPENED_AT_ONCE = 16
"""So many of one change are opened with it, and so many of the others in a turn of the loop."""


class PendingOpens:
    """See the module. What is added is opened soon, unless it is discarded before."""

    def __init__(self, tasks: Tasks, open_partition: Callable[[Key], None]) -> None:
        self._tasks = tasks
        self._open_partition = open_partition
        self._due: dict[Key, None] = {}
        self._is_at_work = False

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def add(self, key: Key) -> None:
        self._due[key] = None
        if not self._is_at_work:
            self._is_at_work = True
            self._tasks.start(self._work(), "open new partitions")

    def discard(self, key: Key) -> None:
        self._due.pop(key, None)

    def clear(self) -> None:
        self._due.clear()

    def open(self, key: Key) -> None:
        """Opens one that is due now, before its turn."""
        del self._due[key]
        self._open_partition(key)

    async def _work(self) -> None:
        try:
            while self._due:
                await breathe()
                for key in list(islice(self._due, OPENED_AT_ONCE)):
                    self.open(key)
        finally:
            self._is_at_work = False
