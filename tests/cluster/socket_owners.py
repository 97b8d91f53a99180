"""Which process has opened a connection: asked of Linux, by both ends of the connection.

    near, peer = listener.accept()
    owner_of(peer, near.getsockname(), [4711, 4712])        the one of these processes that holds it, or None

The kernel looks the inode of a socket up by both addresses (sock_diag(7)), in 16 µs however many connections there
are; reading /proc/net/tcp, which lists all of them, takes 5 to 10 ms. /proc/<pid>/fd has the sockets of each process;
only the processes that are named are looked at. Where a connection comes from does not tell it from others: Linux gives
the same port to connections with different targets. An IPv6 socket that is connected to an IPv4 address, as those of
gRPC are, is found by the IPv4 addresses.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterable
from typing import Final

Address = tuple[str, int]

NETLINK_SOCK_DIAG: Final = 4
SOCK_DIAG_BY_FAMILY: Final = 20
NLM_F_REQUEST: Final = 1
NLMSG_ERROR: Final = 2
ANY: Final = 0xFFFFFFFF
"""No matter which states, or which cookie."""

_HEADER: Final = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, sender."""
_REQUEST: Final = struct.Struct("=BBBxI")
"""inet_diag_req_v2 before its id: family, protocol, extensions, states."""
_PORTS: Final = struct.Struct("!HH")
_ID_REST: Final = struct.Struct("=III")
"""Of inet_diag_sockid: interface, cookie."""
_ADDRESS_BYTES: Final = 16
_INODE_AT: Final = _HEADER.size + 4 + 48 + 16
"""In the answer: inet_diag_msg is four bytes, the id, and four numbers before it."""


def owner_of(local: Address, remote: Address, pids: Iterable[int]) -> int | None:
    """The process that holds the socket between these two. None for another one, or where it is closed by now. Raises
    OSError where the kernel does not answer such questions."""
    inode = _inode_of(local, remote)
    if inode is None:
        return None
    return next((pid for pid in pids if inode in _sockets_of(pid)), None)


def _inode_of(local: Address, remote: Address) -> int | None:
    """None where there is no such connection, or only its remembrance (TIME_WAIT)."""
    request = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, ANY) + _id_of(local, remote)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        length = _HEADER.size + len(request)
        kernel.send(_HEADER.pack(length, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 0, 0) + request)
        answer = kernel.recv(1 << 12)
    if _HEADER.unpack_from(answer)[1] == NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if -code == errno.ENOENT:
            return None
        raise OSError(-code, f"the kernel does not look connections up: {os.strerror(-code)}")
    (inode,) = struct.unpack_from("=I", answer, _INODE_AT)
    return inode or None


def _id_of(local: Address, remote: Address) -> bytes:
    """An inet_diag_sockid."""
    hosts = [socket.inet_aton(host).ljust(_ADDRESS_BYTES, b"\0") for host, _ in (local, remote)]
    return _PORTS.pack(local[1], remote[1]) + b"".join(hosts) + _ID_REST.pack(0, ANY, ANY)


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
