"""What connections cost that do nothing: those that say nothing, and those that have said hello and wait.

The broker's resident memory is read without them, with them, and when they are gone; then as many come again, since
memory that is not given back has to be used again. The sockets' own memory is the kernel's, and not counted.
"""

import resource
import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server
from benchmarks.host.machine import resident_bytes
from benchmarks.load.wire import Wire
from odradek.protocol.messages.api_versions import ApiVersionsRequest

KIBIBYTE: Final = 1024
BAR: Final = Bar("≤", 12.0)
AGAIN_BAR: Final = Bar("≤", 1.25)
SPARE_DESCRIPTORS: Final = 200
STEADY_BYTES: Final = 64 * KIBIBYTE
SETTLE_S: Final = 0.3
SETTLES_MAX: Final = 40
HELLO: Final = ApiVersionsRequest(client_software_name="idle", client_software_version="1")


@dataclass(frozen=True, slots=True)
class Wave:
    """Connections that came and went: resident bytes of the broker with them, and without them afterwards."""

    with_bytes: int
    after_bytes: int


@dataclass(frozen=True, slots=True)
class Idling:
    """Two waves of so many connections, and the broker's resident bytes before."""

    connections: int
    before_bytes: int
    waves: tuple[Wave, Wave]

    @property
    def connection_kibibytes(self) -> float:
        """Of one connection, in the wave that takes more."""
        most = max(wave.with_bytes for wave in self.waves)
        return (most - self.before_bytes) / self.connections / KIBIBYTE

    @property
    def again_share(self) -> float:
        """What the second wave takes in all, by what the first took: 1 where it uses the same memory again."""
        first, second = (wave.with_bytes - self.before_bytes for wave in self.waves)
        return second / first


def measure_idle_connections(bench: Bench) -> Outcome:
    """Raises Unavailable where the limit of open files is too low, OSError."""
    count = bench.plan.idle_connections
    outcome = Outcome()
    rows: list[Sequence[str]] = []
    for name, opened in (("silent", silent), ("greeting", greeting)):
        with bench.own_odradek(f"idle-{name}") as server:
            idling = idle(server, count, opened)
        rows.append(cells(name, idling))
        bench.say(f"{count:,} idle connections: {', '.join(rows[-1])}")
        each = f"memory of each of {count:,} connections, {name}"
        outcome.add(Statement(each, "KiB", Summary((idling.connection_kibibytes,)), None, BAR, 1))
        again = f"memory of as many {name} connections after these, by theirs"
        outcome.add(Statement(again, "", Summary((idling.again_share,)), None, AGAIN_BAR, 2))
    head = ["connections", "each", "together", "kept when they are gone", "as many again"]
    outcome.tables.append("\n\n".join(("Idle connections of Odradek:", markdown(head, rows))))
    return outcome


def idle(server: Server, count: int, opened: Callable[[str, int], ExitStack]) -> Idling:
    """Has `count` connections come and go, twice. Raises Unavailable."""
    host, port, pid = server.process.host, server.process.port, server.process.pid
    with allowed(count):
        with greeting(host, port):
            pass  # what the first connection of all brings with it
        before_bytes = settled(pid)
        waves: list[Wave] = []
        for _ in range(2):
            with ExitStack() as stack:
                for _ in range(count):
                    stack.enter_context(opened(host, port))
                with_bytes = settled(pid)
            waves.append(Wave(with_bytes, settled(pid)))
    first, second = waves
    return Idling(count, before_bytes, (first, second))


def silent(host: str, port: int) -> ExitStack:
    """A connection that says nothing."""
    with ExitStack() as stack:
        stack.enter_context(socket.create_connection((host, port)))
        return stack.pop_all()


def greeting(host: str, port: int) -> ExitStack:
    """A connection that has asked for ApiVersions, as every client does, and been answered."""
    with ExitStack() as stack:
        stack.enter_context(Wire(host, port)).ask(HELLO, 3)
        return stack.pop_all()


@contextmanager
def allowed(count: int) -> Generator[None]:
    """Within the block this process may have `count` files more open. Raises Unavailable."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE_DESCRIPTORS
    if hard not in (resource.RLIM_INFINITY,) and hard < needed:
        raise Unavailable(f"{count:,} connections need {needed:,} open files, and ulimit -Hn is {hard:,}")
    if soft >= needed or soft == resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def settled(pid: int) -> int:
    """Resident bytes, once they stand still: the broker takes its connections up, or lets them go, one after the
    other."""
    before = resident_bytes(pid)
    for _ in range(SETTLES_MAX):
        time.sleep(SETTLE_S)  # nothing tells when another process is done
        now = resident_bytes(pid)
        if abs(now - before) < STEADY_BYTES:
            return now
        before = now
    return before


def cells(name: str, idling: Idling) -> list[str]:
    first, second = idling.waves
    together, kept, again = (
        f"{(size_bytes - idling.before_bytes) / KIBIBYTE / KIBIBYTE:.0f} MiB"
        for size_bytes in (first.with_bytes, first.after_bytes, second.with_bytes)
    )
    return [f"{idling.connections:,} {name}", f"{idling.connection_kibibytes:.1f} KiB", together, kept, again]
