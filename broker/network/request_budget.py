"""How many bytes of requests the broker holds at once, over all connections (`queued.max.request.bytes`).

Bytes count from the moment they are received until the reply to their request is queued. Over the limit, connections
stop reading; they start again in the order in which they stopped, as bytes are given back. The kernel's socket buffers
then fill and the senders wait: nothing is refused, nothing is lost. (A connection may overshoot by one read.)

One danger remains: all the bytes held may belong to requests that are still arriving, so that none can be finished and
none given back. Then the connection that has waited longest gets the *pass*: it reads on in spite of the limit until
its request is whole. If it has not done so within `STALL_S` seconds, the next one gets the pass. So a sender that
stalls delays others, and never stops them.

What a client has sent that a quota silences is not given back before its time is up. It counts apart: else a few that
may not go on would stop all the others.
"""

import asyncio
from collections.abc import Callable

STALL_S = 5.0
READ_BYTES = 64 * 1024
"""About what one read brings: how many connections may go on at once is judged by it."""

ASIDE_SHARE = 0.25
"""How much clients that quotas silence may have sent, as a part of the limit; it comes on top of that."""

Resume = Callable[[], None]
"""How a connection is told to read again; it stands for the connection here."""


class RequestBudget:
    """The common budget of all connections."""

    __slots__ = ("_complete_bytes", "_loop", "_pass", "_timer", "_waiting", "aside_bytes", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self.limit_bytes = limit_bytes
        """At most so many bytes; -1 for no limit."""
        self.held_bytes = 0
        self.aside_bytes = 0
        self._complete_bytes = 0
        self._waiting: dict[Resume, None] = {}
        self._pass: Resume | None = None
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_exhausted(self) -> bool:
        return 0 <= self.limit_bytes <= self.held_bytes

    def received(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes

    def completed(self, size_bytes: int, reader: Resume) -> None:
        """A whole request has arrived: its bytes will be given back once it is answered."""
        self._complete_bytes += size_bytes
        if self._pass == reader:
            self._take_the_pass_back()

    def answered(self, size_bytes: int) -> None:
        """The reply to a whole request is queued, or the request will not be run."""
        self._complete_bytes -= size_bytes
        assert self._complete_bytes >= 0
        self.held_bytes -= size_bytes
        if self._waiting:
            self._admit()

    def dropped(self, size_bytes: int) -> None:
        """Bytes of a request that never became whole are gone with their connection."""
        self.held_bytes -= size_bytes
        assert self.held_bytes >= 0
        if self._waiting:
            self._admit()

    def hand_over(self, other: "RequestBudget", whole_bytes: int, partial_bytes: int, reader: Resume) -> None:
        """What a connection has sent counts in the other budget from now on."""
        self.forget(reader)
        self.dropped(partial_bytes)
        self.answered(whole_bytes)
        other.received(partial_bytes + whole_bytes)
        other.completed(whole_bytes, reader)

    def set_aside(self, complete_bytes: int, partial_bytes: int) -> bool:
        """A client is silenced, and what it has sent already counts apart until `take_back`, so that nobody else waits
        for it: bytes of whole requests, and of one that has not come whole. False: there is too much of that kind."""
        self.aside_bytes += complete_bytes + partial_bytes
        self._complete_bytes -= complete_bytes
        self.held_bytes -= complete_bytes + partial_bytes
        if self._waiting:
            self._admit()
        return self.limit_bytes < 0 or self.aside_bytes <= self.limit_bytes * ASIDE_SHARE

    def take_back(self, complete_bytes: int, partial_bytes: int) -> None:
        """It goes on: these bytes, set aside before, count as others do. They may bring the total over the limit."""
        self.aside_bytes -= complete_bytes + partial_bytes
        assert self.aside_bytes >= 0
        self._complete_bytes += complete_bytes
        self.held_bytes += complete_bytes + partial_bytes

    def may_read(self, reader: Resume) -> bool:
        """Whether the connection may go on reading. If not it is queued, and told when it may."""
        if not self.is_exhausted or self._pass == reader:
            return True
        self._waiting[reader] = None
        self._admit()
        return reader not in self._waiting

    def forget(self, reader: Resume) -> None:
        """The connection is gone, or does not want to read."""
        self._waiting.pop(reader, None)
        if self._pass == reader:
            self._take_the_pass_back()
            self._admit()

    def _admit(self) -> None:
        expected_bytes = self.held_bytes
        while self._waiting and expected_bytes < self.limit_bytes:
            expected_bytes += READ_BYTES
            self._next()()
        if self._waiting and self._complete_bytes == 0 and self._pass is None:
            self._hand_out_the_pass()

    def _next(self) -> Resume:
        reader = next(iter(self._waiting))
        del self._waiting[reader]
        return reader

    def _hand_out_the_pass(self) -> None:
        self._pass = self._next()
        self._timer = self._loop.call_later(STALL_S, self._stalled)
        self._pass()

    def _take_the_pass_back(self) -> None:
        self._pass = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stalled(self) -> None:
        self._take_the_pass_back()
        self._admit()
