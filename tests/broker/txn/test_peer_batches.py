"""Questions to another broker share requests, are answered each by its own answer, and fail with the connection."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from odradek.broker.membership.peers import PeerLost
from odradek.broker.txn.peer_batches import IDLE_MS, LANES, TOGETHER_MAX, PeerBatches
from odradek.client.network.connection import Connection
from odradek.protocol.errors import MalformedMessage
from odradek.runtime.tasks import Tasks

pytestmark = pytest.mark.virtual_time


class OtherBrokers:
    """Answer each number with its double, each connection one request after the other; `slow` ones when they may."""

    def __init__(self) -> None:
        self.connections = 0
        self.open = 0
        self.requests: list[list[int]] = []
        self.error: Exception | None = None
        self.refuses = False
        self.slow: set[int] = set()
        self.may_answer = asyncio.Event()

    @asynccontextmanager
    async def connect(self, broker_id: int) -> AsyncGenerator[Connection]:
        await asyncio.sleep(0.001)
        if self.refuses:
            raise PeerLost(f"broker {broker_id} is not there")
        self.connections += 1
        self.open += 1
        try:
            yield cast("Connection", None)
        finally:
            self.open -= 1

    async def ask_all(self, connection: Connection, questions: Sequence[int]) -> Sequence[int]:
        del connection
        self.requests.append(list(questions))
        await asyncio.sleep(0.001)
        if self.slow.intersection(questions):
            await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return [2 * each for each in questions]


@asynccontextmanager
async def asking(brokers: OtherBrokers) -> AsyncGenerator[PeerBatches[int, int]]:
    tasks = Tasks(asyncio.get_running_loop())
    try:
        yield PeerBatches(brokers.connect, brokers.ask_all, tasks)
    finally:
        await tasks.close()


async def test_what_comes_up_together_is_in_one_request() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        assert list(await asyncio.gather(*(peers.ask(1, number) for number in range(3)))) == [0, 2, 4]
        assert list(await asyncio.gather(*(peers.ask(1, number) for number in range(3, 6)))) == [6, 8, 10]
        assert brokers.requests == [[0, 1, 2], [3, 4, 5]]
        assert brokers.connections == 1


async def test_a_question_that_waits_holds_up_no_other() -> None:
    """It is about a transaction that is not complete yet."""
    brokers = OtherBrokers()
    brokers.slow = {1}
    async with asking(brokers) as peers:
        slow = asyncio.ensure_future(peers.ask(1, 1))
        await asyncio.sleep(0.01)
        assert [await peers.ask(1, number) for number in range(2, 6)] == [4, 6, 8, 10]
        assert not slow.done()
        assert brokers.connections == 2, "the second one is used again"
        brokers.may_answer.set()
        assert await slow == 2


async def test_where_all_lanes_wait_the_next_request_has_what_comes_up_meanwhile() -> None:
    brokers = OtherBrokers()
    brokers.slow = set(range(LANES))
    async with asking(brokers) as peers:
        asked: list[asyncio.Future[int]] = []
        for number in range(LANES + 3):
            asked.append(asyncio.ensure_future(peers.ask(1, number)))
            await asyncio.sleep(0.01)
        assert brokers.requests == [[number] for number in range(LANES)]
        brokers.may_answer.set()
        assert list(await asyncio.gather(*asked)) == [2 * number for number in range(LANES + 3)]
        assert brokers.requests[LANES:] == [list(range(LANES, LANES + 3))]
        assert brokers.connections == LANES


async def test_a_lane_that_is_not_opened_leaves_its_question_to_the_others() -> None:
    brokers = OtherBrokers()
    brokers.slow = {1}
    async with asking(brokers) as peers:
        slow = asyncio.ensure_future(peers.ask(1, 1))
        await asyncio.sleep(0.01)
        brokers.refuses = True
        other = asyncio.ensure_future(peers.ask(1, 2))
        await asyncio.sleep(0.01)
        brokers.may_answer.set()
        assert list(await asyncio.gather(slow, other)) == [2, 4]
        brokers.refuses = False
        assert await peers.ask(1, 3) == 6


async def test_a_request_has_no_more_questions_than_it_may() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        count = TOGETHER_MAX + 1
        answers = list(await asyncio.gather(*(peers.ask(1, number) for number in range(count))))
        assert answers == [2 * number for number in range(count)]
        assert [len(request) for request in brokers.requests] == [TOGETHER_MAX, 1]


async def test_each_broker_has_its_own_connection() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        assert list(await asyncio.gather(peers.ask(1, 1), peers.ask(2, 2))) == [2, 4]
        assert (brokers.connections, brokers.requests) == (2, [[1], [2]])


@pytest.mark.parametrize("error", [PeerLost("it is gone"), MalformedMessage("that is no answer")])
async def test_whoever_waits_is_told_that_the_connection_failed(error: Exception) -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        brokers.error = error
        first = asyncio.ensure_future(peers.ask(1, 1))
        await asyncio.sleep(0.0015)
        asked = [first, asyncio.ensure_future(peers.ask(1, 2))]
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in told] == [PeerLost, PeerLost]
        brokers.error = None
        assert await peers.ask(1, 3) == 6, "the next one asks anew"


async def test_whoever_asks_while_there_is_no_connection_is_told() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        brokers.refuses = True
        with pytest.raises(PeerLost, match="broker 1 is not there"):
            await peers.ask(1, 1)
        brokers.refuses = False
        assert await peers.ask(1, 1) == 2


async def test_an_answer_that_nobody_waits_for_any_more_disturbs_no_other() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        gone = asyncio.ensure_future(peers.ask(1, 1))
        other = asyncio.ensure_future(peers.ask(1, 2))
        await asyncio.sleep(0.0015)
        gone.cancel()
        assert await other == 4


async def test_a_connection_is_closed_when_nothing_is_asked_for_long() -> None:
    brokers = OtherBrokers()
    async with asking(brokers) as peers:
        await peers.ask(1, 1)
        assert brokers.open == 1
        await asyncio.sleep(IDLE_MS / 1000 + 1)
        assert brokers.open == 0
        assert await peers.ask(1, 2) == 4
