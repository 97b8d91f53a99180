"""Asks another broker, many questions in one request, over a few connections: lanes.

An answer is as late as the slowest of its request, and a question may have to wait until a transaction is complete. So
what comes up meanwhile goes over another lane, and only where all have a request under way is it gathered for the next.
Questions are answered in no order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Generic, TypeVar

from odradek.broker.membership.peers import PeerLost
from odradek.client.network.connection import Connection
from odradek.protocol.errors import MalformedMessage
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks

Q = TypeVar("Q")
A = TypeVar("A")

Connect = Callable[[int], AbstractAsyncContextManager[Connection]]
"""A connection to a broker. Raises OSError, as its block does."""
AskAll = Callable[[Connection, Sequence[Q]], Awaitable[Sequence[A]]]
"""Sends one request; the answers are in the order of the questions."""

TOGETHER_MAX: Final = 1000
"""Questions in one request."""
LANES: Final = 4
"""Connections to one broker at most."""
IDLE_MS: Final = 30_000.0
"""After so long without a question a connection is closed."""


class _Lane(Generic[Q, A]):
    """One connection."""

    __slots__ = ("asked", "news")

    def __init__(self) -> None:
        self.asked: list[tuple[Q, asyncio.Future[A]]] = []
        """In the request that is under way."""
        self.news = Signal()


class _Queue(Generic[Q, A]):
    """What one broker is to be asked."""

    __slots__ = ("entries", "idle", "is_expected", "lanes")

    def __init__(self) -> None:
        self.entries: list[tuple[Q, asyncio.Future[A]]] = []
        self.lanes = 0
        self.idle: list[_Lane[Q, A]] = []
        self.is_expected = False
        """A lane is being opened, or was woken, and takes what there is."""

    def wake(self) -> bool:
        """Whether a lane sees to the entries that had nothing to do."""
        if self.idle:
            self.idle.pop().news.give()
            self.is_expected = True
        return self.is_expected


class PeerBatches(Generic[Q, A]):
    """To all other brokers."""

    __slots__ = ("_ask_all", "_connect", "_queues", "_tasks")

    def __init__(self, connect: Connect, ask_all: AskAll[Q, A], tasks: Tasks) -> None:
        self._connect = connect
        self._ask_all = ask_all
        self._tasks = tasks
        self._queues: dict[int, _Queue[Q, A]] = {}
        """Of brokers that there is a connection to."""

    async def ask(self, broker_id: int, question: Q) -> A:
        """Raises OSError: nobody knows whether that broker has heard of it."""
        future: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = _Queue()
        queue.entries.append((question, future))
        if not queue.is_expected and not queue.wake() and queue.lanes < LANES:
            queue.lanes += 1
            queue.is_expected = True
            self._tasks.start(self._run(broker_id, queue), f"ask broker {broker_id}")
        return await future

    async def _run(self, broker_id: int, queue: _Queue[Q, A]) -> None:
        lost: OSError = PeerLost(f"broker {broker_id} was not asked")
        lane: _Lane[Q, A] = _Lane()
        try:
            async with self._connect(broker_id) as connection:
                with suppress(TimeoutError):
                    while True:
                        await self._ask_what_there_is(connection, queue, lane)
        except OSError as error:
            lost = error
        finally:
            self._close(broker_id, queue, lane, lost)

    def _close(self, broker_id: int, queue: _Queue[Q, A], lane: _Lane[Q, A], lost: OSError) -> None:
        """Whoever waits for this lane is told; if it was the last one, all are."""
        failed = lane.asked
        queue.lanes -= 1
        if lane in queue.idle:
            queue.idle.remove(lane)
        if queue.lanes == 0:
            del self._queues[broker_id]
            failed = failed + queue.entries
        elif not lane.asked:  # it was expected, or idle
            queue.is_expected = False
            if queue.entries:
                queue.wake()  # else lanes with a request under way take them
        for _, future in failed:
            if not future.done():
                future.set_exception(lost)

    async def _ask_what_there_is(self, connection: Connection, queue: _Queue[Q, A], lane: _Lane[Q, A]) -> None:
        """Raises TimeoutError where there is nothing for long, OSError."""
        queue.is_expected = False
        while queue.entries:
            lane.asked, queue.entries = queue.entries[:TOGETHER_MAX], queue.entries[TOGETHER_MAX:]
            try:
                answers = await self._ask_all(connection, [question for question, _ in lane.asked])
            except MalformedMessage as error:
                raise PeerLost(str(error)) from error
            asked, lane.asked = lane.asked, []
            for (_, future), answer in zip(asked, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        queue.idle.append(lane)
        await lane.news.after(lane.news.count, IDLE_MS)
