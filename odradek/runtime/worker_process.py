"""A worker in a process of its own, seen from the process that started it; worker_main.py is the other side.

    question, answer:   length (uint32, bytes that follow) | bytes

It is started without any descriptor of this process but its three pipes, in a process group of its own, so that Ctrl-C
in a terminal does not reach it. It runs with the lowest priority. `close` sends SIGKILL, which a stopped process obeys,
too, and reaps it. When this process dies, the worker notices and ends.

Helper threads write and read the pipes. None of this needs a child watcher, so it works in any thread's loop.
"""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Sequence
from struct import Struct
from typing import IO, Final, Protocol, TypeVar

from odradek.runtime.worker import WorkerEnded, WorkerUnavailable

T = TypeVar("T")

LENGTH: Final = Struct(">I")
FRAME_BYTES_MAX: Final = 1 << 30
COMPLAINT_BYTES: Final = 2_000
"""How much is told of what a worker wrote to its standard error: the end of it."""


class Helper(Protocol):
    """What is needed of the environment: a helper thread."""

    async def run_blocking(self, function: Callable[[], T], /) -> T: ...


class WorkerProcess:
    """A process that answers. `start` makes one."""

    def __init__(self, helper: Helper, process: "subprocess.Popen[bytes]") -> None:
        self._helper = helper
        self._process = process
        self._is_closed = False
        self.greeting = b""

    @classmethod
    async def start(cls, helper: Helper, program: Sequence[str]) -> "WorkerProcess":
        """Runs the program and waits for its greeting. Raises WorkerUnavailable."""
        try:
            process = _started(program)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise WorkerUnavailable(f"no process can be started: {error}") from error
        worker = cls(helper, process)
        try:
            worker.greeting = await helper.run_blocking(worker._read)
        except WorkerEnded as error:
            await worker.close()
            raise WorkerUnavailable(f"the process that was started does not work: {error}") from error
        except BaseException:
            await worker.close()
            raise
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ask(self, question: bytes) -> bytes:
        return await self._helper.run_blocking(lambda: self._exchange(question))

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._process.kill()
        try:
            await self._helper.run_blocking(self._reap)
        except asyncio.CancelledError:
            self._reap()  # a process that was killed is gone within milliseconds, and nothing may come before that
            raise

    def _reap(self) -> None:
        self._process.wait()
        for pipe in (self._stdin, self._stdout, self._stderr):
            _close(pipe)

    @property
    def _stdin(self) -> IO[bytes]:
        return _pipe(self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        return _pipe(self._process.stdout)

    @property
    def _stderr(self) -> IO[bytes]:
        return _pipe(self._process.stderr)

    def _exchange(self, question: bytes) -> bytes:
        try:
            self._stdin.write(LENGTH.pack(len(question)))
            self._stdin.write(question)
            self._stdin.flush()
        except (OSError, ValueError) as error:
            raise WorkerEnded(self._how_it_ended() or str(error)) from error
        return self._read()

    def _read(self) -> bytes:
        try:
            head = self._stdout.read(LENGTH.size)
            if len(head) == LENGTH.size:
                size_bytes: int = LENGTH.unpack(head)[0]
                if size_bytes > FRAME_BYTES_MAX:
                    raise WorkerEnded(f"it announced an answer of {size_bytes} bytes")
                answer = self._stdout.read(size_bytes)
                if len(answer) == size_bytes:
                    return answer
        except (OSError, ValueError) as error:  # closed meanwhile
            raise WorkerEnded(str(error)) from error
        raise WorkerEnded(self._how_it_ended())

    def _how_it_ended(self) -> str:
        """Waits for its end, which its closed pipe has announced."""
        if self._is_closed:
            return "it was ended"
        try:
            self._process.kill()  # lest one be waited for that closed its pipe and goes on
            complaint = self._stderr.read()[-COMPLAINT_BYTES:].decode(errors="replace").strip()
            code = self._process.wait()
        except (OSError, ValueError) as error:
            return str(error)
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code} ({_signal_name(-code)})"
        last_line = complaint.rpartition("\n")[2]
        return f"it ended {how}" + (f": {last_line}" if last_line else "")


def _started(program: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - the program is ours
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=True,
        process_group=0,
    )


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "each of the three is a pipe"
    return pipe


def _close(pipe: IO[bytes]) -> None:
    """Gives the descriptor back; what a dead process did not read is of no use."""
    try:
        pipe.close()
    except OSError:
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
