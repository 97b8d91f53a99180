"""Notices code that blocks an event loop, and where it stands: nothing else runs meanwhile, no heartbeat either.

A timer of the loop says again and again that the loop turns; a thread looks whether it has. Where it has not for
`LIMIT_S`, the thread looks at what the loop's own thread executes. When the loop turns again, listeners are told how
long it stood, and where. There is one thread for all listeners of a loop, and none without any.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Final
from weakref import WeakKeyDictionary

__all__ = ["LIMIT_S", "StallListener", "watch_stalls"]

logger = logging.getLogger(__name__)

LIMIT_S: Final = 1.0
FRAMES_MAX: Final = 5
"""Innermost frames that are told."""

StallListener = Callable[[float, str], None]
"""Is told for how many seconds the loop stood still, and where."""


def watch_stalls(loop: asyncio.AbstractEventLoop, listener: StallListener) -> Callable[[], None]:
    """Has it told of stalls, until what is returned is called. Both are called in the loop's thread."""
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = _Watch(loop)
    return watch.add(listener)


class _Watch:
    """Of one loop. The thread reads `_turned_s` and writes `_place`; each is one attribute, replaced as a whole."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._listeners: dict[object, StallListener] = {}
        self._thread_id = threading.get_ident()
        self._turned_s = time.monotonic()
        self._place: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stop = threading.Event()

    def add(self, listener: StallListener) -> Callable[[], None]:
        key = object()
        self._listeners[key] = listener
        if self._timer is None:
            self._turn()
            self._stop = threading.Event()
            threading.Thread(target=self._look, args=(self._stop,), name="stall watch", daemon=True).start()

        def remove() -> None:
            self._listeners.pop(key, None)
            if not self._listeners and self._timer is not None:
                self._timer.cancel()
                self._timer = None
                self._stop.set()

        return remove

    def _turn(self) -> None:
        now_s = time.monotonic()
        stood_s, self._turned_s = now_s - self._turned_s, now_s
        place, self._place = self._place, None
        if place is not None:
            for listener in tuple(self._listeners.values()):
                listener(stood_s, place)
        self._timer = self._loop.call_later(LIMIT_S / 4, self._turn)

    def _look(self, stop: threading.Event) -> None:
        """The thread."""
        while not stop.wait(LIMIT_S / 4):
            if self._place is None and time.monotonic() - self._turned_s > LIMIT_S:
                # (Its name looks private; the documentation of sys has it.)
                frame = sys._current_frames().get(self._thread_id)  # pyright: ignore[reportPrivateUsage]
                if frame is not None:
                    self._place = _described(frame)


def _described(frame: FrameType) -> str:
    """The innermost frames, outermost of them first."""
    stack = traceback.extract_stack(frame)[-FRAMES_MAX:]
    return " > ".join(f"{each.filename}:{each.lineno} in {each.name}" for each in stack)


_watches: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch]] = WeakKeyDictionary()
