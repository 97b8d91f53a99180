"""Signals of processes that tests start."""

import signal
import sys
import threading
from typing import Final


def heeding_ctrl_c(*command: str) -> list[str]:
    """The command line of a program that gets SIGINT as from a terminal: what a shell runs in the background ignores
    it, and so would its children. `preexec_fn` would fork a process that has threads of gRPC, which may abort."""
    return [sys.executable, "-I", "-S", "-c", _HEED, *command]


_HEED: Final = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


def set_at_sigterm(stop: threading.Event) -> None:
    """To be called before there are other threads, which would take the signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_wait_for_sigterm, args=(stop,), daemon=True).start()


def _wait_for_sigterm(stop: threading.Event) -> None:
    # Not a handler: it would run in the midst of the main thread's use of the event.
    signal.sigwait({signal.SIGTERM})
    stop.set()
