"""Signals of processes that tests start."""

import signal


def heed_ctrl_c() -> None:
    """For `preexec_fn`. What a shell runs in the background ignores SIGINT, and so would its children: this one gets
    what a terminal would give it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
