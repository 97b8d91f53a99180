"""From the producer to a waiting consumer and back to the clock: over sockets of our own, and as processes."""

import socket
import threading

import pytest

from benchmarks.load import arrival_sink
from benchmarks.load.arrival_sink import running_arrival_sink
from benchmarks.load.arrivals import Consumer, run_arrivals
from benchmarks.load.fetch_frames import FetchQuestion, canned_answer
from benchmarks.load.frames import Load, batches_of
from benchmarks.load.pace import NS_PER_S, paced_load
from benchmarks.load.paced import run_paced
from benchmarks.load.replies import LoadFailed

LOAD = Load("t", 5 * 1094, 0, batch_bytes=1094, record_bytes=1094)


def batch_at(offset: int) -> bytes:
    return offset.to_bytes(8, "big") + batches_of(LOAD)[0][8:]


def answer(correlation_id: int, records: bytes) -> bytes:
    data = canned_answer("t", records)
    data[4:8] = correlation_id.to_bytes(4, "big")
    return bytes(data)


def test_every_record_arrives_and_its_latency_is_known() -> None:
    pace = paced_load("t", 0.2, 500, 0, connections=1, record_bytes=1024)
    producing, consuming = socket.socketpair(), socket.socketpair()
    serving = threading.Thread(target=arrival_sink.serve, args=(producing[1], consuming[1], pace.load))
    serving.start()
    try:
        paced = run_arrivals([producing[0], consuming[0]], pace, lead_ns=10_000_000)
    finally:
        producing[0].close()
        consuming[0].close()
        serving.join()
        producing[1].close()
        consuming[1].close()
    assert len(paced.latencies_ns) == 100
    assert all(0 < latency < 10 * NS_PER_S for latency in paced.latencies_ns)


def test_a_consumer_asks_on_for_what_follows_and_tells_each_record_of_an_answer_once() -> None:
    told: list[tuple[int, int]] = []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        consumer = Consumer(ours, "t", 1094, lambda number, now_ns: told.append((number, now_ns)))
        consumer.ask()
        question = FetchQuestion("t", 1024 * 1024)
        assert theirs.recv(1000) == question.frame(1, 0)
        data = answer(1, batch_at(0) + batch_at(1))
        theirs.sendall(data[:20])
        consumer.receive(1)
        theirs.sendall(data[20:-1])
        consumer.receive(2)
        assert told == []
        theirs.sendall(data[-1:])
        consumer.receive(3)
        assert told == [(0, 3), (1, 3)]
        assert theirs.recv(1000) == question.frame(2, 2)
        theirs.sendall(answer(2, b""))  # the long wait has passed
        consumer.receive(4)
        assert theirs.recv(1000) == question.frame(3, 2)
    assert told == [(0, 3), (1, 3)]


def test_another_record_than_the_next_ends_the_run() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        consumer = Consumer(ours, "t", 1094, lambda number, now_ns: None)
        consumer.ask()
        theirs.sendall(answer(1, batch_at(1)))
        with pytest.raises(LoadFailed, match="another batch than that at offset 0"):
            consumer.receive(1)


def test_generator_and_sink_run_as_processes() -> None:
    pace = paced_load("t", 0.2, 500, 0, connections=1, record_bytes=1024)
    with running_arrival_sink(pace.load) as port:
        paced = run_paced("127.0.0.1", port, pace, "benchmarks.load.arrivals")
    assert len(paced.latencies_ns) == 100
    assert min(paced.latencies_ns) > 0
