"""A program under test as a child process: started until it is ready, stopped in each way there is, and never left
over.

A subclass says what to run (`command`) and when it is ready (`_wait_until_ready`, or `is_ready_line` for one that says
so on its first line of standard output). What it writes to standard error is kept over all its runs.

    kill       SIGKILL                  pause, resume   SIGSTOP and SIGCONT
    terminate  SIGTERM, and the code    launch, wait_until_ready   the two halves of `start`, for `start_together`

It is signalled by its own process id alone. `close` ends it however it is, and the `with` block does that. If
`dies_with_us`, the kernel kills it as soon as the thread that started it is gone, so that nothing is left even of a
test that was killed itself (Linux; PR_SET_PDEATHSIG by way of `setpriv`, which is part of util-linux).
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

REPOSITORY: Final = Path(__file__).resolve().parents[1]
START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 10.0
"""Twice what a broker's clean stop is allowed."""
TELLING_S: Final = 1.0
"""How long one that does not end has for saying where it stands."""
LOG_TAIL_BYTES: Final = 8_000


class ProcessFailed(Exception):
    """The program did not get ready, or did not end as it should; the text holds what it printed."""


class ChildProcess:
    """A program that runs or does not. `start` alternates with `kill`, `terminate` or `ended`."""

    failure: type[ProcessFailed] = ProcessFailed
    """What is raised."""
    clean_codes: tuple[int, ...] = (0,)
    """How it ends after SIGTERM."""
    telling_signal: signal.Signals | None = None
    """What has it write to its log where it stands; it gets that when it does not end in time, before SIGKILL."""

    def __init__(
        self,
        name: str,
        *,
        within: Sequence[str] = (),
        log_file: Path | None = None,
        dies_with_us: bool = False,
    ) -> None:
        """`within`: the start of the command line of a program that runs another, such as a namespace's. `log_file`
        replaces a temporary one."""
        self.name = name
        self.within = tuple(within)
        self.is_paused = False
        self._dies_with_us = dies_with_us
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = (
            tempfile.TemporaryFile(prefix=f"{name}-")  # noqa: SIM115 - closed by close(), over several runs
            if log_file is None
            else log_file.open("ab+")
        )
        self._said = ""

    # -- what a subclass says -------------------------------------------------------------------------------------

    def command(self) -> list[str]:
        """The command line of the next start."""
        raise NotImplementedError

    def is_ready_line(self, line: str) -> bool:
        """Whether the first line on standard output says that it is ready; it may be kept, too."""
        raise NotImplementedError

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        line = self._first_line(process)
        if not self.is_ready_line(line):
            raise self.failure(f"no ready line of {self.name} but {line!r}; {self._tail()}")

    # -- how it is ------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended, by itself or by us. A paused one is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def was_started(self) -> bool:
        """Whether nobody has ended it since, or learned that it has ended; it may have, by itself."""
        return self._process is not None

    @property
    def output(self) -> str:
        """What it wrote to standard error (its log), in all its runs. Readable after the end, too."""
        if not self._log.closed:
            descriptor = self._log.fileno()
            self._said = os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")
        return self._said

    # -- from its start to its end --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops it by SIGTERM. Raises ProcessFailed if it had ended by itself or does not end well, unless something
        else went wrong already."""
        try:
            if kind is None and self.was_started:
                self.stop()
        finally:
            self.close()

    def close(self) -> None:
        """Ends it by SIGKILL if it still runs, and keeps its output."""
        self.kill()
        self._said = self.output
        self._log.close()

    def start(self) -> None:
        """Returns when it is ready. Raises ProcessFailed when it ends instead, or is not ready in time."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Begins to start it, and does not wait."""
        assert self._process is None, f"{self.name} is already running"
        self._process = subprocess.Popen(
            [*self.within, *self._guard(), *self.command()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=REPOSITORY,  # where `-m` finds the package when it is not installed
        )
        self.is_paused = False

    def wait_until_ready(self) -> None:
        """Raises as `start` does; it does not run then."""
        assert self._process is not None, f"{self.name} is not running"
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL, and waits until the process is gone. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _reap(process)

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM, also for one that is paused, which goes on for it; the exit code. Raises what `ended` raises."""
        assert self._process is not None, f"{self.name} is not running"
        self._process.terminate()
        if self.is_paused:
            self.resume()
        return self.ended(timeout_s)

    def ended(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Waits until it has ended, for instance by a signal that was sent to it; the exit code.

        Raises ProcessFailed, after SIGKILL, when it does not end in time.
        """
        process, self._process = self._process, None
        assert process is not None, f"{self.name} is not running"
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            if self.telling_signal is not None:
                process.send_signal(self.telling_signal)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TELLING_S)
            process.kill()
            raise self.failure(f"{self.name} is still running after {timeout_s} s; {self._tail()}") from None
        finally:
            _reap(process)
        return process.returncode

    def restart(self) -> None:
        """Starts it again, after a clean stop if it is still running."""
        if self.was_started:
            self.stop()
        self.start()

    def stop(self) -> None:
        """A clean stop. Raises ProcessFailed if it had ended by itself, or does not end as it should."""
        had_ended = not self.is_running
        code = self.terminate()
        if had_ended or code not in self.clean_codes:
            raise self.failure(f"{self.name} ended with {code}; {self._tail()}")

    def pause(self) -> None:
        """SIGSTOP. Returns when no instruction of it runs any more. Raises ProcessFailed when it has ended instead."""
        process = self._process
        assert process is not None, f"{self.name} is not running"
        process.send_signal(signal.SIGSTOP)
        is_stopped = False
        if process.returncode is None:
            # WNOWAIT: how it ends is left for Popen to learn.
            now = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            is_stopped = now is not None and now.si_code == os.CLD_STOPPED
        if not is_stopped:
            raise self.failure(f"{self.name} had ended before it could be paused; {self._tail()}")
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT. Does nothing to one that is not paused."""
        if self._process is not None and self.is_paused:
            self._process.send_signal(signal.SIGCONT)
        self.is_paused = False

    # -- below ----------------------------------------------------------------------------------------------------

    def _guard(self) -> list[str]:
        if not self._dies_with_us or sys.platform != "linux" or shutil.which("setpriv") is None:
            return []
        assert threading.current_thread() is threading.main_thread(), "it would end with this thread"
        return ["setpriv", "--pdeathsig", "KILL", "--"]

    def _tail(self) -> str:
        return f"its log:\n{self.output[-LOG_TAIL_BYTES:]}"

    def _first_line(self, process: "subprocess.Popen[bytes]") -> str:
        """What it prints first: the whole line, or as much as it printed before it ended."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        deadline = time.monotonic() + START_TIMEOUT_S
        line = bytearray()
        while b"\n" not in line:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise self.failure(f"{self.name} is not ready after {START_TIMEOUT_S} s; {self._tail()}")
            part = os.read(descriptor, 4096)
            if not part:
                break
            line += part
        return bytes(line).decode(errors="replace").partition("\n")[0]


def start_together(*processes: ChildProcess) -> None:
    """All at the same time. Raises ProcessFailed for the first that does not get ready."""
    for process in processes:
        process.launch()
    for process in processes:
        process.wait_until_ready()


def _reap(process: "subprocess.Popen[bytes]") -> None:
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
