"""Which process has opened a connection: asked of Linux, by the port that the connection comes from.

    owner_of(("127.0.0.1", 40522), [4711, 4712])        the one of these processes that holds it, or None

/proc/net/tcp names the inode of each socket of this network namespace, /proc/<pid>/fd the sockets of each process. Only
the processes that are named are looked at.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterable

READS = 5
_ROW_LOCAL, _ROW_INODE = 1, 9


def owner_of(local: tuple[str, int], pids: Iterable[int]) -> int | None:
    """The process that holds the socket with this local address. None for another one, or where it is closed by now."""
    inode = _inode_of(local)
    if inode is None:
        return None
    return next((pid for pid in pids if inode in _sockets_of(pid)), None)


def _inode_of(local: tuple[str, int]) -> int | None:
    """Looked for more than once: the kernel hands the table out in pieces, and passes over rows that move meanwhile."""
    return next((inode for inode in (_look_for(local) for _ in range(READS)) if inode is not None), None)


def _look_for(local: tuple[str, int]) -> int | None:
    host, port = local
    (address,) = struct.unpack("=I", socket.inet_aton(host))
    wanted = f"{address:08X}:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        next(table)
        for line in table:
            row = line.split()
            if row[_ROW_LOCAL] == wanted and row[_ROW_INODE] != "0":
                return int(row[_ROW_INODE])
    return None


def _sockets_of(pid: int) -> set[int]:
    """Inodes. None for a process that is gone."""
    found: set[int] = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    found.add(int(target.removeprefix("socket:[").removesuffix("]")))
    return found
