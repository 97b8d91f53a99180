"""The load generator counts only replies that are right: the others are put to it one by one; then a whole run."""

import os
import socket
import threading
from pathlib import Path

import pytest

from benchmarks import sink
from benchmarks.frames import DISTINCT_BATCHES, PRODUCE_VERSION, Load, batches_of, canned_reply
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


def test_replies_and_requests_may_come_in_pieces() -> None:
    """Packets keep their borders: replies reach the generator by 7 bytes, and requests the sink by 1 KiB at a time."""
    ours, gate = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    far_gate, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    workers = [
        threading.Thread(target=relay, args=(gate, far_gate, 1024)),
        threading.Thread(target=relay, args=(far_gate, gate, 7)),
        threading.Thread(target=sink.serve, args=(theirs, LOAD, None)),
    ]
    for worker in workers:
        worker.start()
    with gate, far_gate, theirs:
        with ours:
            result = produce(ours, LOAD)
        for end in (gate, far_gate):
            end.shutdown(socket.SHUT_RDWR)
        for worker in workers:
            worker.join()
    assert result.replies == 40


def relay(source: socket.socket, target: socket.socket, size_bytes: int) -> None:
    while packet := source.recv(1 << 20):
        for position in range(0, len(packet), size_bytes):
            target.send(packet[position : position + size_bytes])


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
