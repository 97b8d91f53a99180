"""A wait of one coroutine for something that others do, as often as it likes: a future, made anew for each wait."""

import asyncio


class Wakeup:
    """Whoever waits looks again afterwards: what happens while nobody waits is forgotten."""

    __slots__ = ("_future", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self) -> None:
        """Returns with the next `wake`."""
        self._future = self._loop.create_future()
        try:
            await self._future
        finally:
            self._future = None
