"""Requests that name thousands of things: others have the event loop meanwhile.

A helper thread decodes them and encodes their answers, unless it is records that make them large (`Api.has_records`:
decoding leaves these as they are), and their handlers give the loop a turn now and then. A smaller request is handled
in one go up to its first wait for something, on which connections rely (`Api.is_eager`).
"""

from collections.abc import Mapping
from typing import Final

from odradek.broker.handling.context import Api, Call
from odradek.runtime.tasks import breathe

LARGE_BYTES: Final = 32 * 1024
"""Some 1,800 partitions of 18 bytes, which take 20 ms or so."""
STEPS_TOGETHER: Final = 500
"""Of a handler, each of which takes some microseconds."""


def is_large(api: Api, size_bytes: int) -> bool:
    """`size_bytes`: of the request, with the length before it (`RequestTimes.size_bytes`). Who begins requests, who
    decodes them and who handles them have to be of one mind."""
    return size_bytes > LARGE_BYTES and not api.has_records


def eager_api(served: Mapping[int, Api], frame: memoryview, size_bytes: int) -> Api | None:
    """The API of the request, if it may begin while others of that API wait (`Api.is_eager`): a large one waits itself
    before it has done anything, and the next one would overtake it."""
    api = served.get(int.from_bytes(frame[:2], "big"))
    return api if api is not None and api.is_eager and not is_large(api, size_bytes) else None


class Steps:
    """Counts what a handler has done for a request, which holds no records."""

    __slots__ = ("_count", "is_large")

    def __init__(self, call: Call) -> None:
        self._count = 0
        self.is_large = call.times.size_bytes > LARGE_BYTES

    async def step(self) -> None:
        """Something is done. After some of it the loop has a turn, if the request is large."""
        self._count += 1
        if self.is_large and self._count % STEPS_TOGETHER == 0:
            await breathe()
