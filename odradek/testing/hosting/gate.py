"""Through what a broker in a thread reaches the world, so that it can be paused and killed like a process.

Its disk (gated_disk.py) and its environment (hosted_environment.py) ask before each call, in whatever thread: a call
waits while the broker is paused, and raises Killed once it is killed.
"""

import threading

from odradek.testing.killed import Killed


class Gate:
    """Of one life of a broker, from a start to the stop or kill that ends it."""

    __slots__ = ("_open", "is_killed", "is_paused")

    def __init__(self) -> None:
        self.is_killed = False
        self.is_paused = False
        self._open = threading.Event()

    def check(self) -> None:
        """Waits while the broker is paused. Raises Killed."""
        while self.is_paused and not self.is_killed:
            self._open.wait()
        if self.is_killed:
            raise Killed

    def pause(self) -> None:
        self._open.clear()
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._open.set()

    def kill(self) -> None:
        """Whoever waits goes on, to find that the broker is gone."""
        self.is_killed = True
        self._open.set()
