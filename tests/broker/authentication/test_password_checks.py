"""Checks of passwords: two at a time, a slot until the thread has ended, and none that nobody awaits."""

import asyncio

import pytest

from odradek.broker.authentication.mechanism import TooBusy
from odradek.broker.authentication.password_checks import RUNNING_MAX, WAITING_MAX, PasswordChecks
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time(blocking_ms=100)


class Scene:
    """Checks that take 100 ms each, and count themselves."""

    def __init__(self) -> None:
        self.environment = VirtualEnvironment()
        self.tasks = Tasks(self.environment.loop)
        self.checks = PasswordChecks(self.environment, self.tasks)
        self.done: list[int] = []

    def client(self, number: int) -> asyncio.Task[bool]:
        def check() -> bool:
            self.done.append(number)
            return number % 2 == 0

        return self.tasks.start(self.checks.run(check), f"client {number}")


async def test_they_are_done_in_order_two_at_a_time() -> None:
    scene = Scene()
    clients = [scene.client(number) for number in range(5)]
    await scene.environment.sleep(50)
    assert scene.checks.running == RUNNING_MAX
    await scene.environment.sleep(100)
    assert scene.done == [0, 1]
    assert [await client for client in clients] == [True, False, True, False, True]
    assert scene.checks.running == 0


async def test_a_slot_is_taken_until_the_thread_has_ended_though_its_client_has_left() -> None:
    """Else who connects and leaves would have as many threads at work as he likes."""
    scene = Scene()
    for number in range(20):
        client = scene.client(number)
        await scene.environment.sleep(1)
        client.cancel()
        await scene.environment.sleep(1)
        assert scene.checks.running <= RUNNING_MAX
    last = scene.client(100)
    assert await last
    assert scene.done == [0, 1, 100], "those that had not begun are given up"


async def test_what_waits_is_bounded_and_those_who_left_do_not_count() -> None:
    scene = Scene()
    clients = [scene.client(number) for number in range(RUNNING_MAX + WAITING_MAX)]
    await scene.environment.sleep(1)
    with pytest.raises(TooBusy):
        await scene.checks.run(lambda: True)
    clients[-1].cancel()
    await scene.environment.sleep(1)
    waiting = scene.client(0)
    for client in clients[:-1]:
        await client
    assert await waiting


async def test_a_check_that_fails_fails_its_client_alone() -> None:
    scene = Scene()

    def broken() -> bool:
        raise MemoryError("32 MiB")

    with pytest.raises(MemoryError):
        await scene.checks.run(broken)
    assert await scene.client(2)
    assert scene.checks.running == 0


async def test_the_end_of_the_broker_ends_those_that_wait() -> None:
    scene = Scene()
    clients = [scene.client(number) for number in range(4)]
    await scene.environment.sleep(1)
    await scene.tasks.close()
    assert all(client.cancelled() for client in clients)
    await scene.environment.sleep(200)
