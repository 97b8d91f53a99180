"""The descriptors of the files that are open: the least recently used gives way, and is opened again at its next use.

A partition holds three files or more a segment, and a broker may hold tens of thousands of segments. The table belongs
to the thread that made it; other threads may only open descriptors of their own.
"""

import errno
import os
from collections import OrderedDict
from collections.abc import Callable
from threading import get_ident
from typing import Protocol

EVICTED = -1
CLOSED = -2


class Holder(Protocol):
    """A file as the table sees it. `fd` is EVICTED or CLOSED while it has no descriptor."""

    fd: int
    path: str


class Descriptors:
    """At most `count_max` descriptors, and fewer where the process runs out of them."""

    def __init__(self, count_max: int) -> None:
        assert count_max >= 1
        self._count_max = count_max
        self._open: OrderedDict[Holder, None] = OrderedDict()  # least recently used first
        self._thread_id = get_ident()

    def __len__(self) -> int:
        return len(self._open)

    def of(self, holder: Holder) -> int:
        """The descriptor of the file, opened again when it was evicted. Raises OSError."""
        descriptor = holder.fd
        if descriptor >= 0:
            self._open.move_to_end(holder)
            return descriptor
        _refuse_closed(holder)
        holder.fd = self.open(holder.path, os.O_RDWR)
        self.admit(holder)
        return holder.fd

    def admit(self, holder: Holder) -> None:
        """Takes a file in whose `fd` was just opened."""
        self._open[holder] = None
        while len(self._open) > self._count_max:
            self._evict()

    def forget(self, holder: Holder) -> None:
        """Closes the file for good."""
        if holder in self._open:
            del self._open[holder]
            os.close(holder.fd)
        holder.fd = CLOSED

    def another(self, holder: Holder) -> int:
        """A second descriptor of the file, for the caller to close. Raises OSError."""
        _refuse_closed(holder)
        if get_ident() != self._thread_id:
            # The descriptor in the table may be closed under our feet, and its number be another file's.
            return self.open(holder.path, os.O_RDWR)

        # A duplicate still reports what failed to be written before somebody else asked; a new descriptor reports only
        # what nobody has seen yet (Linux errseq_t).
        def duplicate() -> int:
            return os.dup(holder.fd) if holder.fd >= 0 else _open(holder.path, os.O_RDWR)

        return self._making_room(duplicate)

    def open(self, path: str, flags: int) -> int:
        """A descriptor for the caller to admit or to close. For any thread. Raises OSError."""
        return self._making_room(lambda: _open(path, flags))

    def _making_room(self, attempt: Callable[[], int]) -> int:
        while True:
            try:
                return attempt()
            except OSError as error:
                # Sockets took more than their half: give up cached descriptors before giving up the operation.
                # A helper thread must not: the loop's thread may be using the descriptor that would be closed.
                is_ours = get_ident() == self._thread_id
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open or not is_ours:
                    raise
                self._evict()

    def _evict(self) -> None:
        holder, _ = self._open.popitem(last=False)
        os.close(holder.fd)
        holder.fd = EVICTED


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o644)


def _refuse_closed(holder: Holder) -> None:
    if holder.fd == CLOSED:
        raise OSError(errno.EBADF, "the file is closed", holder.path)
