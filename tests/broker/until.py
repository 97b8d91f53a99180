"""A wait for what nobody tells of."""

import asyncio
from collections.abc import Callable


async def until(is_so: Callable[[], object], timeout_s: float = 10.0) -> None:
    """Returns when it is so. Raises TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
