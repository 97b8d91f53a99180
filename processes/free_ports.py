"""Ports for servers that are told theirs before they start, and that come back to them after a restart.

They lie below the range from which the kernel takes ports for connections (`ip_local_port_range`): one of that range
is free when it is looked for, and may belong to anybody's connection when the server binds it.
"""

import random
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

FIRST: Final = 10_000
LOCAL_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOCAL_RANGE_BEGINS: Final = 32_768
"""Linux's default."""
ATTEMPTS_MAX: Final = 1_000

_chance: Final = random.SystemRandom()  # tests that run side by side may have equal seeds


def free_ports(count: int) -> list[int]:
    """Loopback ports that were free a moment ago, all different. Raises OSError where none are found."""
    sockets: list[socket.socket] = []
    end = _end()
    try:
        for _ in range(ATTEMPTS_MAX):
            if len(sockets) == count:
                break
            try:
                sockets.append(socket.create_server(("127.0.0.1", _chance.randrange(FIRST, end))))
            except OSError:
                continue
        else:
            raise OSError(f"of {ATTEMPTS_MAX} ports from {FIRST} to {end} hardly any is free")
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def free_run(count: int) -> int:
    """The first of some loopback ports next to one another that were free a moment ago. Raises OSError where none are
    found."""
    end = _end()
    for _ in range(ATTEMPTS_MAX):
        first = _chance.randrange(FIRST, end - count + 1)
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise OSError(f"of {ATTEMPTS_MAX} runs of {count} ports from {FIRST} to {end} none is free")


def _end() -> int:
    """The first port that connections may get."""
    try:
        begins = int(LOCAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return LOCAL_RANGE_BEGINS
    return begins if begins > 2 * FIRST else LOCAL_RANGE_BEGINS
