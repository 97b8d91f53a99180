"""The process of a test's cluster, seen from the test's: how it is started, told what it is to be, and ended.

It inherits two pipes and nothing else. It ends when the first of them does, and so with this process, however that
ends. There is no thread here, no socket and no event loop: a test may forbid sockets, freeze clocks, and fork.

What it writes to standard error goes to a file without a name, of which the end is shown where it could not start, or
has died.
"""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from typing import Final

from odradek.broker.launch.supervisor.control import Lines, Message, encode
from odradek.runtime.environment import tell_when_forked
from odradek.runtime.own_program import own_program

START_TIMEOUT_S: Final = 60.0
END_TIMEOUT_S: Final = 15.0
READ_BYTES: Final = 1 << 20
COMPLAINT_BYTES: Final = 8_000
COMPLAINT_BYTES_MAX: Final = 4_000_000
"""A longer file is emptied."""


class ClusterProcessEnded(RuntimeError):
    """The process of a cluster does not run any more; the text says how it ended."""


class ClusterProcess:
    """A program that answers messages by messages, each a line of JSON."""

    def __init__(self, module: str) -> None:
        """`module`: whose `main` is given the descriptors of its two pipes as arguments. Raises OSError."""
        self._ended = ""
        self._lines = Lines()
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            asked, ask = os.pipe()
            theirs.callback(os.close, asked)
            self._ask = ours.enter_context(open(ask, "wb", buffering=0))
            answered, answer = os.pipe()
            theirs.callback(os.close, answer)
            self._answered = ours.enter_context(open(answered, "rb", buffering=0))
            self._complaints = ours.enter_context(tempfile.TemporaryFile("ab+", buffering=0))
            self._process = subprocess.Popen(  # noqa: S603 - it is this program again
                [*own_program(module), str(asked), str(answer)],
                stdin=subprocess.DEVNULL,
                stdout=self._complaints,
                stderr=self._complaints,
                pass_fds=(asked, answer),
                process_group=0,
            )
            ours.pop_all()
        tell_when_forked(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> str:
        """How it ended, in a sentence; empty while it runs, as far as that is known."""
        return self._ended

    def tell(self, message: Message) -> None:
        """Raises ClusterProcessEnded."""
        rest = memoryview(encode(message))
        size_bytes = len(rest)
        try:
            while rest:
                rest = rest[self._ask.write(rest) :]
        except (OSError, ValueError) as error:
            raise self.ended_by_itself() from error
        except BaseException:
            if 0 < len(rest) < size_bytes:  # half a line went out, and nothing can follow it
                self.kill("it was interrupted in the middle of a call, and was killed")
            raise
        self._bound_complaints()

    def heard(self) -> list[Message]:
        """Waits for what it tells next. Raises ClusterProcessEnded."""
        while True:
            try:
                data = self._answered.read(READ_BYTES)
            except (OSError, ValueError) as error:
                raise self.ended_by_itself() from error
            if not data:
                raise self.ended_by_itself()
            if messages := self._lines.feed(data):
                return messages

    def heard_first(self) -> Message:
        """What it tells when it has started. Raises ClusterProcessEnded, also when that takes too long."""
        poll = select.poll()
        poll.register(self._answered, select.POLLIN)
        while not poll.poll(START_TIMEOUT_S * 1000.0):
            self.kill(f"it was not ready after {START_TIMEOUT_S:g} s, and was killed")
            raise self.ended_by_itself()
        [message] = self.heard()
        return message

    def kill(self, why: str) -> None:
        """SIGKILL, which it is gone by. `why`: for whoever wants something of it later."""
        if not self._ended:
            self._process.kill()
            self._finish(why)

    def wait(self) -> None:
        """It has been told to end. After END_TIMEOUT_S it is killed."""
        try:
            self._process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill(f"it did not end within {END_TIMEOUT_S:g} s, and was killed")
        else:
            self._finish("it was stopped")

    def ended_by_itself(self) -> ClusterProcessEnded:
        """What is to be raised: its pipes are closed, by its end or before that."""
        if not self._ended:
            self._process.kill()  # one that has closed its pipes and goes on is of no use
            complaint = self._complaint()
            code = self._process.wait()
            how = f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
            self._finish(f"{how}; what it said:\n{complaint}" if complaint else how)
        return ClusterProcessEnded(f"the process {self.pid} that had all brokers does not run any more: {self._ended}")

    def was_forked(self) -> None:
        """In a forked child: lets go of the pipes, which would keep the cluster running after its parent."""
        self._process.returncode = 0  # nobody here waits for it
        self._close("it is the cluster of the process that forked this one")

    def _finish(self, how: str) -> None:
        self._process.wait()
        self._close(how)

    def _close(self, how: str) -> None:
        self._ended = how
        for file in (self._ask, self._answered, self._complaints):
            file.close()

    def _complaint(self) -> str:
        """The end of what it wrote to standard error."""
        size_bytes = os.fstat(self._complaints.fileno()).st_size
        end = os.pread(self._complaints.fileno(), COMPLAINT_BYTES, max(0, size_bytes - COMPLAINT_BYTES))
        return end.decode(errors="replace").strip()

    def _bound_complaints(self) -> None:
        if os.fstat(self._complaints.fileno()).st_size > COMPLAINT_BYTES_MAX:
            os.ftruncate(self._complaints.fileno(), 0)
