"""Signals of processes that tests start."""

import signal
import threading


def heed_ctrl_c() -> None:
    """For `preexec_fn`. What a shell runs in the background ignores SIGINT, and so would its children: this one gets
    what a terminal would give it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def set_at_sigterm(stop: threading.Event) -> None:
    """To be called before there are other threads, which would take the signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_wait_for_sigterm, args=(stop,), daemon=True).start()


def _wait_for_sigterm(stop: threading.Event) -> None:
    # Not a handler: it would run in the midst of the main thread's use of the event.
    signal.sigwait({signal.SIGTERM})
    stop.set()
