"""The sink, a process of its own: takes the load and answers canned replies, without a broker's work.

    python -m benchmarks.sink LOAD [FILE]     prints its port, serves one connection, ends when it is closed

What the load generator reaches here is its own limit. With FILE, each batch is written there before it is answered, by
one `write` each, without looking at it: the work that no broker in this language on this machine can avoid.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

from benchmarks.frames import CORRELATION_ID_POSITION, Load, batches_of, canned_reply, frames_of
from benchmarks.machine import REPOSITORY

RECEIVE_BYTES = 1024 * 1024
END_TIMEOUT_S = 10.0


@contextlib.contextmanager
def running_sink(load: Load, file: Path | None = None) -> Generator[int, None, None]:
    """A sink process for one run, and its port. It ends when the run's connection does, or with the block."""
    command = [sys.executable, "-m", "benchmarks.sink", load.to_json(), *([] if file is None else [str(file)])]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
            process.wait(END_TIMEOUT_S)
        finally:
            process.kill()


def serve(connection: socket.socket, load: Load, descriptor: int | None) -> None:
    """Answers until the peer closes. Frames are all of the size of the first, as those of `load` are."""
    batch_bytes = load.batch_bytes
    (frame, *_) = frames_of(load, batches_of(load))
    frame_bytes = len(frame)
    batch_position = frame_bytes - batch_bytes - 3  # three tag sections follow it
    reply = bytearray(canned_reply(load.topic, 0, 0))
    base_offset_position = reply_offset_position(load.topic)
    buffer = bytearray(RECEIVE_BYTES)
    view = memoryview(buffer)
    received, answered = 0, 0
    while count := connection.recv_into(view[received:]):
        received += count
        position = 0
        while received - position >= frame_bytes:
            if descriptor is not None:
                begin = position + batch_position
                os.write(descriptor, view[begin : begin + batch_bytes])
            id_position = position + CORRELATION_ID_POSITION
            reply[4:8] = view[id_position : id_position + 4]
            offset = answered * load.records_per_batch
            reply[base_offset_position : base_offset_position + 8] = offset.to_bytes(8, "big")
            connection.sendall(reply)
            answered += 1
            position += frame_bytes
        buffer[: received - position] = buffer[position:received]
        received -= position


def reply_offset_position(topic: str) -> int:
    """Where the base offset stands in a canned reply: where a reply with all its bits set differs from one without."""
    without, with_all = canned_reply(topic, 0, 0), canned_reply(topic, 0, -1)
    return next(index for index, pair in enumerate(zip(without, with_all, strict=True)) if pair[0] != pair[1])


def main(load: str, file: str | None = None) -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        connection, _ = server.accept()
        with connection, contextlib.ExitStack() as stack:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            descriptor = None if file is None else stack.enter_context(open(file, "wb", buffering=0)).fileno()
            serve(connection, Load.from_json(load), descriptor)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
