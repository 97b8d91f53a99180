"""Asks another broker, many questions in one request: what comes up while one request is under way is in the next."""

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
IDLE_MS: Final = 30_000.0
"""After so long without a question a connection is closed."""


class _Queue(Generic[Q, A]):
    """What one broker is to be asked."""

    __slots__ = ("entries", "news")

    def __init__(self) -> None:
        self.entries: list[tuple[Q, asyncio.Future[A]]] = []
        self.news = Signal()


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
            self._tasks.start(self._run(broker_id, queue), f"ask broker {broker_id}")
        queue.entries.append((question, future))
        queue.news.give()
        return await future

    async def _run(self, broker_id: int, queue: _Queue[Q, A]) -> None:
        lost: OSError = PeerLost(f"broker {broker_id} was not asked")
        try:
            async with self._connect(broker_id) as connection:
                with suppress(TimeoutError):
                    while True:
                        await self._ask_what_there_is(connection, queue)
        except OSError as error:
            lost = error
        finally:
            del self._queues[broker_id]
            for _, future in queue.entries:
                if not future.done():
                    future.set_exception(lost)

    async def _ask_what_there_is(self, connection: Connection, queue: _Queue[Q, A]) -> None:
        """Raises TimeoutError where there is nothing for long, OSError."""
        seen = queue.news.count
        while queue.entries:
            asked = queue.entries[:TOGETHER_MAX]
            try:
                answers = await self._ask_all(connection, [question for question, _ in asked])
            except MalformedMessage as error:
                raise PeerLost(str(error)) from error
            del queue.entries[: len(asked)]
            for (_, future), answer in zip(asked, answers, strict=True):
                if not future.done():
                    future.set_result(answer)
        await queue.news.after(seen, IDLE_MS)
