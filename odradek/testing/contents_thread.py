"""The clients of the test kit in a thread of their own: `Contents` for callers that have no event loop, or block it."""

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.testing.hosting.loop_thread import LoopThread
from odradek.testing.own_client import THREAD_NAME

if TYPE_CHECKING:  # see `contents`
    from odradek.testing.contents import Contents

T = TypeVar("T")


class ContentsThread:
    """See the module: a `RunningContents`."""

    def __init__(self, servers: Callable[[], str]) -> None:
        """`servers`: as `Contents` has it."""
        self._servers = servers
        self._contents: Contents | None = None
        self._making = threading.Lock()  # threads of a test share one
        self._thread = LoopThread(THREAD_NAME)

    @property
    def contents(self) -> "Contents":
        """Imported when it is first used: a test that uses another project's client alone can do without, and Odradek's
        own takes a tenth of the time in which a new process has three brokers."""
        with self._making:
            if self._contents is None:
                from odradek.testing.contents import Contents

                self._contents = Contents(self._servers)
            return self._contents

    def run(self, ask: "Callable[[Contents], Coroutine[Any, Any, T]]") -> T:
        """Returns and raises what the coroutine does."""
        return self._thread.run(ask(self.contents))

    def close(self) -> None:
        if self._contents is not None:
            self._thread.run(self._contents.close_clients())
        self._thread.end()
