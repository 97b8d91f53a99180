"""The generator of commits, a process of its own: `python -m benchmarks.groups.commit_load LOAD HOST:PORT`.

LOAD is a `CommitLoad` in JSON. Each group has a connection, so many requests in flight on it, and frames that are built
before the clock runs; only correlation id and offset are written into them. Every reply is compared with the one that
has no error. What came out is printed as one line of JSON.

    OffsetCommit v9: size int32 | header with the correlation id | … | partition int32, offset int64 | …
"""

import json
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.groups.group_servers import COMMIT_VERSION, commit_request
from benchmarks.load.generator import readable, run_generator, tell
from benchmarks.load.replies import LoadFailed
from odradek.protocol.codec.codec import encode, encode_parts
from odradek.protocol.frames import RequestHeader, request_frame, response_frame
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

MARK = 0x1122_3344_5566_7788
"""Stands where the offset goes, until the frame is built."""
CORRELATION_ID_POSITION = 8
"""After size, API key and version."""


@dataclass(frozen=True, slots=True)
class CommitLoad:
    """`commits` of each of `groups` groups, whose names begin with `prefix`: offsets 1, 2, … of partition 0."""

    prefix: str
    topic: str
    groups: int
    in_flight: int
    commits: int

    @property
    def names(self) -> list[str]:
        return [f"{self.prefix}-{number}" for number in range(self.groups)]

    @property
    def count(self) -> int:
        return self.groups * self.commits


class Committing:
    """One connection, and how far it has come."""

    def __init__(self, sock: socket.socket, load: CommitLoad, group: str) -> None:
        self.socket = sock
        self._in_flight, self._commits = load.in_flight, load.commits
        self._frame = frame_of(group, load.topic)
        self._offset_at = self._frame.index(MARK.to_bytes(8, "big"))
        self._reply = reply_to(load.topic)
        self._sent = self.answered = 0
        self._left = b""

    @property
    def is_done(self) -> bool:
        return self.answered == self._commits

    def fill(self) -> None:
        """Sends as many as may be in flight. Raises OSError."""
        frame, at = self._frame, self._offset_at
        while self._sent < min(self._commits, self.answered + self._in_flight):
            frame[CORRELATION_ID_POSITION : CORRELATION_ID_POSITION + 4] = self._sent.to_bytes(4, "big")
            self._sent += 1
            frame[at : at + 8] = self._sent.to_bytes(8, "big")
            self.socket.sendall(frame)

    def receive(self) -> None:
        """Takes what has come. Raises LoadFailed, OSError."""
        received = self.socket.recv(64 * 1024)
        if not received:
            raise LoadFailed(f"closed by the server after {self.answered} commits")
        data, size, position = self._left + received, len(self._reply), 0
        while len(data) - position >= size:
            self._reply[4:8] = self.answered.to_bytes(4, "big")
            if data[position : position + size] != bytes(self._reply):
                raise LoadFailed(f"reply {self.answered} is {data[position : position + size]!r}, not {self._reply!r}")
            self.answered += 1
            position += size
        self._left = data[position:]
        if len(self._left) >= 4 and self._left[:4] != bytes(self._reply[:4]):
            raise LoadFailed(f"reply {self.answered} begins with {self._left[:64]!r}, not {self._reply!r}")


def frame_of(group: str, topic: str) -> bytearray:
    """A commit with `MARK` for its offset."""
    request = commit_request(group, topic, {0: MARK})
    header = RequestHeader(OffsetCommitRequest.api_key, COMMIT_VERSION, 0, "commits")
    return bytearray(b"".join(request_frame(header, True, encode_parts(request, COMMIT_VERSION))))


def reply_to(topic: str) -> bytearray:
    """The reply without an error, correlation id 0, size first."""
    partitions = [OffsetCommitResponsePartition(partition_index=0)]
    response = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=topic, partitions=partitions)])
    return bytearray(b"".join(response_frame(0, True, [encode(response, COMMIT_VERSION)])))


def run_commits(address: str, load: CommitLoad) -> float:
    """Runs the generator as a process; seconds from the first commit to the last answer. Raises LoadFailed."""
    return float(run_generator("benchmarks.groups.commit_load", json.dumps(asdict(load)), address))


def send_all(sockets: Sequence[socket.socket], load: CommitLoad) -> float:
    """Sends the whole load and takes every reply; seconds. Raises LoadFailed, OSError."""
    lanes = [Committing(sock, load, name) for sock, name in zip(sockets, load.names, strict=True)]
    started = time.perf_counter()
    for lane in lanes:
        lane.fill()
    for lane in readable(lanes):
        lane.receive()
        lane.fill()
    return time.perf_counter() - started


def main(text: str, address: str) -> int:
    load = CommitLoad(**json.loads(text))
    return tell([address], load.groups, lambda sockets: send_all(sockets, load))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
