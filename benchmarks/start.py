"""Start time and idle memory: from the start of the process to its first answer to ApiVersions, and its RSS after that.

Both contenders are stopped cleanly and started again, in turn, on directories that they have used before, with the
programs' files in the page cache. A thread asks every millisecond or two, from before the process exists, on the port
of the former run; what it takes until the first answer is the start time.
"""

import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from benchmarks.figures import Bar, Figure, Summary
from benchmarks.machine import resident_bytes
from benchmarks.servers import Server

ASK_EVERY_S = 0.002
ANSWER_TIMEOUT_S = 60.0
ASKED_FROM = ("127.0.0.2", 0)
"""Not the address that is asked: who connects from an address to itself, before anybody listens, may meet itself."""
# ApiVersions v0, correlation id 1, no client id.
QUESTION = struct.pack(">ihhih", 10, 18, 0, 1, -1)
MEGABYTE = 1_000_000


def measure_start(
    ours: Server, theirs: Server, *, runs: int, idle_s: float, say: Callable[[str], None]
) -> list[Figure]:
    """Start time, and memory after `idle_s` seconds without a request but the first."""
    seconds: dict[str, list[float]] = {ours.name: [], theirs.name: []}
    megabytes: dict[str, list[float]] = {ours.name: [], theirs.name: []}
    for run in range(1, runs + 1):
        for server in (ours, theirs):
            server.stop()
            took = start(server)
            time.sleep(idle_s)  # idle, as measured
            resident = resident_bytes(server.process.pid) / MEGABYTE
            say(f"start {run}/{runs} {server}: {took:.3f} s, {resident:.1f} MB after {idle_s:g} s")
            seconds[server.name].append(took)
            megabytes[server.name].append(resident)
    return [
        _figure("start to first answer", "s", seconds, ours, theirs, digits=2),
        _figure("idle memory (RSS)", "MB", megabytes, ours, theirs, digits=0),
    ]


def _figure(
    name: str, unit: str, values: dict[str, list[float]], ours: Server, theirs: Server, *, digits: int
) -> Figure:
    mine, other = (Summary(tuple(values[server.name])) for server in (ours, theirs))
    return Figure(name, unit, mine, other, Bar("≤", 0.15), digits)


def start(server: Server) -> float:
    """Starts a stopped server; seconds until it answered first. Raises what its start raises, TimeoutError."""
    answered: Future[float] = Future()
    began = time.perf_counter()
    asking = threading.Thread(target=_ask_until_answered, args=(server.process.host, server.process.port, answered))
    asking.start()
    try:
        server.process.start()
        return answered.result(ANSWER_TIMEOUT_S) - began
    finally:
        answered.cancel()  # where the start failed, the thread need not ask on
        asking.join()


def _ask_until_answered(host: str, port: int, answered: "Future[float]") -> None:
    while not answered.cancelled():
        if answers(host, port):
            if answered.set_running_or_notify_cancel():
                answered.set_result(time.perf_counter())
            return
        time.sleep(ASK_EVERY_S)


def answers(host: str, port: int) -> bool:
    """Whether somebody there answers ApiVersions without an error, right now."""
    try:
        with socket.create_connection((host, port), timeout=5.0, source_address=ASKED_FROM) as sock:
            sock.sendall(QUESTION)
            head = b""
            while len(head) < 10:
                part = sock.recv(10 - len(head))
                if not part:
                    return False
                head += part
    except OSError:
        return False
    _size, correlation_id, error_code = struct.unpack(">iih", head)
    return bool(correlation_id == 1 and error_code == 0)
