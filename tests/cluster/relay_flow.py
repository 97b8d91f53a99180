"""One connection through the relay: two directions, each with a network's faults of its own.

A direction reads from one socket and writes to the other. Each part that was read waits until it is due; the end of the
stream and its reset travel in the same queue, so a cut holds them back, too, as a network does that carries nothing.

    delay_ms         each part is passed on so much later than it came
    bytes_per_s      and no faster than this; 0 for no limit
    is_cut           nothing is read and nothing is written. What was on its way waits, as what TCP repeats does

Reading stops when `QUEUE_BYTES_MAX` are on their way, or as much as a slow link carries in `QUEUE_MS`: the sender's
window fills, and its writes wait.
"""

import asyncio
import contextlib
import socket
import struct
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

PART_BYTES_MAX: Final = 1 << 16
QUEUE_BYTES_MAX: Final = 1 << 22
QUEUE_MS: Final = 400.0
"""How much of a slow link's time may wait in it."""

Way = Literal["out", "back"]
"""From who connected to whom he wanted, and back."""


class Ending(Enum):
    """How a stream ends."""

    END = "end"
    RESET = "reset"


@dataclass(slots=True)
class Condition:
    """How one direction is. `renewed` ends its waiting when it has been changed."""

    delay_ms: float = 0.0
    bytes_per_s: float = 0.0
    is_cut: bool = False
    renewed: asyncio.Event = field(default_factory=asyncio.Event)

    def change(self, delay_ms: float | None, bytes_per_s: float | None, is_cut: bool | None) -> None:
        """None: as it is."""
        self.delay_ms = self.delay_ms if delay_ms is None else delay_ms
        self.bytes_per_s = self.bytes_per_s if bytes_per_s is None else bytes_per_s
        self.is_cut = self.is_cut if is_cut is None else is_cut
        self.renewed.set()
        self.renewed = asyncio.Event()


class Direction:
    """From `source` to `target`."""

    def __init__(self, source: socket.socket, target: socket.socket, condition: Condition) -> None:
        self.source = source
        self.target = target
        self.condition = condition
        self.reverse: Direction | None = None
        self.passed_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[float, bytes | Ending]] = deque()
        self.queued_bytes = 0
        self._changed = asyncio.Event()
        self._free_at = 0.0
        """When what was passed on last has gone through, at the rate allowed."""

    async def read(self) -> None:
        """Until the stream ends."""
        while True:
            await self.until_connected()
            while self.queued_bytes >= self._queue_bytes_max:
                await self._wait_for_change()
            try:
                part = await self._loop.sock_recv(self.source, PART_BYTES_MAX)
            except OSError:
                self.put(Ending.RESET)
                return
            self.put(part or Ending.END)
            if not part:
                return

    async def write(self) -> Ending:
        """Until the end of the stream has been passed on, or it cannot be any more; how it ended."""
        while True:
            while not self._queue:
                await self._wait_for_change()
            due, part = self._queue[0]
            await self._until(due)
            await self.until_connected()
            self._queue.popleft()
            if isinstance(part, Ending):
                if part is Ending.END:
                    with contextlib.suppress(OSError):  # it is gone: the other direction says so
                        self.target.shutdown(socket.SHUT_WR)
                return part
            try:
                await self._send(part)
            except OSError:
                # The news that the target is gone travels back, subject to that direction's faults.
                if self.reverse is not None:
                    self.reverse.put(Ending.RESET)
                return Ending.END
            self.passed_bytes += len(part)
            self.queued_bytes -= len(part)
            self._changed.set()

    def put(self, part: bytes | Ending) -> None:
        """On its way from now on."""
        now = self._loop.time()
        due = now + self.condition.delay_ms / 1000
        if not isinstance(part, Ending):
            self.queued_bytes += len(part)
            if self.condition.bytes_per_s:
                self._free_at = max(self._free_at, now) + len(part) / self.condition.bytes_per_s
                due = max(due, self._free_at + self.condition.delay_ms / 1000)
        self._queue.append((due, part))
        self._changed.set()

    @property
    def _queue_bytes_max(self) -> float:
        """A slow link holds little, so that its sender learns that it is slow."""
        condition = self.condition
        if not condition.bytes_per_s:
            return QUEUE_BYTES_MAX
        return min(QUEUE_BYTES_MAX, condition.bytes_per_s * (QUEUE_MS + condition.delay_ms) / 1000)

    async def _send(self, part: bytes) -> None:
        """Not a byte more once it is cut, so not by `sock_sendall`."""
        rest = memoryview(part)
        while rest:
            await self.until_connected()
            try:
                rest = rest[self.target.send(rest) :]
            except BlockingIOError:
                await self._until_writable()

    async def _until_writable(self) -> None:
        writable = asyncio.Event()
        descriptor = self.target.fileno()
        self._loop.add_writer(descriptor, writable.set)
        try:
            await writable.wait()
        finally:
            self._loop.remove_writer(descriptor)

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def until_connected(self) -> None:
        """Returns when it is not cut."""
        while self.condition.is_cut:
            await self.condition.renewed.wait()

    async def _until(self, due: float) -> None:
        left = due - self._loop.time()
        if left > 0:
            await asyncio.sleep(left)


