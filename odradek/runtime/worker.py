"""A worker: long computations on files, asked for as bytes and answered as bytes, outside of the event loop's thread.

    worker = await environment.start_worker(MODULE, serve, disk, in_process=True)
    worker.greeting                    # what `serve` yields first
    answer = await worker.ask(question)
    await worker.close()               # always: it is gone when this returns

What it does is a generator, `serve`: it yields the greeting, is sent a question, and yields the answer. It runs in a
process of its own (worker_process.py), in a helper thread (here), or in a simulated process: the same bytes travel in
each case, and nothing else is shared. Between two pieces of work it calls `give_way`, which raises Stopped when nobody
waits for the answer any more. A worker's process whose owner is gone throws Stopped in between two questions, too.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Protocol

Talk = Generator[bytes, bytes, None]
"""Yields the greeting and then an answer for each question that it is sent."""

GiveWay = Callable[[], None]
"""Called between two pieces of work. Raises Stopped."""


class WorkerUnavailable(Exception):
    """A worker cannot be started in this place; the text says why."""


class WorkerEnded(Exception):
    """The worker ended before it answered, or what it answered cannot be understood; the text says how."""


class Stopped(Exception):
    """What the worker works on is not wanted any more."""


class Worker(Protocol):
    """One worker, which is asked one thing at a time."""

    @property
    def greeting(self) -> bytes: ...

    async def ask(self, question: bytes) -> bytes:
        """Raises WorkerEnded."""
        ...

    async def close(self) -> None:
        """Ends it, whatever it does. What it wrote by then stays."""
        ...


Compute = Callable[[Callable[[bytes], bytes], bytes], Awaitable[bytes]]
"""Calls the function with the bytes, in a helper thread."""


class WorkerInThread:
    """A worker in helper threads of this process, one after another."""

    def __init__(self, compute: Compute, give_way: GiveWay, serve: Callable[[GiveWay], Talk]) -> None:
        """`give_way`: for a helper thread, what lets others run."""
        self._compute = compute
        self._let_others_run = give_way
        self._is_stopped = False
        self._talk = serve(self._give_way)
        self.greeting = next(self._talk)

    async def ask(self, question: bytes) -> bytes:
        return await self._compute(self._answer, question)

    async def close(self) -> None:
        """A thread cannot be ended from outside: it stops by itself, at the next batch."""
        self._is_stopped = True

    def _answer(self, question: bytes) -> bytes:
        try:
            return self._talk.send(question)
        except StopIteration:
            raise WorkerEnded("it ended without an answer") from None

    def _give_way(self) -> None:
        if self._is_stopped:
            raise Stopped
        self._let_others_run()
