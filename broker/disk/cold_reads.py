"""Reading a log without making everybody wait for the device.

What is in the page cache is read in the event loop's thread, which takes microseconds. What is not is fetched by a
helper thread into the page cache first, and then read in the loop: the state of a log belongs to the loop alone.
"""

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import run_together

T = TypeVar("T")

TRIES: Final = 16
"""A search goes from place to place, and memory may be so short that a page is gone again. After this many it waits."""
READ_AHEAD_BYTES: Final = 1 << 20
"""What a helper thread fetches at least: whoever reads here reads on."""


async def warm(disk: Disk, environment: Environment, missing: Collection[NotCached]) -> None:
    """Returns once these ranges are in the page cache, or cannot be read, which the next reader finds out."""
    await run_together([environment.run_blocking(_fetch_in, disk, each) for each in missing], "fetch in")


def _fetch_in(disk: Disk, missing: NotCached) -> None:
    try:
        disk.read_range(missing.path, missing.position, max(missing.size_bytes, READ_AHEAD_BYTES))
    except OSError:
        return  # the reader looks for its offset anew, as where it was deleted meanwhile, or meets the same error


async def read_without_blocking(disk: Disk, environment: Environment, read: Callable[[], T]) -> T:
    """What `read` returns. It is called again after each range that had to be fetched, and must be without effect."""
    for _ in range(TRIES):
        try:
            with disk.cached_only():
                return read()
        except NotCached as missing:
            await warm(disk, environment, [missing])
    return read()
