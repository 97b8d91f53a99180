"""Replies on their way to one client: written together where they come together, and held up where it does not read.

The transport keeps a view of what it was given until it is sent (uvloop does), so replies are lists of buffers that
nobody changes afterwards. What an answer holds of files goes from there to the socket (direct_send.py).
"""

import asyncio
from collections.abc import Callable

from odradek.broker.disk.file_slice import FileSlice
from odradek.broker.network.direct_send import send_directly
from odradek.protocol.primitives import Buffer

REPLIES_TOGETHER_BYTES = 64 * 1024
"""Replies to requests that arrived together are written together, up to this size. A system call each, of which every
one wakes the client, cost a fifth of the time of small requests."""


class ReplyQueue:
    """The replies of one connection that are not written yet."""

    __slots__ = ("_loop", "_parts", "_size_bytes", "writable")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parts: list[Buffer] = []
        self._size_bytes = 0
        self.writable: asyncio.Future[None] | None = None
        """What to wait for before anything more is answered; None: nothing."""

    def put(self, reply: list[Buffer], more: object, write: Callable[[], None]) -> None:
        """Has the reply written by `write`, now if no other one may follow at once (`more`); else together with that
        one, unless that one waits for something after all: then in the loop's next turn."""
        if not self._parts and more:
            self._loop.call_soon(write)
        self._parts += reply
        self._size_bytes += sum(map(len, reply))
        if not more or self._size_bytes >= REPLIES_TOGETHER_BYTES:
            write()

    def write_to(self, transport: asyncio.Transport | None) -> None:
        """Writes everything. A transport that is closing, or none, takes nothing more: uvloop raises, asyncio warns.

        Raises OSError where an answer cannot be completed.
        """
        parts, self._parts, self._size_bytes = self._parts, [], 0
        if not parts or transport is None or transport.is_closing():
            return
        if FileSlice in map(type, parts):
            parts = send_directly(transport, parts)
        if parts:
            transport.writelines(parts)

    def drop(self) -> None:
        """The connection is lost."""
        self._parts = []
        self.resume()

    # -- the client does not read -----------------------------------------------------------------------------------

    def pause(self) -> None:
        """The transport holds as much as it may."""
        self.writable = self._loop.create_future()

    def resume(self) -> None:
        """The transport has room again."""
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)
        self.writable = None
