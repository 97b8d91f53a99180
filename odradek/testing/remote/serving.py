"""The process of a test's cluster, from within: it answers calls (calls.py) until it is told to stop, or nobody asks.

Calls are carried out in threads, for many of them wait: for a broker to stop, for records to come. The clients are
imported when they are first asked something, which a test with clients of its own may never do.
"""

import inspect
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from odradek.broker.launch.supervisor.control import Message
from odradek.testing.remote.lifeline import Lifeline
from odradek.testing.remote.log_lines import LogLines
from odradek.testing.remote.values import OURS, error_to_json, from_json, to_json
from odradek.testing.running_cluster import Calls, RunningCluster, RunningContents, call_by_name

CALLS_MAX: Final = 64
"""At the same time; what more is asked waits."""
EXPECTED: Final = (AssertionError, TypeError, ValueError, OSError)
"""Errors of Python that say enough in their words; others bring their traceback along."""


class Serving:
    """See the module."""

    def __init__(
        self, lifeline: Lifeline, cluster: RunningCluster, servers: Callable[[], str], log_lines: LogLines | None
    ) -> None:
        """`servers`: of the brokers that run now. `log_lines`: None where the cluster has that call itself."""
        self._lifeline = lifeline
        self._cluster = cluster
        self._servers = servers
        self._more_calls: Calls = {} if log_lines is None else {"log_lines": log_lines.since}
        self._making = threading.Lock()
        self._contents: RunningContents | None = None
        self.is_stopped = False

    def serve(self) -> None:
        """Returns when the test's process has ended, or the cluster has been stopped for it."""
        threads = ThreadPoolExecutor(CALLS_MAX, "call")
        while (message := self._lifeline.next()) is not None:
            if "stop" in message:
                self._answer(message, self._stop)
                return
            threads.submit(self._answer, message, self._call if "call" in message else self._ask_contents)

    def _answer(self, message: Message, carry_out: Callable[[Message], Any]) -> None:
        try:
            answer = {"result": to_json(carry_out(message))}
        except BaseException as error:  # noqa: BLE001 - raised in the process that waits
            if not isinstance(error, EXPECTED) and not type(error).__module__.startswith(OURS):
                error.add_note("in the process of the cluster:\n" + "".join(traceback.format_exception(error)))
            answer = {"error": error_to_json(error)}
        self._lifeline.tell({"id": message["id"], **answer})

    def _call(self, message: Message) -> Any:
        name, arguments = message["call"], from_json(message["arguments"])
        if name in self._more_calls:
            return call_by_name(self._more_calls, name, arguments)
        return self._cluster.call(name, **arguments)

    def _ask_contents(self, message: Message) -> Any:
        name: str = message["contents"]
        arguments, named = from_json(message["arguments"])
        running = self._running_contents()
        method = getattr(running.contents, name)
        if not inspect.iscoroutinefunction(method):
            return method(*arguments, **named)
        return running.run(lambda contents: getattr(contents, name)(*arguments, **named))

    def _running_contents(self) -> RunningContents:
        from odradek.testing.contents_thread import ContentsThread

        with self._making:
            if self._contents is None:
                self._contents = ContentsThread(self._servers)
            return self._contents

    def _stop(self, message: Message) -> None:
        del message
        self.is_stopped = True
        if self._contents is not None:
            self._contents.close()
        self._cluster.stop()
