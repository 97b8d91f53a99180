"""Checks of passwords in helper threads: few at a time, and few that wait, for each takes a tenth of a second and 32
MiB.

A check whose client has left goes on to its end, for no thread can be stopped, and has its slot until then: else who
connects and leaves again would have as many threads at work as he likes. One that has not begun is given up.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.broker.authentication.mechanism import TooBusy
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

RUNNING_MAX: Final = 2
WAITING_MAX: Final = 64

Check = Callable[[], bool]


class PasswordChecks:
    """Those of one broker."""

    def __init__(self, environment: Environment, tasks: Tasks) -> None:
        self._environment = environment
        self._tasks = tasks
        self._waiting: deque[tuple[Check, asyncio.Future[bool]]] = deque()
        self.running = 0

    async def run(self, check: Check) -> bool:
        """What the check says, which a helper thread runs. Raises TooBusy, and what it raises."""
        if self.running >= RUNNING_MAX:
            self._forget_those_left()
            if len(self._waiting) >= WAITING_MAX:
                raise TooBusy(f"{WAITING_MAX} checks of passwords wait already")
        result: asyncio.Future[bool] = self._environment.loop.create_future()
        self._waiting.append((check, result))
        self._begin()
        return await result

    def _begin(self) -> None:
        while self._waiting and self.running < RUNNING_MAX:
            check, result = self._waiting.popleft()
            if not result.done():  # its client is still there
                self.running += 1
                self._tasks.start(self._check(check, result), "check a password")

    async def _check(self, check: Check, result: asyncio.Future[bool]) -> None:
        try:
            fits = await self._environment.run_blocking(check)
        except BaseException as error:
            if not result.done():
                if isinstance(error, Exception):
                    result.set_exception(error)
                else:
                    result.cancel()
            if not isinstance(error, Exception):
                raise
        else:
            if not result.done():
                result.set_result(fits)
        finally:
            self.running -= 1
            self._begin()

    def _forget_those_left(self) -> None:
        self._waiting = deque((check, result) for check, result in self._waiting if not result.done())
