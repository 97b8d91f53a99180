"""The load generator, a process of its own: `python -m benchmarks.load.load LOAD ADDRESS…`.

LOAD is a `Load` in JSON. An ADDRESS is HOST:PORT, and connection `n` goes to the one at `n` modulo their number: to
brokers of a cluster, each to the leader of its partition.

Plain blocking sockets, so many requests in flight on each, frames built before the clock runs. Every reply is looked
at: its place in the order, its error code, its base offset. What came out is printed as one line of JSON. Against
`benchmarks.load.sink` it shows how fast it can go itself.
"""

import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from benchmarks.load.frames import (
    CORRELATION_ID_POSITION,
    Load,
    Stamp,
    batch_of,
    batches_of,
    frames_of,
    partition_position,
)
from benchmarks.load.generator import readable, run_generator, tell
from benchmarks.load.replies import LoadFailed, Replies

RECEIVE_BYTES = 64 * 1024


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
    return run_load_to([f"{host}:{port}"], load)


def run_load_to(addresses: Sequence[str], load: Load) -> LoadResult:
    """The same, with connections to several brokers in turn. Raises LoadFailed."""
    result = LoadResult.from_json(run_generator("benchmarks.load.load", load.to_json(), *addresses))
    if result.replies != load.batch_count:
        raise LoadFailed(f"{result.replies} replies to {load.batch_count} requests")
    return result


class Lane:
    """One connection of the load, and how far it has come."""

    def __init__(self, sock: socket.socket, load: Load, batches: list[bytes], partition: int) -> None:
        self.socket = sock
        self._load = load
        self._frames = frames_of(load, batches, partition)
        self._batches = [batch_of(frame, load) for frame in self._frames]
        self._stamps = [Stamp(load, batch) for batch in batches] if load.is_stamped else []
        self._partition_at = partition_position(load)
        self._replies = Replies(load, partition)
        self._count = load.batches_per_connection
        self._sent = 0
        self._room = bytearray(RECEIVE_BYTES)
        self._view = memoryview(self._room)
        self._received = 0

    @property
    def replies(self) -> int:
        return self._replies.count

    @property
    def is_done(self) -> bool:
        return self._replies.count == self._count

    def fill(self) -> None:
        """Sends as many requests as may be in flight. Raises OSError."""
        until = min(self._count, self._replies.count + self._load.in_flight)
        while self._sent < until:
            at = self._sent % len(self._frames)
            frame = self._frames[at]
            if self._stamps:
                self._stamps[at].apply(self._batches[at], self._sent)
            frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = self._sent.to_bytes(4, "big")
            if self._load.spread > 1:
                frame[self._partition_at : self._partition_at + 4] = (self._sent % self._load.spread).to_bytes(4, "big")
            self.socket.sendall(frame)
            self._sent += 1

    def receive(self) -> None:
        """Waits for bytes and takes the replies in them. Raises LoadFailed, OSError."""
        size = self.socket.recv_into(self._view[self._received :])
        if size == 0:
            raise LoadFailed(f"closed by the server after {self._replies.count} replies")
        self._received += size
        taken = self._replies.take(self._view[: self._received])
        self._room[: self._received - taken] = self._room[taken : self._received]
        self._received -= taken


def produce(sockets: Sequence[socket.socket], load: Load) -> LoadResult:
    """Sends the whole load and takes every reply. Raises LoadFailed, OSError."""
    batches = batches_of(load)
    lanes = [Lane(sock, load, batches, number % load.partitions) for number, sock in enumerate(sockets)]
    cpu_before, started = time.process_time(), time.perf_counter()
    for lane in lanes:
        lane.fill()
    for lane in readable(lanes):
        lane.receive()
        lane.fill()
    return LoadResult(
        time.perf_counter() - started, time.process_time() - cpu_before, sum(lane.replies for lane in lanes)
    )


def main(text: str, *addresses: str) -> int:
    load = Load.from_json(text)
    return tell(addresses, load.connections, lambda sockets: asdict(produce(sockets, load)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