class Flow:
    """A connection: who opened it, by which route, and its two directions."""

    def __init__(
        self, origin: str, route: str, near: socket.socket, far: socket.socket, out: Condition, back: Condition
    ) -> None:
        """`near` is the side of who connected."""
        self.origin = origin
        self.route = route
        self.near = near
        self.far = far
        self.out = Direction(near, far, out)
        self.back = Direction(far, near, back)
        self.out.reverse, self.back.reverse = self.back, self.out
        self._tasks: list[asyncio.Task[None]] = []
        self._ended_count = 0
        self._is_over = asyncio.Event()

    async def run(self, target: tuple[str, int]) -> None:
        """Connects, and returns when both directions have ended or the connection was reset. While it is cut nobody
        connects; if the target refuses, the other side is reset."""
        try:
            self._tasks.append(asyncio.create_task(self._carry(target)))
            await self._is_over.wait()
        finally:
            await self._end_tasks()
            self.near.close()
            self.far.close()

    async def _carry(self, target: tuple[str, int]) -> None:
        try:
            await self._connect(target)
        except OSError:
            self.reset()
            return
        for direction in (self.out, self.back):
            self._tasks.append(asyncio.create_task(direction.read()))
            self._tasks.append(asyncio.create_task(self._write(direction)))

    async def _connect(self, target: tuple[str, int]) -> None:
        await self.out.until_connected()
        await self.back.until_connected()
        await asyncio.get_running_loop().sock_connect(self.far, target)

    async def _write(self, direction: Direction) -> None:
        if await direction.write() is Ending.RESET:
            self.reset()
        self._ended_count += 1
        if self._ended_count == 2:
            self._is_over.set()

    def reset(self) -> bool:
        """Both sides learn at once that the connection is gone, whatever is cut. Whether it was there still."""
        was_there = not self._is_over.is_set()
        _will_reset(self.near)
        _will_reset(self.far)
        self._is_over.set()
        return was_there

    def seen(self) -> tuple[str, str, int, int, int]:
        """Origin, route, the bytes that were passed on, out and back, and those that are on their way."""
        coming_bytes = self.out.queued_bytes + self.back.queued_bytes
        return self.origin, self.route, self.out.passed_bytes, self.back.passed_bytes, coming_bytes

    async def lose(self, side: Literal["near", "far"]) -> bool:
        """A half-open connection: one side has it no longer, the other is not told, and gets no answer. Whether it was
        there."""
        if self._is_over.is_set():
            return False
        await self._end_tasks()
        lost = self.near if side == "near" else self.far
        _will_reset(lost)
        lost.close()
        return True

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _will_reset(sock: socket.socket) -> None:
    """Closing it sends RST, and throws away what was not sent."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
