"""What a client under test is asked for, and what it is told: common to producers and readers of all libraries.

A client is a process of its own, so that a busy one does not slow another. It works until SIGTERM, then ends what it
has begun. What it was told goes to a file, a record of the history a line (odradek/testing/sim/checking/history.py),
with the time of this machine's monotonic clock, which all its processes share: so the files of several clients are one
history.
"""

import json
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final

from odradek.testing.sim.checking.history import Acknowledged, Failed, History, Placed, Polled, PollFailed, Record, Sent
from odradek.testing.sim.checking.numbered import decoded, encoded
from tests.signals import set_at_sigterm

IN_FLIGHT_MAX: Final = 4_000
"""Enough that partitions whose leader is there go on for a long time while another waits for its own."""
PAUSE_S: Final = 0.05
RETRY_S: Final = 0.1
POLL_S: Final = 0.2
RUN: Final = 5
"""So many records after one another go to one partition."""
ACKS_ALL: Final = -1
REQUEST_TIMEOUT_MS: Final = 3_000
RECONNECT_MS: Final = 1_000
FLUSH_S: Final = 100.0
TELLING_SIGNAL: Final = signal.SIGUSR1
"""A client that gets it writes to standard error where its threads stand."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one client does. It is passed on the command line, as JSON."""

    kind: str
    name: str
    bootstrap: str
    topic: str
    partitions: int
    file: str
    first_value: int = 0
    """Of a producer: values of several do not meet."""
    is_patient: bool = True
    """Settings as the library has them by default. Else it gives up a request, and a broker, after a few seconds."""
    burst: int = 10
    """A producer pauses after so many records."""
    payload_bytes: int = 200
    group: str = ""
    """Of a member: the group that it joins."""
    instance_id: str = ""
    """Of a static member."""
    commits_in_background: bool = False
    """Of a member: it goes on while a commit is under way. Else it waits."""
    transactional_id: str = ""
    """Of one that writes in transactions."""
    target: str = ""
    """Of a copier: the topic that it writes to."""
    target_partitions: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        return cls(**json.loads(text))


def now_ms() -> float:
    return time.monotonic() * 1000


class Session:
    """One client, from its first record to its last."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._file = open(job.file, "w", encoding="utf-8", buffering=1)  # noqa: SIM115 - as long as the process

    def heed_sigterm(self) -> None:
        """Stops at SIGTERM. To be called before there are other threads, which would take the signal."""
        set_at_sigterm(self.stop)

    def close(self) -> None:
        self._file.close()

    def add(self, record: Record) -> None:
        """Writes it down; it happened now."""
        with self._lock:
            self._file.write(History([replace(record, at_ms=now_ms())]).to_json())


class Sending:
    """A producer's side: what to send, at a pace that leaves all clients room, and what becomes of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.job = session.job
        self._room = threading.Semaphore(IN_FLIGHT_MAX)

    def numbers(self) -> Iterator[int]:
        """Until it is to stop, and as long as there is room."""
        number = 0
        while not self.session.stop.is_set():
            if self._room.acquire(timeout=PAUSE_S):
                yield number
                number += 1
                if number % self.job.burst == 0:
                    self.session.stop.wait(PAUSE_S)

    def takes_room(self) -> bool:
        """For who must not wait."""
        return self._room.acquire(blocking=False)

    def partition(self, number: int) -> int:
        return number // RUN % self.job.partitions

    def sent(self, number: int) -> bytes:
        """Call it before the record is handed over; what to send."""
        value, job = self.job.first_value + number, self.job
        self.session.add(Sent(0.0, job.name, job.name, value, job.topic, self.partition(number), ACKS_ALL, True))
        return encoded(value, job.payload_bytes)

    def acknowledged(self, number: int, partition: int, offset: int) -> None:
        self.session.add(Acknowledged(0.0, self.job.first_value + number, self.job.topic, partition, offset))
        self._room.release()

    def failed(self, number: int, error: object, *, is_definite: bool = False) -> None:
        self.session.add(Failed(0.0, self.job.first_value + number, repr(error), is_definite))
        self._room.release()


class Reading:
    """A reader's side: where it stands in each partition, and what it was given."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.job = session.job
        self.positions: dict[int, int] = {}
        for partition in range(self.job.partitions):
            self.positions[partition] = 0
            session.add(Placed(0.0, self.job.name, self.job.topic, partition, 0, "start"))

    def polled(self, asked_ms: float, partition: int, records: list[tuple[int, bytes | None]]) -> None:
        """`records`: offsets and values, as they came."""
        position = self.positions[partition]
        self.positions[partition] = records[-1][0] + 1
        known = [(offset, decoded(value)) for offset, value in records]
        self.session.add(Polled(0.0, asked_ms, self.job.name, self.job.topic, partition, position, known))

    def failed(self, asked_ms: float, error: object) -> None:
        self.session.add(PollFailed(0.0, asked_ms, self.job.name, self.job.topic, repr(error)))

    def lost(self, partition: int) -> None:
        """The broker says that its position is out of range. It begins again."""
        self.positions[partition] = 0
        self.session.add(Placed(0.0, self.job.name, self.job.topic, partition, 0, "out of range"))
