"""Takes partitions and gives them up, one change after the other, as the membership says.

Revoke: nothing more is handed out; what the program has in work is waited for, until the deadline; what is done is
committed; `on_revoked` is called; what it has finished is committed, too; the partitions are given up.
Assigned: nothing is handed out before `on_assigned` has ended, while it is looked up already where reading begins.
Lost: at once nothing is read any more, and nothing committed; a Revoke under way is cut short; `on_lost` is called.

The callbacks run without a lock: they may commit, seek and ask for positions. What one raises is raised to the program
when it asks for records. One that has not ended at the deadline of a Revoke goes on, and is waited for no longer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from math import inf
from typing import Final

from odradek.client.cluster.waiters import Waiters
from odradek.client.consumer.config import RebalanceCallback
from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.membership.actions import Assigned, Lost, Revoke
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks, breathe

__all__ = ["Callbacks", "PartitionChanges"]

logger = logging.getLogger(__name__)

COMMIT_MS_MIN: Final = 1_000.0
"""So much of the time until the deadline is kept for the commit, if there is that much."""

Partitions = frozenset[TopicPartition]


class Callbacks:
    """Of the program; None: it does not want to know. Without `on_lost`, `on_revoked` is told of what is lost."""

    def __init__(
        self,
        on_assigned: RebalanceCallback | None,
        on_revoked: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        self.on_assigned = on_assigned
        self.on_revoked = on_revoked
        self.on_lost = on_revoked if on_lost is None else on_lost


class PartitionChanges:
    """`place`: has it looked up where partitions begin. `commit`: commits what is done of them, until a deadline.
    `given_up`: tells the membership. `failed`: what the program is told when it asks next."""

    def __init__(
        self,
        name: str,
        core: ConsumerCore,
        callbacks: Callbacks,
        environment: Environment,
        tasks: Tasks,
        *,
        place: Callable[[Partitions], None],
        commit: Callable[[Partitions, float], Awaitable[None]],
        given_up: Callable[[Partitions], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.waits_for_work = True
        """False where the program has said that it wants nothing more: it may never ask again."""
        self._close_by_ms = inf
        self.callbacks = callbacks
        self._name = name
        self._core = core
        self._environment = environment
        self._tasks = tasks
        self._place = place
        self._commit = commit
        self._given_up = given_up
        self._failed = failed
        self._changes: deque[Assigned | Revoke | Lost] = deque()
        self._lost: set[TopicPartition] = set()
        """Of those whose Lost waits for its turn."""
        self._told: set[TopicPartition] = set()
        """Partitions that `on_revoked` was told of, and that are not given up yet."""
        self._worker: asyncio.Task[None] | None = None
        self._callback: asyncio.Task[None] | None = None
        self._news = Waiters(environment)

    def runs_in_callback(self) -> bool:
        """Whether it is a callback that asks."""
        return self._callback is not None and self._callback is asyncio.current_task(self._environment.loop)

    def close(self, by_ms: float) -> None:
        """Waits for nothing that the program has in work any more, and for its callbacks until then."""
        self.waits_for_work = False
        self._close_by_ms = by_ms
        self.wake()

    def add(self, change: Assigned | Revoke | Lost) -> None:
        """What has no effect but later, but for this: from now on nothing is handed out of what is taken away."""
        match change:
            case Revoke():
                self._core.hold(change.partitions)
            case Lost():
                self._lost |= change.partitions
                self._core.revoked(change.partitions)
            case Assigned():
                pass
        self._changes.append(change)
        if self._worker is None:
            self._worker = self._tasks.start(self._work(), f"{self._name}: rebalance")
        self.wake()

    def wake(self) -> None:
        """The program may be done with something."""
        if len(self._news):
            self._news.wake()

    async def _work(self) -> None:
        try:
            while self._changes:
                match change := self._changes.popleft():
                    case Assigned():
                        await self._take(change.partitions)
                    case Revoke():
                        await self._give_up(change)
                    case Lost():
                        await self._lose(change.partitions)
        finally:
            self._worker = None

    # --------------------------------------------------------------------------------------------------------- taking
    async def _take(self, partitions: Partitions) -> None:
        partitions -= self._lost
        if not partitions:
            return
        self._core.assigned_unplaced(partitions)
        callback = self.callbacks.on_assigned
        if callback is None:
            self._place(partitions)
            return
        self._core.hold(partitions)
        self._place(partitions)
        await self._call(callback, partitions, inf)
        self._core.let_go(partitions - self._revoking())

    def _revoking(self) -> Partitions:
        """What is to be given up next."""
        return frozenset[TopicPartition]().union(
            *(each.partitions for each in self._changes if isinstance(each, Revoke))
        )

    # ------------------------------------------------------------------------------------------------------ giving up
    async def _give_up(self, revoke: Revoke) -> None:
        partitions = revoke.partitions
        self._core.hold(partitions)
        now_ms = self._environment.monotonic_ms()
        work_until_ms = revoke.deadline_ms - min(COMMIT_MS_MIN, max(0.0, revoke.deadline_ms - now_ms) / 2)
        await self._drained(partitions, work_until_ms)
        if not self._is_lost(partitions):
            await self._commit(partitions, min(revoke.deadline_ms, self._close_by_ms))
        callback = self.callbacks.on_revoked
        if callback is not None and not self._is_lost(partitions):
            self._told |= partitions
            await self._call(callback, partitions, work_until_ms)
            if not self._is_lost(partitions):
                await self._commit(partitions, min(revoke.deadline_ms, self._close_by_ms))
        if self._is_lost(partitions):
            return  # its turn comes next
        self._told -= partitions
        self._core.revoked(partitions)
        self._given_up(partitions)

    def _is_lost(self, partitions: Partitions) -> bool:
        return not self._lost.isdisjoint(partitions)

    async def _drained(self, partitions: Partitions, until_ms: float) -> None:
        """Returns when the program is done with what it has of these, or it is too late."""
        while self.waits_for_work and not self._is_lost(partitions):
            if not any(self._core.in_work_count(partition) for partition in partitions):
                return
            if self._environment.monotonic_ms() >= until_ms:
                logger.warning(
                    "%s: the program is not done with records of partitions that have to be given up: others read them "
                    "again",
                    self._name,
                )
                return
            await self._news.wait(until_ms)

    async def _lose(self, partitions: Partitions) -> None:
        callback = self.callbacks.on_lost
        news = partitions - self._told
        if callback is not None and news:
            await self._call(callback, news, inf)
        self._lost -= partitions
        self._told -= partitions
        self._given_up(partitions)

    # ------------------------------------------------------------------------------------------------------ callbacks
    async def _call(self, callback: RebalanceCallback, partitions: Partitions, until_ms: float) -> None:
        """Returns when it has ended; earlier at `until_ms`, or when the partitions are lost meanwhile."""
        task = self._tasks.start(_run(callback, partitions), f"{self._name}: {_name_of(callback)}")
        self._callback = task
        task.add_done_callback(partial(self._called, callback))
        is_loss = self._is_lost(partitions)
        while not task.done() and (is_loss or not self._is_lost(partitions)):
            if self._environment.monotonic_ms() >= min(until_ms, self._close_by_ms):
                await breathe()
                if not task.done():  # else it waits for nothing, and the time had been over before
                    logger.warning("%s: %s takes too long and is waited for no longer", self._name, _name_of(callback))
                break
            await self._news.wait(min(until_ms, self._close_by_ms))

    def _called(self, callback: RebalanceCallback, task: asyncio.Task[None]) -> None:
        if self._callback is task:
            self._callback = None
        self._news.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)


async def _run(callback: RebalanceCallback, partitions: Partitions) -> None:
    result = callback(partitions)
    if isawaitable(result):
        await result


def _name_of(callback: RebalanceCallback) -> str:
    return getattr(callback, "__qualname__", repr(callback))
