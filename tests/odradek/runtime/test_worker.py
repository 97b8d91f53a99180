"""A worker in helper threads: what it is asked and answers, and how it is stopped between two pieces of work."""

import asyncio
import threading
from collections.abc import Generator

import pytest

from odradek.runtime.environment import Environment
from odradek.runtime.worker import GiveWay, Stopped, Talk, WorkerEnded


def echo(disk: str, give_way: GiveWay) -> Talk:
    question = yield b"ready"
    while question != b"end":
        give_way()
        question = yield disk.encode() + b": " + question


async def test_it_greets_and_answers_one_thing_after_another() -> None:
    worker = await Environment().start_worker("unused", echo, "disk", in_process=False)
    assert worker.greeting == b"ready"
    assert [await worker.ask(question) for question in (b"a", b"b")] == [b"disk: a", b"disk: b"]
    with pytest.raises(WorkerEnded, match="ended without an answer"):
        await worker.ask(b"end")
    await worker.close()


async def test_what_it_raises_is_raised() -> None:
    def broken(disk: None, give_way: GiveWay) -> Talk:
        yield b""
        raise ZeroDivisionError

    worker = await Environment().start_worker("unused", broken, None, in_process=False)
    with pytest.raises(ZeroDivisionError):
        await worker.ask(b"")


async def test_one_that_is_closed_stops_where_it_gives_way() -> None:
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(disk: None, give_way: GiveWay) -> Generator[bytes, bytes, None]:
        yield b""
        began.set()
        assert goes_on.wait(30)
        try:
            give_way()
        except Stopped:
            ended.set()
            raise
        yield b"too much"

    environment = Environment()
    worker = await environment.start_worker("unused", slow, None, in_process=False)
    task = asyncio.ensure_future(worker.ask(b""))
    assert await environment.run_blocking(began.wait, 30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await worker.close()
    goes_on.set()
    assert await environment.run_blocking(ended.wait, 30)
