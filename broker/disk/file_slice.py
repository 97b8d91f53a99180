"""A piece of a file on its way to a socket: `FileRecords.writeTo` in Kafka. This process does not read it.

`sendfile` hands pages of the page cache to the socket. For 256 KiB to 2 MiB that takes half of the time of reading and
writing, and less than half of the CPU. Where more is sent at once it takes longer, and a buffer that stays in the
processor's cache is faster; below 256 KiB nothing is gained (docs/decisions/007-the-log-engine.md).
"""

import errno
import os
import socket
from typing import Final

from odradek.broker.disk.disk_descriptors import Descriptor
from odradek.broker.disk.disk_page_cache import read_all

SLICE_BYTES_MIN: Final = 256 * 1024
"""Less is better read."""
SENDFILE_BYTES_MAX: Final = 2 << 20
"""More in one reply goes through the buffer."""
_PIECE_BYTES: Final = 512 * 1024

_piece = memoryview(b"")  # the buffer, once it was needed. What is in it is sent before anything else happens.


class FileSlice:
    """Bytes that are in the page cache. It holds the descriptor: the file may be closed, cut or deleted meanwhile."""

    __slots__ = ("_descriptor", "_path", "_position", "_size_bytes")

    def __init__(self, descriptor: Descriptor, path: str, position: int, size_bytes: int) -> None:
        self._descriptor: Descriptor | None = descriptor
        self._path = path
        self._position = position
        self._size_bytes = size_bytes

    @property
    def _number(self) -> int:
        assert self._descriptor is not None, "nothing is left of a slice that is closed"
        return self._descriptor.number

    def __len__(self) -> int:
        """How many bytes have not been sent."""
        return self._size_bytes

    def send(self, sock: socket.socket, *, by_sendfile: bool) -> None:
        """Sends it to its end, and closes it.

        Raises BlockingIOError when a socket that does not wait is full, and OSError; it is shorter then.
        """
        while self._size_bytes:
            if by_sendfile:
                count = os.sendfile(sock.fileno(), self._number, self._position, self._size_bytes)
                self._advance(count)
            else:
                self._send_piece(sock)
        self.close()

    def _send_piece(self, sock: socket.socket) -> None:
        global _piece
        _piece = _piece or memoryview(bytearray(_PIECE_BYTES))
        count = os.preadv(self._number, (_piece[: min(self._size_bytes, _PIECE_BYTES)],), self._position)
        sent = sock.send(_piece[:count]) if count else 0
        self._advance(sent)
        if sent < count:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def _advance(self, count: int) -> None:
        if not count:
            raise self._shrunk()
        self._position += count
        self._size_bytes -= count

    def _shrunk(self) -> OSError:
        return OSError(errno.EIO, "the file has lost its end", self._path)

    def read(self) -> bytes:
        """What has not been sent, and closes it. Raises OSError."""
        data = read_all(self._number, self._size_bytes, self._position)
        if len(data) < self._size_bytes:
            raise self._shrunk()
        self._advance(len(data))
        self.close()
        return data

    def close(self) -> None:
        """Lets the descriptor go. Closing twice does nothing."""
        self._descriptor = None
