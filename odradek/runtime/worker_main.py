"""The main function of a worker's process: answers what comes on standard input, until that ends.

It leaves the processors and the device to others: the lowest priority (nice 19), the idle class of the I/O scheduler
where there is one, and the first place among those that the kernel ends when memory is short. SIGTERM and SIGINT are
not for it: whoever started it ends it, and if that process is gone, so is the reason for the work.
"""

import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from odradek.runtime.worker import GiveWay, Stopped, Talk
from odradek.runtime.worker_process import LENGTH

_NICE_MAX: Final = 19
_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30, "riscv64": 30}
_IOPRIO_WHO_PROCESS: Final = 1
_IOPRIO_CLASS_IDLE: Final = 3 << 13
_OOM_SCORE: Final = "/proc/self/oom_score_adj"
_OOM_SCORE_MAX: Final = 1000


def run_worker(serve: Callable[[GiveWay], Talk]) -> int:
    """Serves the process that started this one; the exit code."""
    parent = os.getppid()
    _give_precedence()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    def give_way() -> None:
        """Raises Stopped when the process that asked is gone."""
        if os.getppid() != parent:
            raise Stopped

    talk = serve(give_way)
    with suppress(Stopped):
        _talk(talk)
        talk.throw(Stopped())
    return 0


def _talk(talk: Talk) -> None:
    """Returns when nobody asks or listens any more. Raises Stopped."""
    answer = next(talk)
    while _write(answer) and (question := _read()) is not None:
        answer = talk.send(question)


def _write(answer: bytes) -> bool:
    """Whether somebody takes it."""
    try:
        sys.stdout.buffer.write(LENGTH.pack(len(answer)))
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        return False
    return True


def _read() -> bytes | None:
    """The next question; None at the end."""
    source = sys.stdin.buffer
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size_bytes: int = LENGTH.unpack(head)[0]
    question = source.read(size_bytes)
    return question if len(question) == size_bytes else None


def _give_precedence() -> None:
    """Where the system does not let it, the worker is no less right."""
    with suppress(OSError):
        os.nice(_NICE_MAX)
    with suppress(OSError), open(_OOM_SCORE, "w") as file:
        file.write(str(_OOM_SCORE_MAX))
    call = _IOPRIO_SET.get(platform.machine()) if sys.platform == "linux" else None
    if call is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(call, _IOPRIO_WHO_PROCESS, 0, _IOPRIO_CLASS_IDLE)
