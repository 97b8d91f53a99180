"""The Unix socket of a store: how it is made, found and left, and who is at its other end.

* Only the user who runs the server may connect: the socket has mode 0600 from the start, and the kernel says whose
  process connects (SO_PEERCRED, on Linux).
* A path in a socket's address has 107 bytes at most, and data directories may lie deeper than that. A longer one is
  reached through its directory's descriptor, /proc/self/fd/N/NAME, which every Linux container has, too.
* A server that was killed leaves its socket behind. Who listens has locked the directory, so nobody serves there, and
  what is left is removed.
"""

import errno
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

PATH_BYTES_MAX: Final = 103
"""Of sun_path, without its end: 107 on Linux, 103 on macOS."""
BACKLOG: Final = 128
_CREDENTIALS: Final = struct.Struct("iII")


class Peer(NamedTuple):
    """The process at the other end; `pid` 0 where the system does not say."""

    pid: int
    user_id: int


def listening_socket(path: str) -> socket.socket:
    """A socket that listens at this path, in place of one that a killed server has left. The caller has made sure that
    no other server runs. Raises OSError."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path, follow_symlinks=False).st_mode):
            raise FileExistsError(errno.EEXIST, "there is another kind of file where the socket should be", path)
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if sys.platform == "linux":
            os.fchmod(sock.fileno(), stat.S_IRUSR | stat.S_IWUSR)  # the file gets this mode as it is made
        with _reachable(path) as address:
            sock.bind(address)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


@contextmanager
def private_directory() -> Generator[str]:
    """A directory for a socket, of this user alone, for as long as the block runs: where the system keeps such
    ($XDG_RUNTIME_DIR), or among temporary files. Raises OSError."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    where = runtime if runtime is not None and os.access(runtime, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="odradek-", dir=where) as directory:
        yield directory


def remove_socket(path: str) -> None:
    """When nobody listens there any more. What cannot be removed is removed by the next server."""
    with suppress(OSError):
        os.unlink(path)


@contextmanager
def _reachable(path: str) -> Generator[str]:
    """The path, or a short one that leads to it within the block. Raises OSError."""
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield path
        return
    if sys.platform != "linux":
        raise OSError(
            errno.ENAMETOOLONG, f"a socket's path has {PATH_BYTES_MAX} bytes at most: use a directory nearer to /", path
        )
    directory, name = os.path.split(path)
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def connecting_socket(path: str) -> socket.socket:
    """A socket that is connected to the server at this path. Never blocks: raises BlockingIOError while the server has
    not accepted those who came before, and other OSErrors."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        with _reachable(path) as address:
            sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def peer_of(sock: socket.socket) -> Peer:
    """Who is at the other end of a connection. Raises OSError."""
    if sys.platform != "linux":
        return Peer(0, os.geteuid())  # the socket's mode alone keeps others out
    pid, user_id, _ = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return Peer(pid, user_id)
