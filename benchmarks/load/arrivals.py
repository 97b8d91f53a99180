"""The generator for the way from a producer to a consumer that is waiting, a process of its own.

    python -m benchmarks.load.arrivals HOST PORT PACE FILE    as `paced`, with a consumer beside the producer

The consumer has one Fetch under way all the time, with min_bytes=1 and a long wait, and asks for what follows as soon
as an answer has come. The latency of a record counts from the moment at which it was due to be sent until the answer
that holds it is there, whole. Both connections belong to one thread, so one clock tells both moments.
"""

import socket
import sys
import time
from array import array
from collections.abc import Callable, Sequence

from benchmarks.load.fetch_frames import FetchAnswer, FetchQuestion
from benchmarks.load.frames import batches_of
from benchmarks.load.pace import Pace, Paced, Schedule
from benchmarks.load.paced import LEAD_NS, PacedLane, drive, generate
from benchmarks.load.replies import LoadFailed

FETCH_BYTES = 1024 * 1024
WAIT_MS = 500
"""Of the consumer's Fetch: Kafka's default of fetch.max.wait.ms."""
RECEIVE_BYTES = 2 * FETCH_BYTES


class Consumer:
    """One Fetch at a time; `arrived(number, now_ns)` is told of each record, by its offset."""

    def __init__(self, sock: socket.socket, topic: str, batch_bytes: int, arrived: Callable[[int, int], None]) -> None:
        self.socket = sock
        self.offset = 0
        self._batch_bytes = batch_bytes
        self._arrived = arrived
        self._question = FetchQuestion(topic, FETCH_BYTES, max_wait_ms=WAIT_MS)
        self._answer = FetchAnswer(topic)
        self._asked = 0
        self._view = memoryview(bytearray(RECEIVE_BYTES))
        self._received = 0

    def ask(self) -> None:
        """Sends the next question. It is short, and nothing else is under way: it goes without waiting."""
        self._asked += 1
        self._received = 0
        frame = self._question.frame(self._asked, self.offset)
        if self.socket.send(frame) != len(frame):
            raise LoadFailed("a question does not fit into the socket")

    def receive(self, now_ns: int) -> None:
        """Takes what has come; asks on when the answer is whole. Raises LoadFailed, OSError."""
        size = self.socket.recv_into(self._view[self._received :])
        if size == 0:
            raise LoadFailed(f"closed by the server at offset {self.offset}")
        self._received += size
        head_bytes = self._answer.head_bytes
        if self._received < head_bytes:
            return
        head = self._answer.read(self._view, self._asked)
        if self._received < head_bytes + head.records_bytes:
            return
        for position in range(head_bytes, head_bytes + head.records_bytes, self._batch_bytes):
            if int.from_bytes(self._view[position : position + 8], "big") != self.offset:
                raise LoadFailed(f"another batch than that at offset {self.offset} is read there")
            self._arrived(self.offset, now_ns)
            self.offset += 1
        self.ask()


def run_arrivals(sockets: Sequence[socket.socket], pace: Pace, *, lead_ns: int = LEAD_NS) -> Paced:
    """The whole load, until every record has arrived; one socket produces, one consumes. Raises LoadFailed, OSError."""
    producing, consuming = sockets
    load = pace.load
    assert load.connections == 1 and load.records_per_batch == 1
    latencies = array("q", bytes(8 * pace.count))
    schedule = Schedule(time.perf_counter_ns() + lead_ns, pace.rate_per_s, pace.count)

    def arrived(number: int, now_ns: int) -> None:
        latencies[number] = now_ns - schedule.due_ns(number)

    for sock in (producing, consuming):
        sock.setblocking(False)
    lane = PacedLane(producing, load, batches_of(load), 0, lambda number, now_ns: None)
    consumer = Consumer(consuming, load.topic, load.batch_bytes, arrived)
    consumer.ask()
    drive(schedule, [lane], [lane, consumer], lambda: lane.replies == consumer.offset == pace.count)
    return Paced(schedule.begin_ns, latencies)


def main(host: str, port: str, text: str, file: str) -> int:
    return generate(run_arrivals, 2, host, port, Pace.from_json(text), file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
