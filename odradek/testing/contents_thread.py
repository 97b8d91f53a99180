"""The clients of the test kit in a thread of their own: `Contents` for callers that have no event loop, or block it."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from odradek.testing.contents import Contents
from odradek.testing.hosting.loop_thread import LoopThread
from odradek.testing.own_client import THREAD_NAME

T = TypeVar("T")


class ContentsThread:
    """See the module: a `RunningContents`."""

    def __init__(self, servers: Callable[[], str]) -> None:
        """`servers`: as `Contents` has it."""
        self.contents: Final = Contents(servers)
        self._thread = LoopThread(THREAD_NAME)

    def run(self, ask: Callable[[Contents], Coroutine[Any, Any, T]]) -> T:
        """Returns and raises what the coroutine does."""
        return self._thread.run(ask(self.contents))

    def close(self) -> None:
        self._thread.run(self.contents.close_clients())
        self._thread.end()
