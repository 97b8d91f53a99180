"""The generator that reads, a process of its own: `python -m benchmarks.load.fetch_load HOST PORT READING`.

One connection, one Fetch at a time, each from where the last one ended, over the whole log and again. Answers are
received into one buffer, which is there before the clock runs; of each its length, its error codes and the offset of
its first batch are checked. What the log holds is compared by `benchmarks.harness.readback`, in a pass of its own.

    python -m benchmarks.load.fetch_load sink READING    prints its port, and answers one connection with canned batches
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import Self

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.fetch_frames import FetchAnswer, FetchQuestion, canned_answer
from benchmarks.load.frames import Load, batches_of
from benchmarks.load.generator import run_generator
from benchmarks.load.load import LoadResult
from benchmarks.load.replies import LoadFailed

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

    @classmethod
    def of(cls, load: Load, max_bytes: int, passes: int) -> Self:
        """Of what the load has produced, by one connection."""
        assert load.partitions == 1 and max_bytes >= load.batch_bytes
        return cls(load.topic, load.batch_bytes, load.records_per_batch, load.batch_count, max_bytes, passes)

    @property
    def read_bytes(self) -> int:
        return self.passes * self.batch_count * self.batch_bytes

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def read(sock: socket.socket, reading: Reading) -> LoadResult:
    """Reads it all. Raises LoadFailed, OSError."""
    question = FetchQuestion(reading.topic, reading.max_bytes)
    answer = FetchAnswer(reading.topic)
    view = memoryview(bytearray(HEAD_ROOM_BYTES + reading.max_bytes))
    head_bytes = answer.head_bytes
    count = 0
    cpu_before, started = time.process_time(), time.perf_counter()
    for _ in range(reading.passes):
        batch = 0
        while batch < reading.batch_count:
            offset = batch * reading.records_per_batch
            count += 1
            sock.sendall(question.frame(count, offset))
            receive(sock, view[:head_bytes])
            head = answer.read(view, count)
            if not 0 < head.records_bytes <= reading.max_bytes:
                raise LoadFailed(f"{head.records_bytes} bytes are read at offset {offset}")
            receive(sock, view[head_bytes : head_bytes + head.records_bytes])
            if int.from_bytes(view[head_bytes : head_bytes + 8], "big") != offset:
                raise LoadFailed(f"another batch than that at offset {offset} is read there")
            batches = head.records_bytes // reading.batch_bytes  # the last one may be cut off
            if batches == 0:
                raise LoadFailed(f"no whole batch is read at offset {offset}")
            batch += batches
    return LoadResult(time.perf_counter() - started, time.process_time() - cpu_before, count)


def receive(sock: socket.socket, view: memoryview) -> None:
    """Fills the view. Raises LoadFailed, OSError."""
    if sock.recv_into(view, len(view), socket.MSG_WAITALL) != len(view):
        raise LoadFailed("closed by the server")


def run_reading(host: str, port: int, reading: Reading) -> LoadResult:
    """Runs the generator as a process and waits for it. Raises LoadFailed."""
    return LoadResult.from_json(run_generator("benchmarks.load.fetch_load", host, str(port), reading.to_json()))


@contextlib.contextmanager
def running_fetch_sink(reading: Reading) -> Generator[int, None, None]:
    """A sink process for one run, and its port. It ends when the run's connection does, or with the block."""
    command = [sys.executable, "-m", "benchmarks.load.fetch_load", SINK, reading.to_json()]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve(connection: socket.socket, reading: Reading) -> None:
    """Answers each question with as many batches as it asks for, or as are left, the first with its offset.

    The batches go from memory to the socket as a broker's go there from the page cache, by sendfile.
    """
    question, answer = FetchQuestion(reading.topic, reading.max_bytes), FetchAnswer(reading.topic)
    load = Load(reading.topic, reading.max_bytes, 0, reading.batch_bytes, reading.batch_bytes)
    whole = reading.max_bytes // reading.batch_bytes
    counts = (whole, reading.batch_count % whole)
    heads = {count: canned_answer(reading.topic, bytes(count * reading.batch_bytes)) for count in counts}
    for head in heads.values():
        del head[answer.head_bytes :]
    asked = bytearray(question.size_bytes)
    with os.fdopen(os.memfd_create("batches"), "w+b", buffering=0) as file:
        file.write(batches_of(load)[0] * whole)
        while connection.recv_into(asked, len(asked), socket.MSG_WAITALL) == len(asked):
            offset = asked[question.offset_position : question.offset_position + 8]
            batch = int.from_bytes(offset, "big") // reading.records_per_batch
            count = min(whole, reading.batch_count - batch)
            head = heads[count]
            head[4:8] = asked[8:12]
            os.pwrite(file.fileno(), offset, 0)
            connection.sendall(head, socket.MSG_MORE)
            sent, size_bytes = 0, count * reading.batch_bytes
            while sent < size_bytes:
                sent += os.sendfile(connection.fileno(), file.fileno(), sent, size_bytes - sent)


def main(*arguments: str) -> int:
    if arguments[0] == SINK:
        with socket.create_server(("127.0.0.1", 0)) as server:
            sys.stdout.write(f"{server.getsockname()[1]}\n")
            sys.stdout.flush()
            connection, _ = server.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                serve(connection, Reading.from_json(arguments[1]))
        return 0
    host, port, text = arguments
    with socket.create_connection((host, int(port))) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            result = read(sock, Reading.from_json(text))
        except LoadFailed as error:
            sys.stderr.write(f"{error}\n")
            return 1
    sys.stdout.write(json.dumps(asdict(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
