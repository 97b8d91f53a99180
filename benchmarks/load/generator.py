"""What generators have in common: each is a process of its own, with many connections, and prints a line of JSON."""

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.replies import LoadFailed
from odradek.protocol.errors import KafkaError

TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0


class Exchange(Protocol):
    """Requests and replies over one connection."""

    @property
    def socket(self) -> socket.socket: ...

    @property
    def is_done(self) -> bool: ...


E = TypeVar("E", bound=Exchange)


def run_generator(module: str, *arguments: str) -> str:
    """Runs a module as a process and waits for it; what it printed. Raises LoadFailed."""
    return run_command([sys.executable, "-m", module, *arguments])


def run_command(command: Sequence[str]) -> str:
    """The same of a generator that is no module. Raises LoadFailed."""
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S)
    if done.returncode != 0:
        raise LoadFailed(done.stderr.strip())
    return done.stdout


def tell(addresses: Sequence[str], connections: int, generate: Callable[[list[socket.socket]], Any]) -> int:
    """The end of a generator's process: connects to the addresses in turn, prints what `generate` returns as JSON, and
    returns 0; 1, with the reason on standard error, where it raises LoadFailed or KafkaError. Raises OSError."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(connected(addresses[number % len(addresses)])) for number in range(connections)]
        try:
            result = generate(sockets)
        except (LoadFailed, KafkaError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
    sys.stdout.write(json.dumps(result) + os.linesep)
    return 0


def connected(address: str) -> socket.socket:
    """Raises OSError."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def readable(exchanges: Sequence[E]) -> Iterable[E]:
    """Those for which something has come, until all are done. A single one need not be asked about: it may block.

    Raises TimeoutError.
    """
    if len(exchanges) == 1:
        (alone,) = exchanges
        while not alone.is_done:
            yield alone
        return
    with select.epoll() as epoll:
        waiting = {each.socket.fileno(): each for each in exchanges if not each.is_done}
        for descriptor in waiting:
            epoll.register(descriptor, select.EPOLLIN)
        while waiting:
            events = epoll.poll(TIMEOUT_S)
            if not events:
                raise TimeoutError(f"no reply for {TIMEOUT_S} s")
            for descriptor, _event in events:
                yield waiting[descriptor]
                if waiting[descriptor].is_done:
                    epoll.unregister(descriptor)
                    del waiting[descriptor]
