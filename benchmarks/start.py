"""Start time and memory: from the start of the process to its first answer to ApiVersions, and its RSS after that.

Both contenders are stopped cleanly and started again, in turn, on directories that they have used before, with the
programs' files in the page cache. A thread asks every millisecond or two, from before the process exists, on the port
of the former run; what it takes until the first answer is the start time.
"""

import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import GIGABYTE, MEGABYTE
from benchmarks.harness.readback import compare_log
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import resident_bytes, settle_pages
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import create_topic, delete_topic

ASK_EVERY_S = 0.002
ANSWER_TIMEOUT_S = 60.0
ASKED_FROM = ("127.0.0.2", 0)
"""Not the address that is asked: who connects from an address to itself, before anybody listens, may meet itself."""
# ApiVersions v0, correlation id 1, no client id.
QUESTION = struct.pack(">ihhih", 10, 18, 0, 1, -1)
START_BAR = Bar("≤", 0.1)
IDLE_BAR = Bar("≤", 0.12)
FILLED_BAR = Bar("≤", 0.1)


def measure_start(bench: Bench) -> Outcome:
    """Start time, and memory after `idle_s` seconds without a request but the first."""
    plan = bench.plan
    pair = ours, theirs = bench.pair()
    seconds: dict[str, list[float]] = {server.name: [] for server in pair}
    megabytes: dict[str, list[float]] = {server.name: [] for server in pair}
    for run in range(1, plan.runs + 1):
        for server in pair:
            server.stop()
            took = start(server)
            time.sleep(plan.idle_s)  # idle, as measured
            resident = resident_bytes(server.process.pid) / MEGABYTE
            bench.say(f"start {run}/{plan.runs} {server}: {took:.3f} s, {resident:.1f} MB after {plan.idle_s:g} s")
            seconds[server.name].append(took)
            megabytes[server.name].append(resident)
    outcome = Outcome()
    for name, unit, values, bar, digits in (
        ("start to first answer", "s", seconds, START_BAR, 2),
        ("idle memory (RSS)", "MB", megabytes, IDLE_BAR, 0),
    ):
        mine, other = (Summary(tuple(values[server.name])) for server in (ours, theirs))
        outcome.add(Figure(name, unit, mine, other, bar, digits))
    return outcome


def measure_memory(bench: Bench) -> Outcome:
    """Memory of a server that was started anew, after `filling_bytes` have been produced to it in batches of 16 KiB."""
    plan = bench.plan
    pair = ours, theirs = bench.pair()
    megabytes: dict[str, list[float]] = {server.name: [] for server in pair}
    for run in range(1, plan.runs + 1):
        for server in pair:
            server.stop()
            start(server)
            load = Load(bench.topic("memory"), plan.filling_bytes, time.time_ns() // 1_000_000)
            resident = fill(server, load) / MEGABYTE
            bench.say(f"memory {run}/{plan.runs} {server}: {resident:.1f} MB after {load.produced_bytes:,} bytes")
            megabytes[server.name].append(resident)
    mine, other = (Summary(tuple(megabytes[server.name])) for server in (ours, theirs))
    outcome = Outcome()
    name = f"memory (RSS) after {plan.filling_bytes / GIGABYTE:.2g} GB produced"
    outcome.add(Figure(name, "MB", mine, other, FILLED_BAR))
    return outcome


def fill(server: Server, load: Load) -> int:
    """Produces the load; how much memory the server has then. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    with server.wire() as wire:
        create_topic(wire, load.topic)
        settle_pages()
        run_load(server.process.host, server.process.port, load)
        resident = resident_bytes(server.process.pid)
        compare_log(wire, load)
        delete_topic(wire, load.topic)
    server.wait_gone(load.topic)
    return resident


def start(server: Server) -> float:
    """Starts a stopped server; seconds until it answered first. Raises what its start raises, TimeoutError."""
    (seconds,) = first_answers(server.process.start, [(server.process.host, server.process.port)])
    return seconds


def first_answers(start_all: Callable[[], None], addresses: Sequence[tuple[str, int]]) -> list[float]:
    """Starts what answers at these addresses; seconds until each answered first. Raises what the start raises,
    TimeoutError."""
    answered: list[Future[float]] = [Future() for _ in addresses]
    began = time.perf_counter()
    asking = [
        threading.Thread(target=_ask_until_answered, args=(*address, future))
        for address, future in zip(addresses, answered, strict=True)
    ]
    for thread in asking:
        thread.start()
    try:
        start_all()
        return [future.result(ANSWER_TIMEOUT_S) - began for future in answered]
    finally:
        for future in answered:
            future.cancel()  # where the start failed, the threads need not ask on
        for thread in asking:
            thread.join()


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
