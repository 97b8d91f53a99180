"""That something has happened, for a coroutine that looks again whenever it has.

while True:
    seen = signal.count
    …                                   # looks at everything there is
    await signal.after(seen)            # returns at once if something happened while it looked
"""

from odradek.runtime.progress import Progress


class Signal:
    """In the loop's thread only. However often it is given, who waits is woken once."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given = Progress()

    @property
    def count(self) -> int:
        """How often it was given."""
        return self._given.value

    def give(self) -> None:
        self._given.advance(self._given.value + 1)

    async def after(self, count: int, timeout_ms: float | None = None) -> None:
        """Returns once it was given more often than that. Raises TimeoutError, or the error given to `fail`."""
        await self._given.reach(count + 1, timeout_ms)

    def fail(self, error: Exception) -> None:
        """Whoever waits, or will, gets this error."""
        self._given.fail(error)
