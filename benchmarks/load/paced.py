"""The open-loop generator, a process of its own: requests by the clock, whatever becomes of those before.

    python -m benchmarks.load.paced HOST PORT PACE FILE       PACE is a `Pace` in JSON

The latency of a request counts from the moment at which it was due, by the monotonic clock in nanoseconds: a pause of
the server, or of the generator, is in the latency of all that fell due in it. FILE gets the latencies, one int64 for
each request in the order in which they were due; the moment at which the first was due is printed as a line of JSON.

Due requests go out over the connections in turn, one record each, on non-blocking sockets. Between two of them the
process sleeps until something arrives or shortly before the next is due, and spins for the rest: a timer wakes it up
tens of microseconds late. Against `benchmarks.load.sink` it shows how late it is itself.
"""

import ctypes
import gc
import json
import select
import socket
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.frames import CORRELATION_ID_POSITION, Load, batches_of, frames_of
from benchmarks.load.generator import RUN_TIMEOUT_S, TIMEOUT_S
from benchmarks.load.load import RECEIVE_BYTES
from benchmarks.load.pace import NS_PER_S, Pace, Paced, Schedule
from benchmarks.load.replies import LoadFailed, Replies

LEAD_NS = 100_000_000
"""From the beginning of the clock to the first request."""
SPIN_NS = 60_000
"""So long before a request is due the process does not sleep any more."""
PR_SET_TIMERSLACK = 29
"""prctl: by how many nanoseconds the kernel may be late with a timer; 50 µs unless told otherwise."""


class Receiver(Protocol):
    """Something that waits for bytes on a socket."""

    @property
    def socket(self) -> socket.socket: ...

    def receive(self, now_ns: int) -> None: ...


class PacedLane:
    """One connection. `arrived(number, now_ns)` is told of each reply, by its number among those of this connection."""

    def __init__(
        self, sock: socket.socket, load: Load, batches: list[bytes], partition: int, arrived: Callable[[int, int], None]
    ) -> None:
        self.socket = sock
        self.sent = 0
        self._frames = frames_of(load, batches, partition)
        self._replies = Replies(load, partition)
        self._arrived = arrived
        self._room = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._room)
        self._received = 0
        self._unsent = bytearray()

    @property
    def replies(self) -> int:
        return self._replies.count

    def send(self) -> None:
        """Sends the next request, or as much of it as goes without waiting."""
        frame = self._frames[self.sent % len(self._frames)]
        frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = self.sent.to_bytes(4, "big")
        self.sent += 1
        self._unsent += frame
        self.flush()

    def flush(self) -> None:
        """Sends more of what is left."""
        if self._unsent:
            try:
                sent = self.socket.send(self._unsent)
            except BlockingIOError:
                return
            del self._unsent[:sent]

    def receive(self, now_ns: int) -> None:
        """Takes what has come. Raises LoadFailed, OSError."""
        size = self.socket.recv_into(self._view[self._received :])
        if size == 0:
            raise LoadFailed(f"closed by the server after {self._replies.count} replies")
        self._received += size
        before = self._replies.count
        taken = self._replies.take(self._view[: self._received])
        self._room[: self._received - taken] = self._room[taken : self._received]
        self._received -= taken
        for number in range(before, self._replies.count):
            self._arrived(number, now_ns)


