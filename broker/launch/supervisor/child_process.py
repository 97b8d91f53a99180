"""A process of the supervisor as the operating system has it, and those that are begun before anything else.

It is exec'd in a process group of its own, so that a terminal's Ctrl-C reaches the supervisor alone, and inherits
nothing but the standard streams and its lifeline. Log lines it writes to the supervisor's standard error itself: a pipe
through the supervisor would hold it up while that one stands still.

A process waits on its lifeline to be told what it is to be (control.py), and has read its program before that. So
brokers are begun first, and read theirs while the supervisor reads its own and opens its store.

Only what is cheap to import is imported here.
"""

import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from odradek.broker.directories.cluster_layout import broker_ids
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch.supervisor.processors import brokers_for, usable_processors
from odradek.runtime.own_program import own_program

BROKER_MODULE: Final = "odradek.broker.launch.supervisor.broker_process"
STANDARD_ERROR: Final = 2


class ChildProcess(NamedTuple):
    """It runs, or has ended and is not reaped; and the supervisor's end of its lifeline."""

    process: "subprocess.Popen[bytes]"
    lifeline: socket.socket

    def end(self) -> None:
        """Of one that was not told anything: it has done nothing, and is killed."""
        self.lifeline.close()
        self.process.kill()
        self.process.wait()


def begin_child(module: str, name: str) -> ChildProcess:
    """Blocks until the program has taken the place of the forked process, some milliseconds. Raises OSError."""
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            command = [*own_program(module), str(theirs.fileno()), name]
            process = subprocess.Popen(  # noqa: S603 - it is this program again
                command, stdin=subprocess.DEVNULL, stdout=STANDARD_ERROR, pass_fds=(theirs.fileno(),), process_group=0
            )
    except BaseException:
        ours.close()
        raise
    return ChildProcess(process, ours)


def broker_name(broker_id: int) -> str:
    return f"broker {broker_id}"


class BrokersAhead:
    """Processes of brokers that are not told yet what they are to be."""

    def __init__(self, ids: Iterable[int]) -> None:
        """Where one cannot be begun there are none: whoever wants one begins it, and learns why."""
        self._waiting: dict[int, ChildProcess] = {}
        try:
            for broker_id in ids:
                self._waiting[broker_id] = begin_child(BROKER_MODULE, broker_name(broker_id))
        except OSError:
            self.close()

    def take(self, broker_id: int) -> ChildProcess | None:
        """The broker's process, which is its taker's; None where none was begun."""
        return self._waiting.pop(broker_id, None)

    def close(self) -> None:
        """Ends those that nobody took."""
        while self._waiting:
            self._waiting.popitem()[1].end()


def likely_ids(count: int | None, directory: str | None) -> Sequence[int]:
    """The brokers that are going to run, as far as that is seen without the store: so many of those that have a
    directory, or of a new cluster. `count` None: as many as there are, or as the machine takes."""
    found: list[int] = []
    if directory is not None:
        with suppress(OSError):
            found = broker_ids(FileDisk(), directory)
    return (found or range(1, (count or brokers_for(usable_processors())) + 1))[:count]
