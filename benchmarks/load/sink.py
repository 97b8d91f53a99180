"""The sink, a process of its own: takes the load and answers canned replies, without a broker's work.

    python -m benchmarks.load.sink LOAD [FILE]    prints its port, serves the load's connections, ends with them

What the load generator reaches here is its own limit. With FILE, each batch is written there before it is answered, by
one `write` each, without looking at it: the work that no broker in this language on this machine can avoid.
"""

import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.frames import CORRELATION_ID_POSITION, TAG_SECTIONS, Load, batches_of, frames_of
from benchmarks.load.replies import canned_reply

RECEIVE_BYTES = 1024 * 1024
END_TIMEOUT_S = 10.0


@contextlib.contextmanager
def running_sink(load: Load, file: Path | None = None) -> Generator[int, None, None]:
    """A sink process for one run, and its port. It ends when the run's connection does, or with the block."""
    command = [sys.executable, "-m", "benchmarks.load.sink", load.to_json(), *([] if file is None else [str(file)])]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
            process.wait(END_TIMEOUT_S)
        finally:
            process.kill()


def serve(connections: Sequence[socket.socket], load: Load, descriptor: int | None) -> None:
    """Answers until the peers close. Frames are all of the size of the first, as those of `load` are."""
    assert load.spread == 1, "the sink does not look where a request goes"
    offsets = [0] * load.partitions
    peers = [
        Peer(connection, load, number % load.partitions, offsets, descriptor)
        for number, connection in enumerate(connections)
    ]
    answer_all(peers)


class Answerer(Protocol):
    """One connection of a load, seen from a sink. `answer` takes what has come, and says whether the peer is there."""

    @property
    def connection(self) -> socket.socket: ...

    def answer(self) -> bool: ...


def answer_all(peers: Sequence[Answerer]) -> None:
    """Has each answer whenever something comes, until all are gone. A single one need not be asked about."""
    if len(peers) == 1:
        while peers[0].answer():
            pass
        return
    with select.epoll() as epoll:
        by_descriptor = {peer.connection.fileno(): peer for peer in peers}
        for number in by_descriptor:
            epoll.register(number, select.EPOLLIN)
        while by_descriptor:
            for number, _event in epoll.poll():
                if not by_descriptor[number].answer():
                    epoll.unregister(number)
                    del by_descriptor[number]


class Peer:
    """One connection of the load, seen from the sink. `offsets`: where each partition ends."""

    def __init__(
        self, connection: socket.socket, load: Load, partition: int, offsets: list[int], descriptor: int | None
    ) -> None:
        self.connection = connection
        self._batch_bytes = load.batch_bytes
        self._frame_bytes = len(frames_of(load, batches_of(load)[:1])[0])
        self._records_per_batch = load.records_per_batch
        self._partition = partition
        self._offsets = offsets
        self._descriptor = descriptor
        self._reply = bytearray(canned_reply(load.topic, 0, 0, partition))
        self._base_offset_position = reply_offset_position(load.topic)
        self._buffer = bytearray(max(RECEIVE_BYTES, 2 * self._frame_bytes))
        self._view = memoryview(self._buffer)
        self._received = 0

    def answer(self) -> bool:
        """Takes what has come and answers what is whole; whether the peer is still there."""
        buffer, view, reply, frame_bytes = self._buffer, self._view, self._reply, self._frame_bytes
        count = self.connection.recv_into(view[self._received :])
        received = self._received + count
        position = 0
        while received - position >= frame_bytes:
            if self._descriptor is not None:
                end = position + frame_bytes - TAG_SECTIONS
                os.write(self._descriptor, view[end - self._batch_bytes : end])
            id_position = position + CORRELATION_ID_POSITION
            reply[4:8] = view[id_position : id_position + 4]
            at = self._base_offset_position
            reply[at : at + 8] = self._offsets[self._partition].to_bytes(8, "big")
            self._offsets[self._partition] += self._records_per_batch
            self.connection.sendall(reply)
            position += frame_bytes
        buffer[: received - position] = buffer[position:received]
        self._received = received - position
        return count > 0


def reply_offset_position(topic: str) -> int:
    """Where the base offset stands in a canned reply: where a reply with all its bits set differs from one without."""
    without, with_all = canned_reply(topic, 0, 0), canned_reply(topic, 0, -1)
    return next(index for index, pair in enumerate(zip(without, with_all, strict=True)) if pair[0] != pair[1])


def main(text: str, file: str | None = None) -> int:
    load = Load.from_json(text)
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=load.connections))
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        connections = [stack.enter_context(server.accept()[0]) for _ in range(load.connections)]
        for connection in connections:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        descriptor = None if file is None else stack.enter_context(open(file, "wb", buffering=0)).fileno()
        serve(connections, load, descriptor)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
