"""The load generator counts only replies that are right: the others are put to it one by one; then a whole run."""

import os
import socket
import threading
from pathlib import Path

import pytest

from benchmarks import sink
from benchmarks.frames import (
    CORRELATION_ID_POSITION,
    DISTINCT_BATCHES,
    PRODUCE_VERSION,
    Load,
    batches_of,
    canned_reply,
    frames_of,
)
from benchmarks.load import LoadFailed, Replies, produce, run_load
from protocol.codec import encode
from protocol.errors import ErrorCode
from protocol.frames import response_frame
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

LOAD = Load("produce-1", 40 * 16 * 1024, timestamp_ms=1_700_000_000_000)


def error_reply(code: ErrorCode, text: str | None) -> bytes:
    """An error that differs from a good reply by its code alone, or by its text as well."""
    partition = PartitionProduceResponse(
        index=0, error_code=code.value, base_offset=0, log_start_offset=0, error_message=text
    )
    response = ProduceResponse(responses=[TopicProduceResponse(name=LOAD.topic, partition_responses=[partition])])
    return b"".join(response_frame(0, True, [encode(response, PRODUCE_VERSION)]))


def test_replies_are_taken_whole_in_whatever_portions_they_come() -> None:
    data = b"".join(canned_reply(LOAD.topic, number, number * 16) for number in range(5))
    replies, received = Replies(LOAD), b""
    for position in range(len(data)):
        received += data[position : position + 1]
        received = received[replies.take(memoryview(received)) :]
    assert replies.count == 5
    assert received == b""


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (canned_reply(LOAD.topic, 1, 0), "correlation id 1"),
        (canned_reply(LOAD.topic, 0, 16), "base offset 16"),
        (error_reply(ErrorCode.NOT_LEADER_OR_FOLLOWER, None), "NOT_LEADER_OR_FOLLOWER"),
        (error_reply(ErrorCode.CORRUPT_MESSAGE, "a wrong checksum"), r"CORRUPT_MESSAGE \(a wrong checksum\)"),
        (b"\0\0\0\x05\0\0\0\0\0", "reply 0"),
    ],
)
def test_a_reply_out_of_order_at_another_offset_or_with_an_error_ends_the_run(reply: bytes, said: str) -> None:
    with pytest.raises(LoadFailed, match=said):
        Replies(LOAD).take(memoryview(reply))


def test_a_run_gets_a_reply_to_each_request_and_the_file_behind_the_sink_holds_every_batch(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    descriptor = os.open(tmp_path / "sink", os.O_CREAT | os.O_RDWR)
    answering = threading.Thread(target=sink.serve, args=(theirs, LOAD, descriptor))
    answering.start()
    with theirs:
        with ours:
            result = produce(ours, LOAD)
        answering.join()
    os.close(descriptor)
    batches = batches_of(LOAD)
    assert result.replies == 40
    assert result.seconds > 0
    assert (tmp_path / "sink").read_bytes() == b"".join(batches[number % DISTINCT_BATCHES] for number in range(40))


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
        assert produce(ours, load).replies == 5


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
        sink.serve(theirs, load, None)
        assert [ours.recv(1000) for _ in range(5)] == [canned_reply("t", number, number * 16) for number in range(5)]


def test_a_server_that_goes_away_ends_the_run() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(LoadFailed, match="closed by the server after 0 replies"):
            produce(ours, LOAD)


def test_generator_and_sink_run_as_processes() -> None:
    with sink.running_sink(LOAD) as port:
        result = run_load("127.0.0.1", port, LOAD)
    assert result.replies == LOAD.batch_count
    with pytest.raises(LoadFailed, match="refused"):
        run_load("127.0.0.1", port, LOAD)
