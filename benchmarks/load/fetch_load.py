"""The generator that reads, a process of its own: `python -m benchmarks.load.fetch_load READING ADDRESS…`.

A connection for each partition, to the addresses in turn, with one Fetch at a time, each from where the last one ended,
over the whole log and again. Answers are received into one buffer, which is there before the clock runs; of each its
length, its error codes and the offset of its first batch are checked. What the log holds is compared by
`benchmarks.harness.readback`, in a pass of its own.

    python -m benchmarks.load.fetch_load sink READING    prints its port, and answers with canned batches
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Self

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.fetch_frames import FetchAnswer, FetchQuestion, canned_answer
from benchmarks.load.frames import Load, batches_of
from benchmarks.load.generator import readable, run_generator, tell
from benchmarks.load.load import LoadResult
from benchmarks.load.replies import LoadFailed
from benchmarks.load.sink import answer_all

HEAD_ROOM_BYTES = 4096
SINK = "sink"


@dataclass(frozen=True, slots=True)
class Reading:
    """`passes` over a topic of equal batches, `max_bytes` at a time."""

    topic: str
    batch_bytes: int
    records_per_batch: int
    batch_count: int
    max_bytes: int
    passes: int
    partitions: int = 1
    """Each of `batch_count` batches."""

    @classmethod
    def of(cls, load: Load, max_bytes: int, passes: int) -> Self:
        """Of what the load has produced."""
        assert not load.is_shared and max_bytes >= load.batch_bytes
        count = load.batches_to(0)
        return cls(load.topic, load.batch_bytes, load.records_per_batch, count, max_bytes, passes, load.partitions)

    @property
    def read_bytes(self) -> int:
        return self.passes * self.partitions * self.batch_count * self.batch_bytes

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


class ReadLane:
    """One connection, and how far it has read its partition. `view` is where answers go; lanes may share it."""

    def __init__(self, sock: socket.socket, reading: Reading, partition: int, view: memoryview) -> None:
        sock.settimeout(None)  # with a timeout, MSG_WAITALL returns what has come
        self.socket = sock
        self.replies = 0
        self._reading = reading
        self._question = FetchQuestion(reading.topic, reading.max_bytes, partition=partition)
        self._answer = FetchAnswer(reading.topic)
        self._view = view
        self._pass = 0
        self._batch = 0

    @property
    def is_done(self) -> bool:
        return self._pass == self._reading.passes

    def ask(self) -> None:
        """Asks for what comes next. Raises OSError."""
        offset = self._batch * self._reading.records_per_batch
        self.socket.sendall(self._question.frame(self.replies + 1, offset))

    def take(self) -> None:
        """Waits for the whole answer. Raises LoadFailed, OSError."""
        reading, view, head_bytes = self._reading, self._view, self._answer.head_bytes
        offset = self._batch * reading.records_per_batch
        self.replies += 1
        receive(self.socket, view[:head_bytes])
        head = self._answer.read(view, self.replies)
        if not 0 < head.records_bytes <= reading.max_bytes:
            raise LoadFailed(f"{head.records_bytes} bytes are read at offset {offset}")
        receive(self.socket, view[head_bytes : head_bytes + head.records_bytes])
        if int.from_bytes(view[head_bytes : head_bytes + 8], "big") != offset:
            raise LoadFailed(f"another batch than that at offset {offset} is read there")
        batches = head.records_bytes // reading.batch_bytes  # the last one may be cut off
        if batches == 0:
            raise LoadFailed(f"no whole batch is read at offset {offset}")
        self._batch += batches
        if self._batch >= reading.batch_count:
            self._batch = 0
            self._pass += 1


def read(sockets: Sequence[socket.socket], reading: Reading) -> LoadResult:
    """Reads it all, each partition over the connection of its number. Raises LoadFailed, OSError."""
    view = memoryview(bytearray(HEAD_ROOM_BYTES + reading.max_bytes))
    lanes = [ReadLane(sock, reading, partition, view) for partition, sock in enumerate(sockets)]
    cpu_before, started = time.process_time(), time.perf_counter()
    for lane in lanes:
        lane.ask()
    for lane in readable(lanes):
        lane.take()
        if not lane.is_done:
            lane.ask()
    return LoadResult(
        time.perf_counter() - started, time.process_time() - cpu_before, sum(lane.replies for lane in lanes)
    )


def receive(sock: socket.socket, view: memoryview) -> None:
    """Fills the view. Raises LoadFailed, OSError."""
    if sock.recv_into(view, len(view), socket.MSG_WAITALL) != len(view):
        raise LoadFailed("closed by the server")


def run_reading(host: str, port: int, reading: Reading) -> LoadResult:
    """Runs the generator as a process and waits for it. Raises LoadFailed."""
    return run_reading_from([f"{host}:{port}"], reading)


def run_reading_from(addresses: Sequence[str], reading: Reading) -> LoadResult:
    """The same, with connections to several brokers in turn. Raises LoadFailed."""
    return LoadResult.from_json(run_generator("benchmarks.load.fetch_load", reading.to_json(), *addresses))


@contextlib.contextmanager
def running_fetch_sink(reading: Reading) -> Generator[int, None, None]:
    """A sink process for one run, and its port. It ends when the run's connections do, or with the block."""
    command = [sys.executable, "-m", "benchmarks.load.fetch_load", SINK, reading.to_json()]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve(connections: Sequence[socket.socket], reading: Reading) -> None:
    """Answers until the peers close. The batches go from memory to the socket as a broker's go there from the page
    cache, by sendfile: what lies in a socket changes with the memory, so each connection has its own."""
    load = Load(reading.topic, reading.max_bytes, 0, reading.batch_bytes, reading.batch_bytes)
    batches = batches_of(load)[0] * (reading.max_bytes // reading.batch_bytes)
    with ExitStack() as stack:
        peers: list[Peer] = []
        for connection in connections:
            file = stack.enter_context(os.fdopen(os.memfd_create("batches"), "w+b", buffering=0))
            file.write(batches)
            peers.append(Peer(connection, reading, file.fileno()))
        answer_all(peers)


class Peer:
    """One connection of the generator, seen from the sink: each question is answered with as many batches as it asks
    for, or as are left, the first with its offset. `descriptor` is of a file with so many batches."""

    def __init__(self, connection: socket.socket, reading: Reading, descriptor: int) -> None:
        self.connection = connection
        self._reading = reading
        self._descriptor = descriptor
        question, answer = FetchQuestion(reading.topic, reading.max_bytes), FetchAnswer(reading.topic)
        self._offset_position = question.offset_position
        self._asked = bytearray(question.size_bytes)
        self._whole = reading.max_bytes // reading.batch_bytes
        counts = (self._whole, reading.batch_count % self._whole)
        self._heads = {count: canned_answer(reading.topic, bytes(count * reading.batch_bytes)) for count in counts}
        for head in self._heads.values():
            del head[answer.head_bytes :]

    def answer(self) -> bool:
        """Takes a question and answers it; whether the peer is still there."""
        asked, reading = self._asked, self._reading
        if self.connection.recv_into(asked, len(asked), socket.MSG_WAITALL) != len(asked):
            return False
        offset = asked[self._offset_position : self._offset_position + 8]
        batch = int.from_bytes(offset, "big") // reading.records_per_batch
        count = min(self._whole, reading.batch_count - batch)
        head = self._heads[count]
        head[4:8] = asked[8:12]
        os.pwrite(self._descriptor, offset, 0)
        self.connection.sendall(head, socket.MSG_MORE)
        sent, size_bytes = 0, count * reading.batch_bytes
        while sent < size_bytes:
            sent += os.sendfile(self.connection.fileno(), self._descriptor, sent, size_bytes - sent)
        return True


def main(*arguments: str) -> int:
    if arguments[0] == SINK:
        reading = Reading.from_json(arguments[1])
        with ExitStack() as stack:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=reading.partitions))
            sys.stdout.write(f"{server.getsockname()[1]}\n")
            sys.stdout.flush()
            connections = [stack.enter_context(server.accept()[0]) for _ in range(reading.partitions)]
            for connection in connections:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serve(connections, reading)
        return 0
    text, *addresses = arguments
    reading = Reading.from_json(text)
    return tell(addresses, reading.partitions, lambda sockets: asdict(read(sockets, reading)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
