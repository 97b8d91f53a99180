"""Which process has opened a connection: asked of Linux, by both ends of the connection.

    near, peer = listener.accept()
    owner_of(peer, near.getsockname(), [4711, 4712])        the one of these processes that holds it, or None

/proc/net/tcp names the inode of each socket of this network namespace, /proc/<pid>/fd the sockets of each process. Only
the processes that are named are looked at. Where a connection comes from does not tell it from others: Linux gives the
same port to connections with different targets. An IPv6 socket may be connected to an IPv4 address, as those of gRPC
are: it stands in /proc/net/tcp6.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path

READS = 5
_INODE = 8
"""Its place behind the number of the row."""

_MAPPED = "0000000000000000FFFF0000"
"""::ffff:0.0.0.0/96, as the table has it: in words of the machine's byte order."""

Address = tuple[str, int]


def owner_of(local: Address, remote: Address, pids: Iterable[int]) -> int | None:
    """The process that holds the socket between these two. None for another one, or where it is closed by now."""
    inode = _inode_of(_written(local), _written(remote))
    if inode is None:
        return None
    return next((pid for pid in pids if inode in _sockets_of(pid)), None)


def _inode_of(local: str, remote: str) -> int | None:
    """Looked for more than once: the kernel hands the table out in pieces, and passes over rows that move meanwhile."""
    for _ in range(READS):
        for table, prefix in (("/proc/net/tcp", ""), ("/proc/net/tcp6", _MAPPED)):
            inode = _look_for(table, prefix + local, prefix + remote)
            if inode is not None:
                return inode
    return None


def _look_for(path: str, local: str, remote: str) -> int | None:
    """Of tens of thousands of rows, those of connections that have just ended among them, one is taken apart."""
    table = Path(path).read_bytes()
    ends = f" {local} {remote} ".encode()
    at = table.find(ends)
    while at >= 0:
        inode = int(table[at : table.find(b"\n", at)].split()[_INODE])
        if inode:
            return inode
        at = table.find(ends, at + 1)
    return None


def _written(address: Address) -> str:
    """As the table has it."""
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"


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
