"""What `benchmarks.load.arrivals` meets instead of a broker, to show how late it is itself, a process of its own.

    python -m benchmarks.load.arrival_sink LOAD    prints its port, serves a producer, then a consumer, ends with them

Each batch is answered, and handed on as it came to the consumer, whose question waits for it.
"""

import contextlib
import select
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack

from benchmarks.host.machine import REPOSITORY
from benchmarks.load.arrivals import FETCH_BYTES
from benchmarks.load.fetch_frames import FetchAnswer, FetchQuestion, canned_answer
from benchmarks.load.frames import CORRELATION_ID_POSITION, TAG_SECTIONS, Load, batches_of, frames_of
from benchmarks.load.replies import canned_reply
from benchmarks.load.sink import reply_offset_position


@contextlib.contextmanager
def running_arrival_sink(load: Load) -> Generator[int, None, None]:
    """A sink process for one run, and its port. It ends when the run's connections do, or with the block."""
    command = [sys.executable, "-m", "benchmarks.load.arrival_sink", load.to_json()]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


def serve(producing: socket.socket, consuming: socket.socket, load: Load) -> None:
    """Hands batches on, one at a time, until either peer closes. Both sockets block."""
    (frame, *_) = frames_of(load, batches_of(load))
    question, answer = FetchQuestion(load.topic, FETCH_BYTES), FetchAnswer(load.topic)
    request, asked = bytearray(len(frame)), bytearray(question.size_bytes)
    reply = bytearray(canned_reply(load.topic, 0, 0))
    at = reply_offset_position(load.topic)
    delivery = canned_answer(load.topic, batches_of(load)[0])
    batch_position = answer.head_bytes
    for number in range(load.batch_count):
        if not (receive(producing, request) and receive(consuming, asked)):
            return
        offset = number.to_bytes(8, "big")
        reply[4:8] = request[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4]
        reply[at : at + 8] = offset
        producing.sendall(reply)
        end = len(request) - TAG_SECTIONS
        delivery[4:8] = asked[8:12]
        delivery[batch_position:] = request[end - load.batch_bytes : end]
        delivery[batch_position : batch_position + 8] = offset
        consuming.sendall(delivery)
    select.select([producing], [], [])  # the last question is left unanswered, until the peer closes


def receive(sock: socket.socket, room: bytearray) -> bool:
    """Fills the room; whether the peer was still there."""
    return sock.recv_into(room, len(room), socket.MSG_WAITALL) == len(room)


def main(text: str) -> int:
    load = Load.from_json(text)
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        sys.stdout.write(f"{server.getsockname()[1]}\n")
        sys.stdout.flush()
        producing, consuming = (stack.enter_context(server.accept()[0]) for _ in range(2))
        for connection in (producing, consuming):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        serve(producing, consuming, load)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
