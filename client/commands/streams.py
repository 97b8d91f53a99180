"""Standard input and output of a command that runs for long: read and written without stopping the loop.

A pipe or a terminal is waited for with the loop, and then read or written in pieces that do not block: so answers come
in and deadlines are kept while nobody types, or nobody reads, and Ctrl-C is heard at once. (A helper thread would not
do: one that waits in `read` cannot be ended, and holds up the exit.) A file is never waited for.
"""

import asyncio
import io
import select
from collections.abc import Callable
from typing import Final

from odradek.client.commands.failures import CommandFailed, OutputClosed

__all__ = ["LINE_BYTES_MAX", "LineReader", "Writer"]

READ_BYTES: Final = 256 * 1024
WRITE_BYTES: Final = 4096
"""A pipe that can be written to takes so much without blocking (PIPE_BUF)."""
LINE_BYTES_MAX: Final = 128 * 1024 * 1024
"""More than a record may have anywhere. Who feeds us without line ends must not fill the memory."""


class LineReader:
    """The lines of a file descriptor, as bytes without their line ends."""

    def __init__(
        self, descriptor: int, loop: asyncio.AbstractEventLoop, *, line_bytes_max: int = LINE_BYTES_MAX
    ) -> None:
        self._file = io.FileIO(descriptor, "rb", closefd=False)
        self._loop = loop
        self._line_bytes_max = line_bytes_max
        self._must_wait = _can_be_waited_for(loop, descriptor)
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._waiting: asyncio.Future[None] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Ends the input: `read` returns nothing any more, even where it waits already."""
        self._is_stopped = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def read(self) -> list[bytes]:
        """The next lines, one at least; none at the end of the input. Raises CommandFailed for an endless line."""
        while data := await self._read_some():
            lines, end, rest = data.rpartition(b"\n")
            if end:
                found = b"".join((*self._begun, lines)).split(b"\n")
                self._begun, self._begun_bytes = [rest], len(rest)
                return found
            self._begun.append(data)
            self._begun_bytes += len(data)
            if self._begun_bytes > self._line_bytes_max:
                raise CommandFailed(f"A line of the input is longer than {self._line_bytes_max:,} bytes.")
        last = b"".join(self._begun)
        self._begun = []
        return [last] if last else []

    async def _read_some(self) -> bytes:
        """What is there; b"" at the end."""
        while True:
            if self._must_wait and not self._is_stopped and not select.select([self._file], [], [], 0)[0]:
                self._waiting = self._loop.create_future()
                await _ready(self._waiting, self._loop.add_reader, self._loop.remove_reader, self._file.fileno())
            if self._is_stopped:
                self._begun.clear()
                return b""
            data = self._file.read(READ_BYTES)
            if data is not None:  # None: another process has made the descriptor non-blocking, and was faster
                return data


class Writer:
    """Writes to a file descriptor."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self._file = io.FileIO(descriptor, "wb", closefd=False)
        self._loop = loop
        self._must_wait = _can_be_waited_for(loop, descriptor)

    async def write(self, data: bytes) -> None:
        """Writes all of it. Raises OutputClosed when nobody reads any more, OSError when there is no room."""
        rest = memoryview(data)
        try:
            while rest:
                if self._must_wait and not select.select([], [self._file], [], 0)[1]:
                    waiting: asyncio.Future[None] = self._loop.create_future()
                    await _ready(waiting, self._loop.add_writer, self._loop.remove_writer, self._file.fileno())
                written = self._file.write(rest[:WRITE_BYTES] if self._must_wait else rest)
                rest = rest[written or 0 :]
        except BrokenPipeError:
            raise OutputClosed from None


def _can_be_waited_for(loop: asyncio.AbstractEventLoop, descriptor: int) -> bool:
    """Whether the system can tell when it is ready: of pipes, terminals and sockets, and not of files."""
    try:
        loop.add_reader(descriptor, _nothing)
    except OSError:
        return False
    loop.remove_reader(descriptor)
    return True


async def _ready(
    waiting: asyncio.Future[None],
    add: Callable[[int, Callable[[], None]], None],
    remove: Callable[[int], bool],
    descriptor: int,
) -> None:
    """Waits until the loop says that the descriptor is ready, or somebody else ends the wait."""

    def wake() -> None:
        if not waiting.done():
            waiting.set_result(None)

    add(descriptor, wake)
    try:
        await waiting
    finally:
        remove(descriptor)


def _nothing() -> None:
    pass
