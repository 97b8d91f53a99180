"""The clients of a cluster under test: producers and readers of three libraries, a process each, seen from the test.

clients = Clients(processes, "127.0.0.1:9092", "ledger", partitions=4)
clients.start()
clients.wait_for_progress(100)          # every producer has so many more acknowledgements
clients.stop()                          # nothing more is sent; what was sent has ended, and readers have it
clients.history()                       # what all of them were told, in time order
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from signal import Signals
from typing import Final

from odradek.testing.sim.checking.history import Acknowledged, Failed, History, Polled, PollFailed, Record
from processes.child_process import ChildProcess, start_together
from processes.cluster_processes import Processes
from tests.cluster.client_session import TELLING_SIGNAL, Job
from tests.cluster.librdkafka_reader import STOOD_STILL

PRODUCERS: Final = ("kafka-python", "librdkafka", "odradek")
READERS: Final = ("kafka-python-reader", "librdkafka-reader", "odradek-reader")
VALUES_EACH: Final = 1_000_000_000
"""A producer's values begin at a multiple of this."""
STOP_TIMEOUT_S: Final = 120.0
PROGRESS_TIMEOUT_S: Final = 90.0
LOOK_S: Final = 0.01


class Client(ChildProcess):
    """One client's process, and what it has written down so far."""

    telling_signal: Signals | None = TELLING_SIGNAL

    def __init__(self, job: Job, log_file: Path) -> None:
        super().__init__(job.name, log_file=log_file, dies_with_us=True)
        self.job = job
        self.records: list[Record] = []
        self.acknowledged_count = 0
        self.read_count = 0
        self._position = 0

    def command(self) -> list[str]:
        return [sys.executable, "-W", "ignore", "-m", "tests.cluster.client_process", self.job.to_json()]

    def is_ready_line(self, line: str) -> bool:
        return line == "ready"

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Waits for what it has sent."""
        return super().terminate(timeout_s)

    def look(self) -> None:
        """Reads what is new."""
        if not Path(self.job.file).exists():
            return
        with open(self.job.file, "rb") as file:
            file.seek(self._position)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._position += len(whole)
        found = self._records_of(whole)
        self.acknowledged_count += sum(isinstance(record, Acknowledged) for record in found)
        self.read_count += sum(len(record.records) for record in found if isinstance(record, Polled))
        self.records += found

    def _records_of(self, lines: bytes) -> list[Record]:
        """Of whole lines of its file."""
        return History.from_json(lines.decode()).records

    def polls(self) -> list[Polled]:
        """What it was given."""
        return [each for each in self.records if isinstance(each, Polled)]


class Clients:
    """All of them. They are among the processes that `processes` ends."""

    def __init__(
        self,
        processes: Processes,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        is_patient: bool = False,
        kinds: Sequence[str] = PRODUCERS + READERS,
        burst: int = 10,
    ) -> None:
        """`is_patient` and `burst` are the Job's."""
        self.all: list[Client] = []
        for index, kind in enumerate(kinds):
            file = processes.directory / f"{kind}.history"
            job = Job(kind, kind, bootstrap, topic, partitions, str(file), index * VALUES_EACH, is_patient, burst)
            self.all.append(processes.add(Client(job, processes.log_file(kind))))
        self.producers = [client for client in self.all if client.job.kind in PRODUCERS]
        self.readers = [client for client in self.all if client.job.kind in READERS]

    def start(self) -> None:
        start_together(*self.all)

    def stop(self) -> None:
        """Producers first, and readers when they have been given what was acknowledged. Raises ProcessFailed for one
        that has failed, and AssertionError for a reader that is not given it in time."""
        for client in self.producers:
            client.stop()
        self.wait_for_reading()
        for client in self.readers:
            client.stop()

    def wait_for_progress(self, count: int, timeout_s: float = PROGRESS_TIMEOUT_S) -> None:
        """Until every producer has `count` acknowledgements more than now. Raises AssertionError when that takes too
        long, and as soon as a send has failed."""
        self.look()
        wanted = {client.name: client.acknowledged_count + count for client in self.producers}
        deadline = time.monotonic() + timeout_s
        while late := [each.name for each in self.producers if each.acknowledged_count < wanted[each.name]]:
            assert time.monotonic() < deadline, f"no progress of {late} in {timeout_s} s"
            assert self.failures() == [], "a send failed, in the time that its client gives it"
            time.sleep(LOOK_S)  # between two looks
            self.look()

    def wait_for_reading(self, timeout_s: float = PROGRESS_TIMEOUT_S) -> None:
        """Until every reader has been given as much as is acknowledged now."""
        self.look()
        wanted = self.acknowledged_count
        deadline = time.monotonic() + timeout_s
        while late := [each.name for each in self.readers if each.read_count < wanted]:
            assert time.monotonic() < deadline, f"{late} have not read everything in {timeout_s} s"
            time.sleep(LOOK_S)  # between two looks
            self.look()

    @property
    def acknowledged_count(self) -> int:
        """Of all producers, as far as it was looked at."""
        return sum(client.acknowledged_count for client in self.producers)

    def look(self) -> None:
        for client in self.all:
            client.look()

    def failures(self) -> list[Failed]:
        """What producers gave up, as far as it was looked at."""
        return [each for client in self.producers for each in client.records if isinstance(each, Failed)]

    def stood_still(self) -> int:
        """How many consumers of librdkafka's another one had to go on for, as far as it was looked at."""
        told = [each for client in self.readers for each in client.records if isinstance(each, PollFailed)]
        return sum(STOOD_STILL in each.error for each in told)

    def polls_between(self, from_ms: float, to_ms: float) -> list[Polled]:
        """What readers were given then, as far as it was looked at."""
        return [each for client in self.readers for each in client.polls() if from_ms <= each.at_ms <= to_ms]

    def history(self) -> list[Record]:
        """In time order, as far as it was looked at."""
        return sorted((record for client in self.all for record in client.records), key=lambda each: each.at_ms)
