"""One direction of a connection in memory, and what it does to the bytes on their way.

    sender -> [on the way: delay, jitter, bandwidth] -> [arrived: stalled, torn, reset] -> receiver, one read a round

Bytes come in order; those that lie there together come together, unless `Direction.tear` says how many. A pipe holds at
most `window_bytes` that were sent and not read, which are the two sockets' buffers; `Transport` is what it asks
of the two ends (`memory_transport.py`).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

READ_BYTES_MAX: Final = 256 * 1024

Tear = Callable[[int, int], int]
"""From the position in the stream and the number of bytes there, how many (at least one) the next read brings."""


def byte_by_byte(position: int, available: int) -> int:
    """Tears everything into single bytes."""
    del position, available
    return 1


def torn_at(*cuts: int) -> Tear:
    """No read goes across one of these positions of the stream."""

    def tear(position: int, available: int) -> int:
        return min((cut - position for cut in cuts if cut > position), default=available)

    return tear


def torn_randomly(randint: Callable[[int, int], int]) -> Tear:
    return lambda position, available: randint(1, available)


@dataclass
class Direction:
    """How one direction behaves. It may be changed at any time; what is on the way keeps its time of arrival."""

    delay_ms: float = 0.25
    jitter_ms: float = 0.0
    """Adds up to so much to the delay. Nothing is overtaken."""
    bytes_per_ms: float | None = None
    window_bytes: int = 64 * 1024
    tear: Tear | None = None
    reset_after_bytes: int | None = None
    """The connection is reset when so many bytes have arrived and more come."""
    is_stalled: bool = False
    """What has arrived is not read: the peer's process stands still. See also `Pipe.flow`."""
    read_count: int = 0
    """How often bytes were read: so many rounds of the loop it took."""


class End(Enum):
    """How a direction ends, in order behind its bytes."""

    STREAM = "end of stream"
    RESET = "reset"


class Transport(Protocol):
    """A transport, as its pipes see it."""

    incoming: "Pipe"
    is_gone: bool

    def reads(self) -> bool:
        """Whether the protocol takes bytes now."""
        ...

    def receive(self, size: int) -> None:
        """Takes so many bytes from the incoming pipe, or fewer, to its protocol."""
        ...

    def receive_end(self, end: End) -> None: ...

    def room_came(self) -> None:
        """Says that the outgoing pipe takes bytes again."""
        ...

    def reset(self) -> None:
        """The peer, or the network, has reset the connection."""
        ...


class Pipe:
    """One direction of one connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, direction: Direction, chance: Callable[[], float]) -> None:
        self.direction = direction
        self.is_dead = False
        """Nothing goes on: neither bytes nor ends arrive, and nobody is told."""
        self.position = 0  # in the stream, of the next byte to be read
        self._loop = loop
        self._chance = chance
        self._on_the_way: deque[tuple[float, bytes | End]] = deque()
        self._arrived: deque[memoryview] = deque()
        self._end: End | None = None  # behind what has arrived
        self._held_bytes = 0
        self._free_at_s = 0.0  # when the line has sent all that was given to it
        self._arrival: asyncio.TimerHandle | None = None
        self._reading: asyncio.Handle | None = None
        self.sender: Transport
        self.receiver: Transport

    @property
    def room_bytes(self) -> int:
        """How much the sender's socket takes at the moment."""
        return max(0, self.direction.window_bytes - self._held_bytes)

    @property
    def arrived_bytes(self) -> int:
        """What lies at the receiver and has not been read."""
        arrived = self._arrived
        return len(arrived[0]) if len(arrived) == 1 else sum(map(len, arrived))

    def send(self, data: bytes) -> None:
        """Takes bytes, for which there must be room."""
        assert data
        assert len(data) <= self.room_bytes
        self._held_bytes += len(data)
        if self.direction.bytes_per_ms is not None:
            self._free_at_s = max(self._free_at_s, self._loop.time())
            self._free_at_s += len(data) / self.direction.bytes_per_ms / 1000.0
        self._put(data)

    def take(self, size: int) -> bytes:
        """Reads so many of the bytes that have arrived."""
        self.position += size
        self.direction.read_count += 1
        self._held_bytes -= size
        if len(self._arrived[0]) == size:
            return bytes(self._arrived.popleft())
        pieces: list[memoryview] = []
        while size:
            piece = self._arrived.popleft()
            if size < len(piece):
                self._arrived.appendleft(piece[size:])
            pieces.append(piece[:size])
            size -= len(pieces[-1])
        return b"".join(pieces)

    def send_end(self, end: End) -> None:
        self._put(end)

    def flow(self) -> None:
        """Reads on where reading is possible: after a change of `is_stalled`, or when the receiver is ready again."""
        can_read = self._arrived or self._end is not None
        if can_read and self._reading is None and self.receiver.reads():
            self._reading = self._loop.call_soon(self._read)

    def drop_arrived(self) -> None:
        """The receiver's socket is closed. What is on the way will find that out."""
        self._arrived.clear()
        self._end = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def stop(self) -> None:
        """Nothing of what was sent goes on."""
        self.drop_arrived()
        self._on_the_way.clear()
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _put(self, item: bytes | End) -> None:
        if self.is_dead:
            return  # the bytes stay in the sender's socket
        direction = self.direction
        delay_ms = direction.delay_ms
        if direction.jitter_ms:
            delay_ms += direction.jitter_ms * self._chance()
        arrival_s = max(self._loop.time(), self._free_at_s) + delay_ms / 1000.0
        self._on_the_way.append((arrival_s, item))
        if self._arrival is None:
            self._arrival = self._loop.call_at(arrival_s, self._arrive)

    def _arrive(self) -> None:
        self._arrival = None
        if self.is_dead:
            return
        # The loop's clock may be a rounding error before it. What is faster than the first waits behind it.
        now_s = self._on_the_way[0][0]
        while self._on_the_way and self._on_the_way[0][0] <= now_s:
            item = self._on_the_way.popleft()[1]
            if isinstance(item, End):
                self._end = item
            elif self.receiver.is_gone:
                self._bounce()
                return
            else:
                self._arrived.append(memoryview(item))
        if self._on_the_way:
            self._arrival = self._loop.call_at(self._on_the_way[0][0], self._arrive)
        self.flow()

    def _bounce(self) -> None:
        """Bytes for a closed socket: its machine answers with a reset."""
        self.stop()
        way_back = self.sender.incoming
        if not way_back.is_dead:
            delay_s = way_back.direction.delay_ms / 1000.0
            self._arrival = self._loop.call_later(delay_s, self.sender.reset)

    def _read(self) -> None:
        self._reading = None
        if self.is_dead or self.direction.is_stalled or not self.receiver.reads():
            return
        if self._arrived:
            size = self._read_size()
            if size == 0:
                self.receiver.reset()
                self.sender.reset()
                return
            self.receiver.receive(size)
            self.sender.room_came()
        elif self._end is not None:
            end, self._end = self._end, None
            self.receiver.receive_end(end)
        self.flow()

    def _read_size(self) -> int:
        """How many of the bytes that have arrived come now; 0 for a reset in their place."""
        available, direction = self.arrived_bytes, self.direction
        limit = direction.reset_after_bytes
        if limit is not None:
            available = min(available, limit - self.position)
            if available <= 0:
                return 0
        if direction.tear is not None:
            available = max(1, min(available, direction.tear(self.position, available)))
        return available if available < READ_BYTES_MAX else READ_BYTES_MAX
