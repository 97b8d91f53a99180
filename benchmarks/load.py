"""The load generator, a process of its own: `python -m benchmarks.load HOST PORT LOAD`, where LOAD is a `Load` in JSON.

Plain blocking sockets, one connection, so many requests in flight, frames built before the clock runs. Every reply is
looked at: its place in the order, its error code, its base offset. What came out is printed as one line of JSON.
Against `benchmarks.sink` it shows how fast it can go itself.
"""

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Self

from benchmarks.frames import CORRELATION_ID_POSITION, PRODUCE_VERSION, Load, ReplyShape, batches_of, frames_of
from benchmarks.machine import REPOSITORY
from protocol.codec import decode
from protocol.errors import ErrorCode, MalformedMessage
from protocol.frames import read_response_header
from protocol.messages.produce import ProduceResponse

TIMEOUT_S = 60.0
RUN_TIMEOUT_S = 600.0
RECEIVE_BYTES = 64 * 1024


class LoadFailed(Exception):
    """A reply was not what it should be, or the connection was closed."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """`seconds` from the first byte sent to the last reply, `cpu_seconds` of the generator in that time."""

    seconds: float
    cpu_seconds: float
    replies: int

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def run_load(host: str, port: int, load: Load) -> LoadResult:
    """Runs the generator as a process and waits for it. Raises LoadFailed."""
    command = [sys.executable, "-m", "benchmarks.load", host, str(port), load.to_json()]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S)
    if done.returncode != 0:
        raise LoadFailed(done.stderr.strip())
    result = LoadResult.from_json(done.stdout)
    if result.replies != load.batch_count:
        raise LoadFailed(f"{result.replies} replies to {load.batch_count} requests")
    return result


def produce(sock: socket.socket, load: Load) -> LoadResult:
    """Sends the whole load and takes every reply. Raises LoadFailed, OSError."""
    frames = frames_of(load, batches_of(load))
    replies = Replies(load)
    room = bytearray(RECEIVE_BYTES)
    view = memoryview(room)
    count, in_flight = load.batch_count, load.in_flight
    sent = received = 0
    cpu_before, started = time.process_time(), time.perf_counter()
    while replies.count < count:
        while sent < count and sent - replies.count < in_flight:
            frame = frames[sent % len(frames)]
            frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = sent.to_bytes(4, "big")
            sock.sendall(frame)
            sent += 1
        size = sock.recv_into(view[received:])
        if size == 0:
            raise LoadFailed(f"closed by the server after {replies.count} replies")
        received += size
        taken = replies.take(view[:received])
        room[: received - taken] = room[taken:received]
        received -= taken
    return LoadResult(time.perf_counter() - started, time.process_time() - cpu_before, replies.count)


class Replies:
    """Counts replies and checks each: in the order of the requests, without an error, at the offset that follows."""

    def __init__(self, load: Load) -> None:
        self.count = 0
        self._shape = ReplyShape(load.topic)
        self._records_per_batch = load.records_per_batch

    def take(self, data: memoryview) -> int:
        """Checks the whole replies at the beginning of `data`; how many bytes they are. Raises LoadFailed."""
        position, size_bytes = 0, self._shape.size_bytes
        while len(data) - position >= size_bytes:
            reply = self._shape.read(data, position)
            expected = (size_bytes - 4, self.count, 0, self.count * self._records_per_batch)
            if reply != expected:
                raise LoadFailed(f"reply {self.count}: {explain(bytes(data[position:]))}")
            position += size_bytes
            self.count += 1
        # A reply with an error may be shorter than a good one; waiting for the rest of it would be waiting for ever.
        if len(data) - position >= 4 and int.from_bytes(data[position : position + 4], "big") != size_bytes - 4:
            raise LoadFailed(f"reply {self.count}: {explain(bytes(data[position:]))}")
        return position


def explain(reply: bytes) -> str:
    """A reply in words, whatever it is."""
    size = int.from_bytes(reply[:4], "big")
    frame = reply[4 : 4 + size]
    try:
        correlation_id, position = read_response_header(frame, True)
        (topic,) = decode(ProduceResponse, PRODUCE_VERSION, frame, position).responses
        (partition,) = topic.partition_responses
        error = ErrorCode(partition.error_code)
    except (MalformedMessage, ValueError) as why:
        return f"{size} bytes announced, beginning with {frame[:64]!r} ({why})"
    text = f" ({partition.error_message})" if partition.error_message else ""
    return f"correlation id {correlation_id}, {error.name}{text}, base offset {partition.base_offset}"


def main(host: str, port: str, load: str) -> int:
    with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            result = produce(sock, Load.from_json(load))
        except LoadFailed as error:
            sys.stderr.write(f"{error}\n")
            return 1
    sys.stdout.write(json.dumps(asdict(result)) + os.linesep)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
