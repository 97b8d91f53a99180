"""A whole run of the load generator over sockets that are here, cut anywhere, and as a process."""

import dataclasses
import os
import socket
import threading
from pathlib import Path

import pytest

from benchmarks.load import sink
from benchmarks.load.frames import CORRELATION_ID_POSITION, DISTINCT_BATCHES, Load, batches_of, frames_of
from benchmarks.load.load import produce, run_load, run_load_to
from benchmarks.load.replies import LoadFailed, canned_reply

LOAD = Load("produce-1", 40 * 16 * 1024, timestamp_ms=1_700_000_000_000)


@pytest.mark.parametrize("connections", [1, 3])
def test_a_run_gets_a_reply_per_request_and_the_sink_file_holds_every_batch(tmp_path: Path, connections: int) -> None:
    load = Load("t", 39 * 16 * 1024, 0, connections=connections, partitions=connections)
    pairs = [socket.socketpair() for _ in range(connections)]
    descriptor = os.open(tmp_path / "sink", os.O_CREAT | os.O_RDWR)
    answering = threading.Thread(target=sink.serve, args=([theirs for _, theirs in pairs], load, descriptor))
    answering.start()
    try:
        result = produce([ours for ours, _ in pairs], load)
    finally:
        for ours, _ in pairs:
            ours.close()
        answering.join()
        for _, theirs in pairs:
            theirs.close()
        os.close(descriptor)
    batches = batches_of(load)
    each = [batches[number % DISTINCT_BATCHES] for number in range(39 // connections)]
    held = (tmp_path / "sink").read_bytes()
    assert result.replies == 39
    assert result.seconds > 0
    assert sorted(pieces(held, 16 * 1024)) == sorted(each * connections)
    if connections == 1:
        assert held == b"".join(each)


def pieces(data: bytes, size_bytes: int) -> list[bytes]:
    return [data[position : position + size_bytes] for position in range(0, len(data), size_bytes)]


def test_the_generator_takes_replies_that_are_cut_anywhere() -> None:
    """Packets keep their borders, which lie within replies here."""
    load = Load("t", 5 * 16 * 1024, timestamp_ms=0)
    replies = b"".join(canned_reply("t", number, number * 16) for number in range(5))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for piece in pieces(replies, 70):
            theirs.send(piece)
        assert produce([ours], load).replies == 5


def test_the_sink_takes_requests_that_are_cut_anywhere() -> None:
    load = Load("t", 5 * 16 * 1024, timestamp_ms=0)
    frames = frames_of(load, batches_of(load))[:5]
    for number, frame in enumerate(frames):
        frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = number.to_bytes(4, "big")
    requests = b"".join(frames)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for piece in pieces(requests, 20_000):
            ours.send(piece)
        ours.shutdown(socket.SHUT_WR)
        sink.serve([theirs], load, None)
        assert [ours.recv(1000) for _ in range(5)] == [canned_reply("t", number, number * 16) for number in range(5)]


@pytest.mark.parametrize("connections", [1, 2])
def test_a_server_that_goes_away_ends_the_run(connections: int) -> None:
    load = Load("t", 40 * 16 * 1024, 0, connections=connections, partitions=connections)
    pairs = [socket.socketpair() for _ in range(connections)]
    try:
        pairs[-1][1].shutdown(socket.SHUT_WR)
        with pytest.raises(LoadFailed, match="closed by the server after 0 replies"):
            produce([ours for ours, _ in pairs], load)
    finally:
        for pair in pairs:
            for end in pair:
                end.close()


def test_generator_and_sink_run_as_processes() -> None:
    load = Load("t", 40 * 16 * 1024, 0, connections=4, partitions=2)
    with sink.running_sink(load) as port:
        result = run_load("127.0.0.1", port, load)
    assert result.replies == load.batch_count == 40
    with pytest.raises(LoadFailed, match="refused"):
        run_load("127.0.0.1", port, load)


def test_connections_go_to_several_servers_in_turn() -> None:
    """Each of two sinks serves one connection, and answers nobody else."""
    load = Load("t", 40 * 16 * 1024, 0, connections=2, partitions=1)
    half = dataclasses.replace(load, total_bytes=load.total_bytes // 2, connections=1)
    with sink.running_sink(half) as one, sink.running_sink(half) as other:
        result = run_load_to([f"127.0.0.1:{one}", f"127.0.0.1:{other}"], load)
    assert result.replies == 40
