"""Sends by the clock, whatever becomes of those before: the latency of each counts from the moment it was due.

A client that waited for an answer before it sent again would leave out the sends that a pause held back (coordinated
omission). Every send is a task here, begun when it is due; a pause of the client is in the latency of all that fell due
in it. The moments come from a thread, for the timers of an event loop come up to a millisecond late.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from benchmarks.contenders.job import AwaitedSend


async def drive(send: AwaitedSend, values: Sequence[bytes], dues: Sequence[float]) -> list[float]:
    """Sends each value when it is due, by the monotonic clock in seconds, and waits for all of them.

    Seconds from due to acknowledged, in the order of the sends. Raises the first error of a send.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[float]] = []

    async def one(value: bytes, due: float) -> float:
        await send(value)
        return time.monotonic() - due

    def begin(value: bytes, due: float) -> None:
        tasks.append(loop.create_task(one(value, due)))

    def fire(number: int) -> None:
        loop.call_soon_threadsafe(begin, values[number], dues[number])

    await asyncio.to_thread(tick, dues, fire)
    return await asyncio.gather(*tasks)


def tick(dues: Sequence[float], fire: Callable[[int], None]) -> None:
    """Calls `fire` with the number of each moment when it has come, in this thread."""
    for number, due in enumerate(dues):
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)  # until it is due
        fire(number)


def dues_of(count: int, rate_per_s: float, begin: float) -> list[float]:
    """When each of `count` sends is due: at `begin`, and at even distances from it on."""
    return [begin + number / rate_per_s for number in range(count)]
