"""The generator that reads goes through a log as often as asked, and believes no answer unseen."""

import socket
import threading
from collections.abc import Callable

import pytest

from benchmarks.load.fetch_frames import FetchQuestion, canned_answer
from benchmarks.load.fetch_load import (
    Reading,
    ReadLane,
    read,
    run_reading,
    run_reading_from,
    running_fetch_sink,
    serve,
)
from benchmarks.load.frames import Load, batches_of
from benchmarks.load.load import LoadResult
from benchmarks.load.replies import LoadFailed

LOAD = Load("t", 37 * 16 * 1024, timestamp_ms=0)


def read_from(reading: Reading, server: Callable[[socket.socket], None]) -> LoadResult:
    ours, theirs = socket.socketpair()
    serving = threading.Thread(target=server, args=(theirs,))
    serving.start()
    try:
        return read([ours], reading)
    finally:
        ours.close()
        serving.join()
        theirs.close()


@pytest.mark.parametrize(("max_bytes", "answers"), [(16 * 1024, 37), (64 * 1024, 10), (1024 * 1024, 1)])
def test_the_whole_log_is_read_in_every_pass(max_bytes: int, answers: int) -> None:
    reading = Reading.of(LOAD, max_bytes, passes=3)
    assert reading.read_bytes == 3 * 37 * 16 * 1024
    assert read_from(reading, lambda sock: serve([sock], reading)).replies == 3 * answers


def answering(records: bytes) -> Callable[[socket.socket], None]:
    """A server that answers the first question so, and leaves."""

    def answer(sock: socket.socket) -> None:
        sock.recv(FetchQuestion("t", 1).size_bytes, socket.MSG_WAITALL)
        data = canned_answer("t", records)
        data[4:8] = (1).to_bytes(4, "big")
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)

    return answer


def test_a_batch_that_is_cut_off_is_asked_for_again() -> None:
    """64 KiB were asked for, and two batches and a half came: the third is read next, from a server that is gone."""
    records = b"".join(batches_of(LOAD)[:3])[: 40 * 1024]
    with pytest.raises(LoadFailed, match="closed by the server"):
        read_from(Reading.of(LOAD, 64 * 1024, 1), answering(records))
    two = Load("t", 2 * 16 * 1024, timestamp_ms=0)
    assert read_from(Reading.of(two, 64 * 1024, 1), answering(records)).replies == 1


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (b"", "0 bytes are read at offset 0"),
        (bytes(65 * 1024), "66560 bytes are read at offset 0"),
        (bytes(8000), "no whole batch"),
        ((1).to_bytes(8, "big") + bytes(16 * 1024), "another batch than that at offset 0"),
    ],
)
def test_what_is_no_answer_to_the_question_ends_the_run(records: bytes, said: str) -> None:
    with pytest.raises(LoadFailed, match=said):
        read_from(Reading.of(LOAD, 64 * 1024, 1), answering(records))


def test_generator_and_sink_run_as_processes() -> None:
    reading = Reading.of(LOAD, 64 * 1024, 2)
    assert Reading.from_json(reading.to_json()) == reading
    with running_fetch_sink(reading) as port:
        result = run_reading("127.0.0.1", port, reading)
    assert result.replies == 20
    assert result.seconds > 0
    with pytest.raises(LoadFailed, match="refused"):
        run_reading("127.0.0.1", port, reading)


def test_each_partition_is_read_over_a_connection_of_its_own() -> None:
    load = Load("t", 8 * 37 * 16 * 1024, timestamp_ms=0, connections=8, partitions=8)
    reading = Reading.of(load, 64 * 1024, 2)
    assert (reading.batch_count, reading.read_bytes) == (37, 2 * 8 * 37 * 16 * 1024)
    with running_fetch_sink(reading) as port:
        result = run_reading_from([f"127.0.0.1:{port}"], reading)
    assert result.replies == 8 * 20


def test_a_lane_asks_for_its_partition() -> None:
    """The two questions differ in the partition's number alone."""
    asked: list[bytes] = []
    for partition in (0, 5):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ReadLane(ours, Reading.of(LOAD, 64 * 1024, 1), partition, memoryview(bytearray(1))).ask()
            asked.append(theirs.recv(1000))
    differing = [pair for pair in zip(*asked, strict=True) if pair[0] != pair[1]]
    assert differing == [(0, 5)]
