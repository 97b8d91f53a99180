"""Standard input, output and error of a process that was started without them, as by `odradek topics list <&-`.

The next files that are opened get their descriptors then: what is written for a person lands in a socket or a log, and
uvloop aborts the process when its own descriptors are among them. So `/dev/null` is opened on each that is missing,
before anything else is, and Python's streams, which are None then, are made for them.
"""

import os
import sys
from typing import Final

__all__ = ["open_missing_streams"]

STREAMS: Final = (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))


def open_missing_streams() -> None:
    """To be called before anything is opened. What is there already is left as it is."""
    for descriptor, (name, mode, errors) in enumerate(STREAMS):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: those below are open by now
            assert opened == descriptor, (opened, descriptor)
            os.set_inheritable(descriptor, True)  # as standard streams are
        if getattr(sys, name) is None:
            stream = open(descriptor, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
