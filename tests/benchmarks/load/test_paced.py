"""The open-loop generator: what waits counts from when it was due, whatever the server does."""

import select
import socket
import threading
import time
from array import array
from collections.abc import Callable

import pytest

from benchmarks.load import sink
from benchmarks.load.frames import Load, batches_of, frames_of
from benchmarks.load.pace import NS_PER_S, Pace, Paced, Schedule, paced_load
from benchmarks.load.paced import PacedLane, drive, pacing, run_lanes, run_paced
from benchmarks.load.replies import LoadFailed, canned_reply
from processes.free_ports import free_ports

MS = 1_000_000


def run_against(pace: Pace, serve: Callable[[list[socket.socket]], None]) -> Paced:
    """The pace over socket pairs, with a server in a thread."""
    pairs = [socket.socketpair() for _ in range(pace.load.connections)]
    serving = threading.Thread(target=serve, args=([theirs for _, theirs in pairs],))
    serving.start()
    try:
        return run_lanes([ours for ours, _ in pairs], pace, lead_ns=10 * MS)
    finally:
        for ours, _ in pairs:
            ours.close()
        serving.join()
        for _, theirs in pairs:
            theirs.close()


@pytest.mark.parametrize("connections", [1, 4])
def test_every_request_is_sent_and_its_reply_awaited(connections: int) -> None:
    pace = paced_load("t", 0.2, 1000, 0, connections=connections, record_bytes=1024)
    paced = run_against(pace, lambda sockets: sink.serve(sockets, pace.load, None))
    assert len(paced.latencies_ns) == 200
    assert all(0 < latency < 10 * NS_PER_S for latency in paced.latencies_ns)


def test_a_pause_of_the_server_is_in_the_latency_of_all_that_fell_due_in_it() -> None:
    """The server pauses for 200 ms before it answers anything: the first request waited for all of it, others less."""
    pace = paced_load("t", 0.1, 1000, 0, connections=1, record_bytes=1024)

    def serve(sockets: list[socket.socket]) -> None:
        select.select(sockets, [], [])
        time.sleep(0.2)  # the pause
        sink.serve(sockets, pace.load, None)

    latencies = run_against(pace, serve).latencies_ns
    assert latencies[0] >= 200 * MS
    for number, latency in enumerate(latencies):
        assert latency >= (200 - number) * MS, "no request waited to be sent for those before it"


def test_requests_are_not_held_back_by_a_server_that_reads_nothing() -> None:
    """More than the socket takes is due while the server sleeps; the rest goes out when it reads on."""
    pace = paced_load("t", 0.1, 20_000, 0, connections=1, record_bytes=1024)

    def serve(sockets: list[socket.socket]) -> None:
        select.select(sockets, [], [])
        time.sleep(0.3)  # until everything is due
        sink.serve(sockets, pace.load, None)

    latencies = run_against(pace, serve).latencies_ns
    assert len(latencies) == 2000
    assert min(latencies) >= 150 * MS


def test_a_server_that_goes_away_ends_the_run() -> None:
    pace = paced_load("t", 0.1, 1000, 0, connections=1, record_bytes=1024)
    with pytest.raises(LoadFailed, match="closed by the server after 0 replies"):
        run_against(pace, lambda sockets: sockets[0].shutdown(socket.SHUT_WR))


class Ticking:
    """A clock that goes on by a step at each look."""

    def __init__(self, step_ns: int) -> None:
        self.now_ns = 0
        self._step_ns = step_ns

    def __call__(self) -> int:
        self.now_ns += self._step_ns
        return self.now_ns


def test_requests_are_sent_when_they_are_due_and_not_before_over_the_lanes_in_turn() -> None:
    """The clock is ours: each look at it takes 30 µs, of 100 µs between two requests. Nobody answers."""
    load = Load("t", 8 * 1094, 0, batch_bytes=1094, record_bytes=1094, connections=2, partitions=2)
    pairs = [socket.socketpair() for _ in range(2)]
    lanes = [
        PacedLane(ours, load, batches_of(load), index, lambda number, now_ns: None)
        for index, (ours, _) in enumerate(pairs)
    ]
    schedule = Schedule(begin_ns=1_000_000, rate_per_s=10_000, count=8)
    clock = Ticking(30_000)
    sent: list[tuple[int, int]] = []
    for index, lane in enumerate(lanes):
        lane.send = noting(sent, clock, index, lane.send)  # type: ignore[method-assign]
    try:
        drive(schedule, lanes, lanes, lambda: True, clock_ns=clock)
    finally:
        for pair in pairs:
            for end in pair:
                end.close()
    assert [index for index, _ in sent] == [0, 1] * 4
    for number, (_, moment_ns) in enumerate(sent):
        assert schedule.due_ns(number) <= moment_ns < schedule.due_ns(number) + 200_000


def noting(sent: list[tuple[int, int]], clock: Ticking, index: int, send: Callable[[], None]) -> Callable[[], None]:
    def noted() -> None:
        sent.append((index, clock.now_ns))
        send()

    return noted


def test_a_lane_tells_of_replies_by_their_numbers_however_they_are_cut() -> None:
    load = Load("t", 3 * 1094, 0, batch_bytes=1094, record_bytes=1094)
    told: list[tuple[int, int]] = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        lane = PacedLane(ours, load, batches_of(load), 0, lambda number, now_ns: told.append((number, now_ns)))
        replies = b"".join(canned_reply("t", number, number) for number in range(3))
        theirs.sendall(replies[:10])
        lane.receive(1)
        theirs.sendall(replies[10:-1])
        lane.receive(2)
        theirs.sendall(replies[-1:])
        lane.receive(3)
    assert told == [(0, 2), (1, 2), (2, 3)]
    assert lane.replies == 3


def test_what_a_lane_sends_are_the_loads_frames() -> None:
    load = Load("t", 3 * 1094, 0, batch_bytes=1094, record_bytes=1094)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        lane = PacedLane(ours, load, batches_of(load), 0, lambda number, now_ns: None)
        lane.send()
        lane.send()
        frames = frames_of(load, batches_of(load))[:2]
        frames[1][8:12] = (1).to_bytes(4, "big")
        assert theirs.recv(10_000) == b"".join(frames)


def test_generator_and_sink_run_as_processes() -> None:
    pace = paced_load("t", 0.2, 500, 0, connections=2, record_bytes=1024)
    before = time.perf_counter_ns()
    with sink.running_sink(pace.load) as port:
        paced = run_paced("127.0.0.1", port, pace)
    assert isinstance(paced.latencies_ns, array)
    assert len(paced.latencies_ns) == 100
    assert before < paced.begin_ns < time.perf_counter_ns(), "one clock for all processes"


def test_a_process_that_fails_says_why() -> None:
    pace = paced_load("t", 0.2, 500, 0, connections=1, record_bytes=1024)
    (port,) = free_ports(1)
    with pacing("127.0.0.1", port, pace) as finished, pytest.raises(LoadFailed, match="refused"):
        finished()
