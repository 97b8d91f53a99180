"""A coroutine that is begun at once, up to its first wait, and awaited later: by another task, or by none.

A task of its own would begin in a later turn of the loop, and cost more than most of what is done here. What runs
before the first wait runs in the task that begins it: if another one awaits the rest, no `asyncio.timeout` may have
been entered there.
"""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class EagerCall(Generic[_T]):
    """`await` gives what the coroutine returns, or raises what it raises. May be awaited once."""

    __slots__ = ("_awaited", "_coroutine", "_error", "_result", "is_done")

    def __init__(self, coroutine: Coroutine[Any, Any, _T]) -> None:
        self._coroutine = coroutine
        self._awaited: Any = None
        """What it waits for, as the coroutine gave it to the task that ran it: a future, or None for a turn."""
        self._result: _T | None = None
        self._error: Exception | None = None
        self.is_done = False
        """Whether there is nothing to wait for any more."""
        self._step(coroutine.send, None)

    @property
    def is_ready(self) -> bool:
        """Whether it would go on at once if it were awaited now."""
        return self.is_done or (self._awaited is not None and self._awaited.done())

    def __await__(self) -> Generator[Any, Any, _T]:
        while not self.is_done:
            yield from self._to_next_wait()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # None only where _T is

    @types.coroutine
    def while_it(self, is_so: Callable[[], bool]) -> Generator[Any, Any, None]:
        """Goes on while that is so of it, or to its end. It may be awaited afterwards, by another task, too."""
        while not self.is_done and is_so():
            yield from self._to_next_wait()

    def _to_next_wait(self) -> Generator[Any, Any, None]:
        """Goes on when what it waits for is done. May end by what is thrown into the task that awaits."""
        if not self.is_ready:
            try:
                yield self._awaited
            except BaseException as error:
                if not self.is_done:
                    self._throw(error)
                    return
                raise
        self._step(self._coroutine.send, None)

    def cancel(self) -> None:
        """Ends it, as the end of its task would; nobody is to await it then. Does nothing once it is done."""
        if self.is_done:
            return
        if self._awaited is not None:
            self._awaited.cancel()
        try:
            self._throw(asyncio.CancelledError())
        except asyncio.CancelledError:
            self.is_done = True

    def _throw(self, error: BaseException) -> None:
        self._step(self._coroutine.throw, error)

    def _step(self, step: Callable[[Any], Any], given: object) -> None:
        """Goes on to the next wait, or to the end."""
        try:
            self._awaited = step(given)
        except StopIteration as stop:
            self._result, self.is_done = stop.value, True
        except Exception as error:  # noqa: BLE001 - raised to who awaits it
            self._error, self.is_done = error, True
