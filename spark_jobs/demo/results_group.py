"""Spark's results as they come, read by a group of two of our consumers, of which one is killed in mid-stream.

What the killed one had read and not committed is read again by the other; nothing is missed.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from odradek.spark_jobs.demo.client_process import ClientProcess
from odradek.spark_jobs.demo.following import Place
from odradek.spark_jobs.demo.steps import Completed, DemoFailed

GROUP_ID = "flight-delay-readers"
SESSION_TIMEOUT_MS = 6_000
"""The least that brokers accept by default: after so long the partitions of the killed member go to the other."""
READ_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.05
MISSING_SHOWN = 5


class GroupReading(NamedTuple):
    """How many records the killed member read, and the other one; how many were read by both, or twice."""

    by_killed: int
    by_other: int
    again: int


class ResultsGroup:
    """A context manager that leaves no process behind."""

    def __init__(
        self, bootstrap: str, topic: str, directory: Path, session_timeout_ms: int = SESSION_TIMEOUT_MS
    ) -> None:
        self._members = [
            ResultsMember(directory / f"member-{number}", bootstrap, topic, session_timeout_ms) for number in (1, 2)
        ]
        self._killed: ResultsMember | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self._members:
            member.stop()

    @property
    def is_shared(self) -> bool:
        """Whether both have read something."""
        return all(member.read() for member in self._members)

    def wait_until_shared(self) -> None:
        """Returns when both have read something. Raises DemoFailed when one does not, for a while."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        while not self.is_shared:
            self._look(deadline, "one of the two members of the group reads nothing")

    def kill_one(self) -> None:
        """SIGKILL to the one that has read more. Raises DemoFailed where it has read nothing."""
        self._killed = max(self._members, key=lambda member: len(member.read()))
        self._killed.kill()
        if not self._killed.read():
            raise DemoFailed("neither member of the group had read anything when one was killed")

    def wait_for(self, expected: Mapping[Place, int], completed: Completed) -> GroupReading:
        """Returns when every place was read, each with the checksum that is expected. Raises DemoFailed."""
        deadline = time.monotonic() + READ_TIMEOUT_S
        while missing := expected.keys() - {place for member in self._members for place, _checksum in member.read()}:
            completed(len(expected) - len(missing))
            shown = ", ".join(map(str, sorted(missing)[:MISSING_SHOWN]))
            self._look(deadline, f"the group has not read {len(missing):,} of {len(expected):,} results: {shown}")
        by_killed = by_other = 0
        for member in self._members:
            read = member.read()
            for place, checksum in read:
                if expected.get(place) != checksum:
                    raise DemoFailed(f"the group read something else at partition and offset {place}")
            if member is self._killed:
                by_killed = len(read)
            else:
                by_other += len(read)
        return GroupReading(by_killed, by_other, by_killed + by_other - len(expected))

    def _look(self, deadline: float, trouble: str) -> None:
        for member in self._members:
            if member is not self._killed and not member.is_running:
                raise DemoFailed(f"a member of the group has ended: {member.errors()}")
        if time.monotonic() > deadline:
            raise DemoFailed(f"{trouble}, after {READ_TIMEOUT_S:g} s")
        time.sleep(POLL_INTERVAL_S)  # between two looks at what other processes have written


class ResultsMember(ClientProcess):
    """One of the two processes."""

    def __init__(self, path: Path, bootstrap: str, topic: str, session_timeout_ms: int) -> None:
        self._read = path.with_suffix(".read")
        module = "odradek.spark_jobs.demo.results_member"
        arguments = (bootstrap, topic, GROUP_ID, str(session_timeout_ms), str(self._read))
        super().__init__(module, *arguments, log=path.with_suffix(".log"))

    def read(self) -> list[tuple[Place, int]]:
        """The places that it has read so far, and the checksums of their values, in that order."""
        text = self._read.read_text(encoding="ascii") if self._read.exists() else ""
        whole, _, _ = text.rpartition("\n")  # the last line may be half written
        rows = (tuple(map(int, line.split())) for line in whole.splitlines())
        return [((partition, offset), checksum) for partition, offset, checksum in rows]
