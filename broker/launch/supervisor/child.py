"""One process of the supervisor: what it is told, what it has told, and how it ended."""

import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from odradek.broker.launch.supervisor.child_process import ChildProcess, begin_child
from odradek.broker.launch.supervisor.control import Control, Message, control_of


class Child:
    """A program that runs or does not. `start` alternates with the end of the process."""

    def __init__(self, name: str, module: str, on_change: Callable[[], None]) -> None:
        """`on_change`: called when anything of this has changed."""
        self.name = name
        self.ready: Mapping[str, Any] | None = None
        """What it has told when it was ready; None before that, and after its end."""
        self.done: set[str] = set()
        """The orders that it has carried out since it was started."""
        self.failure = ""
        """Why it ended, as it said itself."""
        self._module = module
        self._on_change = on_change
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Control | None = None
        self._has_told_all = False

    @property
    def is_running(self) -> bool:
        """Whether it was started, and its end is not known."""
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    async def start(self, begin: Mapping[str, Any], waiting: ChildProcess | None = None) -> None:
        """`waiting`: a process that was begun before. Raises OSError."""
        assert self._process is None, f"{self.name} is running"
        self.ready, self.failure = None, ""
        self.done.clear()
        self._has_told_all = False
        self._process, lifeline = waiting or begin_child(self._module, self.name)
        try:
            lifeline.setblocking(False)
            self._control = await control_of(lifeline, self._told, self._lifeline_ended)
        except BaseException:
            lifeline.close()
            self._has_told_all = True  # it has no lifeline
            self.kill()
            raise
        self._control.tell({"begin": begin})

    def order(self, order: str) -> None:
        """Of control.py. One that has ended does not hear it."""
        self.tell({"do": order})

    def tell(self, message: Message) -> None:
        if self._control is not None:
            self._control.tell(message)

    def kill(self) -> None:
        """SIGKILL; its end is learned by `reap`."""
        if self._process is not None:
            self._process.kill()

    def let_go(self) -> None:
        """Ends its lifeline."""
        if self._control is not None:
            self._control.close()

    def reap(self) -> str | None:
        """How it ended, in a few words, once that is known, and what it had told has been read; None before that. To be
        called when a child of this process has ended, and after each `on_change`."""
        process = self._process
        if process is None or (code := process.poll()) is None or not self._has_told_all:
            return None
        self._process = None
        self.ready = None
        if self._control is not None:
            self._control.close()
            self._control = None
        return _ending(code)

    def _lifeline_ended(self) -> None:
        self._has_told_all = True
        self._on_change()

    def _told(self, message: Message) -> None:
        for kind, value in message.items():
            if kind == "ready":
                self.ready = value
            elif kind == "done":
                self.done.add(value)
            else:
                assert kind == "failed", kind
                self.failure = value
        self._on_change()


def _ending(code: int) -> str:
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"
