"""Syncs of many logs that somebody waits for, in a few helper threads: each takes what has come while the last ones
were under way, as a database commits in groups.

A helper thread of its own for each sync costs two switches of threads, more than the append and its answer.
"""

import errno
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

LANES: Final = 8
"""Helper threads that sync at the same time: a device does some at once. With more of them nothing is gained."""

Sync = Callable[[], None]
Ended = Callable[[OSError | None], None]


class Syncs:
    """The syncs of one broker."""

    def __init__(self, environment: Environment, tasks: Tasks) -> None:
        self._environment = environment
        self._tasks = tasks
        self._waiting: deque[tuple[Sync, Ended]] = deque()
        self._lanes = 0

    def add(self, sync: Sync, ended: Ended) -> None:
        """Has `sync` done in a helper thread; then `ended` is called in the loop, with what it failed with."""
        self._waiting.append((sync, ended))
        if self._lanes < LANES:
            self._lanes += 1
            self._tasks.start(self._lane(), "sync logs")

    async def _lane(self) -> None:
        call_soon = self._environment.loop.call_soon
        try:
            while self._waiting:
                count = -(-len(self._waiting) // LANES)  # what waits is for all lanes
                group = [self._waiting.popleft() for _ in range(count)]
                errors = await self._environment.run_blocking(_done, [sync for sync, _ in group])
                for (_, ended), error in zip(group, errors, strict=True):
                    call_soon(ended, error)
        finally:
            self._lanes -= 1


def _done(syncs: Sequence[Sync]) -> list[OSError | None]:
    """Does one after the other, whatever becomes of those before."""
    errors: list[OSError | None] = []
    for sync in syncs:
        try:
            sync()
        except OSError as error:
            errors.append(error)
        except Exception as error:  # a mistake of ours: nobody may take it for synced, or wait for ever
            logger.exception("a sync failed in a way that was not expected")
            errors.append(OSError(errno.EIO, f"{type(error).__name__}: {error}"))
        else:
            errors.append(None)
    return errors
