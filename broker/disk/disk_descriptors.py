"""The descriptors of the files that are open: the least recently used gives way, and is opened again at its next use.

A partition holds three files or more a segment, and a broker may hold tens of thousands of segments. The table belongs
to the thread that made it; other threads may only open descriptors of their own. Who needs a file for longer than a
call, to sync it or to send what is in it, shares its descriptor, which is closed when nobody holds it any more.
"""

import errno
import os
from collections import OrderedDict
from threading import get_ident
from typing import Protocol


class Descriptor:
    """A descriptor that is open for as long as somebody holds it, in whatever thread."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        """Takes it over."""
        self.number = number

    def __del__(self) -> None:
        os.close(self.number)


class Holder(Protocol):
    """A file as the table sees it: without a descriptor when it is evicted or closed."""

    descriptor: Descriptor | None
    is_closed: bool
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
        descriptor = holder.descriptor
        if descriptor is not None:
            self._open.move_to_end(holder)
            return descriptor.number
        return self._reopened(holder).number

    def _reopened(self, holder: Holder) -> Descriptor:
        descriptor = self._opened(holder)
        self.admit(holder, descriptor)
        return descriptor

    def _opened(self, holder: Holder) -> Descriptor:
        if holder.is_closed:
            raise OSError(errno.EBADF, "the file is closed", holder.path)
        return Descriptor(self.open(holder.path, os.O_RDWR))

    def admit(self, holder: Holder, descriptor: Descriptor) -> None:
        """Takes a file in that was just opened."""
        holder.descriptor = descriptor
        self._open[holder] = None
        while len(self._open) > self._count_max:
            self._evict()

    def forget(self, holder: Holder) -> None:
        """Closes the file for good."""
        self._open.pop(holder, None)
        holder.descriptor, holder.is_closed = None, True

    def shared(self, holder: Holder) -> Descriptor:
        """The descriptor of the file, which stays open whatever becomes of the file. Raises OSError.

        It still reports what failed to be written before somebody else asked; a new one reports only what nobody has
        seen yet (Linux errseq_t).
        """
        if get_ident() != self._thread_id:
            return self._opened(holder)  # the table is not ours
        return holder.descriptor or self._reopened(holder)

    def open(self, path: str, flags: int) -> int:
        """A descriptor for the caller to admit or to close. For any thread. Raises OSError."""
        while True:
            try:
                return os.open(path, flags | os.O_CLOEXEC, 0o644)
            except OSError as error:
                # Sockets took more than their half: give up cached descriptors before giving up the operation.
                # A helper thread must not: the loop's thread may be using the descriptor that would be closed.
                is_ours = get_ident() == self._thread_id
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open or not is_ours:
                    raise
                self._evict()

    def _evict(self) -> None:
        holder, _ = self._open.popitem(last=False)
        holder.descriptor = None