def drive(
    schedule: Schedule,
    lanes: Sequence[PacedLane],
    receivers: Sequence[Receiver],
    is_done: Callable[[], bool],
    *,
    clock_ns: Callable[[], int] = time.perf_counter_ns,
) -> None:
    """Sends request after request when it is due, over the lanes in turn, and has receivers take what arrives.

    Raises LoadFailed, OSError, and TimeoutError when nothing arrives for too long after the last request.
    """
    by_descriptor = {receiver.socket.fileno(): receiver for receiver in receivers}
    next_number, next_due = 0, schedule.due_ns(0)
    with select.epoll() as epoll:
        for descriptor in by_descriptor:
            epoll.register(descriptor, select.EPOLLIN)
        while next_number < schedule.count or not is_done():
            now = clock_ns()
            while now >= next_due and next_number < schedule.count:
                lanes[next_number % len(lanes)].send()
                next_number += 1
                next_due = schedule.due_ns(next_number)
                now = clock_ns()
            if next_number == schedule.count and now > next_due + TIMEOUT_S * NS_PER_S:
                raise TimeoutError(f"no answer to the last requests in {TIMEOUT_S} s")
            if (sleep_ns := next_due - now - SPIN_NS) > 0:
                select.select([epoll], [], [], sleep_ns / NS_PER_S)
            for descriptor, _event in epoll.poll(0):
                by_descriptor[descriptor].receive(clock_ns())
            for lane in lanes:
                lane.flush()


def run_lanes(sockets: Sequence[socket.socket], pace: Pace, *, lead_ns: int = LEAD_NS) -> Paced:
    """The whole load. Raises LoadFailed, OSError."""
    lanes: list[PacedLane] = []
    latencies = array("q", bytes(8 * pace.count))
    schedule = Schedule(time.perf_counter_ns() + lead_ns, pace.rate_per_s, pace.count)

    def told(lane: int) -> Callable[[int, int], None]:
        def arrived(number: int, now_ns: int) -> None:
            overall = number * len(sockets) + lane
            latencies[overall] = now_ns - schedule.due_ns(overall)

        return arrived

    batches = batches_of(pace.load)
    for index, sock in enumerate(sockets):
        sock.setblocking(False)
        lanes.append(PacedLane(sock, pace.load, batches, index % pace.load.partitions, told(index)))
    drive(schedule, lanes, lanes, lambda: sum(lane.replies for lane in lanes) == pace.count)
    return Paced(schedule.begin_ns, latencies)


def run_paced(host: str, port: int, pace: Pace, module: str = "benchmarks.load.paced") -> Paced:
    """Runs the generator as a process and waits for it. Raises LoadFailed."""
    with pacing(host, port, pace, module) as finished:
        return finished()


@contextmanager
def pacing(
    host: str, port: int, pace: Pace, module: str = "benchmarks.load.paced"
) -> Generator[Callable[[], Paced], None, None]:
    """The generator as a process that goes on meanwhile; the function waits for its end. Raises LoadFailed."""
    with TemporaryDirectory(prefix="paced-") as directory:
        file = Path(directory, "latencies")
        command = [sys.executable, "-m", module, host, str(port), pace.to_json(), str(file)]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:

            def finished() -> Paced:
                printed, errors = process.communicate(timeout=RUN_TIMEOUT_S)
                if process.returncode != 0:
                    raise LoadFailed(errors.strip())
                return Paced(json.loads(printed), array("q", file.read_bytes()))

            try:
                yield finished
            finally:
                process.kill()


def connect(stack: ExitStack, host: str, port: int) -> socket.socket:
    sock = stack.enter_context(socket.create_connection((host, port), timeout=TIMEOUT_S))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def be_punctual() -> None:
    """Has the kernel's timers come as soon as they can, and no garbage collection come at all."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()
    gc.disable()


def generate(
    run: Callable[[list[socket.socket], Pace], Paced], connections: int, host: str, port: str, pace: Pace, file: str
) -> int:
    """What a generator's process does: punctual, over so many connections, its result told to `pacing`."""
    be_punctual()
    with ExitStack() as stack:
        sockets = [connect(stack, host, int(port)) for _ in range(connections)]
        try:
            paced = run(sockets, pace)
        except LoadFailed as error:
            sys.stderr.write(f"{error}\n")
            return 1
    Path(file).write_bytes(paced.latencies_ns.tobytes())
    sys.stdout.write(json.dumps(paced.begin_ns))
    return 0


def main(host: str, port: str, text: str, file: str) -> int:
    pace = Pace.from_json(text)
    return generate(run_lanes, pace.load.connections, host, port, pace, file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
