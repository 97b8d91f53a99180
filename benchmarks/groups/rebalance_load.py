"""The generator of rebalances, a process of its own: `python -m benchmarks.groups.rebalance_load LOAD HOST:PORT`.

LOAD is a `RebalanceLoad` in JSON. All members join at once, each on a connection of its own, and each asks its next
question as soon as the last one is answered, until the group is stable (`stability.py`). Then they leave. The seconds
from the first question until the group was stable are printed as one line of JSON.
"""

import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.groups.classic_member import classic_member
from benchmarks.groups.consumer_member import consumer_member
from benchmarks.groups.stability import MemberSteps, Stability
from benchmarks.load.generator import readable, run_generator, tell
from benchmarks.load.replies import LoadFailed
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame


@dataclass(frozen=True, slots=True)
class RebalanceLoad:
    """So many members of a group that share a topic's partitions. `protocol`: "classic" or "consumer"."""

    protocol: str
    group: str
    topic: str
    members: int
    partitions: int


class Conversing:
    """One member's connection: the question that is under way, and what has come of its answer."""

    def __init__(self, sock: socket.socket, steps: MemberSteps) -> None:
        self.socket = sock
        self.is_done = False
        self._steps = steps
        self._asked: Request[Any]
        self._version = 0
        self._correlation_id = 0
        self._received = bytearray()

    def begin(self) -> None:
        """Raises KafkaError, OSError."""
        self._ask(next(self._steps))

    def receive(self) -> None:
        """Takes what has come, and asks on once it is a whole answer. Raises KafkaError, LoadFailed, OSError."""
        data = self.socket.recv(64 * 1024)
        if not data:
            raise LoadFailed(f"closed by the server while it was asked {self._asked}")
        self._received += data
        if len(self._received) < 4 or len(self._received) - 4 < int.from_bytes(self._received[:4], "big"):
            return
        frame, self._received = self._received[4:], bytearray()
        correlation_id, position = read_response_header(frame, self._asked.is_flexible(self._version))
        if correlation_id != self._correlation_id:
            raise LoadFailed(f"{correlation_id} was answered instead of {self._correlation_id}, {self._asked}")
        answered = decode(self._asked.response_type, self._version, frame, position)
        try:
            self._ask(self._steps.send(answered))
        except StopIteration:
            self.is_done = True

    def _ask(self, question: tuple[Request[Any], int]) -> None:
        self._asked, self._version = question
        self._correlation_id += 1
        header = RequestHeader(self._asked.api_key, self._version, self._correlation_id, "member")
        parts = encode_parts(self._asked, self._version)
        self.socket.sendall(b"".join(request_frame(header, self._asked.is_flexible(self._version), parts)))


def run_rebalance(address: str, load: RebalanceLoad) -> float:
    """Runs the generator as a process; seconds from the first question until the group is stable. Raises LoadFailed."""
    return float(run_generator("benchmarks.groups.rebalance_load", json.dumps(asdict(load)), address))


def rebalance(sockets: Sequence[socket.socket], load: RebalanceLoad) -> float:
    """Seconds until the group is stable; all members have left. Raises KafkaError, LoadFailed, OSError."""
    stability = Stability(load.members, load.partitions)
    member = classic_member if load.protocol == "classic" else consumer_member
    members = [
        Conversing(sock, member(number, load.group, load.topic, stability)) for number, sock in enumerate(sockets)
    ]
    took, began = 0.0, time.perf_counter()
    for each in members:
        each.begin()
    for each in readable(members):
        each.receive()
        took = took or stability.is_reached * (time.perf_counter() - began)
    return took


def main(text: str, address: str) -> int:
    load = RebalanceLoad(**json.loads(text))
    return tell([address], load.members, lambda sockets: rebalance(sockets, load))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
