"""The copiers of an exactly-once chain, a process each, seen from the test: they are killed, paused, and come again.

    copiers = Copiers(processes, "127.0.0.1:9092", [Link("first", "second", 11, ("java", "odradek"))], rng)
    copiers.start()
    copiers.kill("first-java")                  # SIGKILL
    copiers.come("first-java")                  # another life of it, with the same transactional id or another one
    copiers.look()                              # has those come again that may end by themselves

A life with the transactional id of the one before ends what that has left open, at once. With another one nobody does,
until the time-out of the transaction.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from processes.child_process import ProcessFailed, start_together
from processes.cluster_processes import Processes
from tests.cluster.client_session import Job
from tests.cluster.clients import Client
from tests.cluster.copying import STOOD_STILL_CODE
from tests.cluster.java_copier import JavaCopier

JAVA: Final = "java"
STOP_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Link:
    """Two topics, and the libraries that copy the one to the other, all as members of one group."""

    source: str
    target: str
    target_partitions: int
    libraries: tuple[str, ...]

    @property
    def group(self) -> str:
        return f"copiers-of-{self.source}"


@dataclass(slots=True)
class _Seat:
    name: str
    library: str
    link: Link
    lives: int = 0
    transactional_id: str = ""
    copier: Client | None = None


def _nothing(copier: Client) -> None:
    del copier


@dataclass(slots=True)
class Copiers:
    """All of them. They are among the processes that `processes` ends."""

    processes: Processes
    bootstrap: str
    links: Sequence[Link]
    rng: random.Random
    came: Callable[[Client], None] = _nothing
    """Called with each life that has been started."""
    ended: Counter[str] = field(default_factory=Counter[str])
    """Why and how often copiers ended by themselves."""
    _seats: dict[str, _Seat] = field(default_factory=dict[str, _Seat])

    def __post_init__(self) -> None:
        for link in self.links:
            for library in link.libraries:
                name = f"{link.source}-{library}"
                self._seats[name] = _Seat(name, library, link)

    @property
    def names(self) -> list[str]:
        """Of the seats, whether or not somebody is there."""
        return list(self._seats)

    def transactional_id(self, name: str) -> str:
        """That of the last life."""
        return self._seats[name].transactional_id

    def group(self, name: str) -> str:
        return self._seats[name].link.group

    def copier(self, name: str) -> Client | None:
        """None: it was killed."""
        return self._seats[name].copier

    def start(self) -> None:
        lives = [self._next_life(seat) for seat in self._seats.values()]
        start_together(*lives)
        for life in lives:
            self.came(life)

    def kill(self, name: str) -> None:
        """Does nothing where nobody is there."""
        seat = self._seats[name]
        copier, seat.copier = seat.copier, None
        if copier is not None:
            copier.kill()

    def come(self, name: str) -> None:
        """Does nothing where somebody is there."""
        seat = self._seats[name]
        if seat.copier is None:
            life = self._next_life(seat)
            life.start()
            self.came(life)

    def look(self) -> None:
        """Raises ProcessFailed for one that has ended by itself and may not."""
        for seat in self._seats.values():
            copier = seat.copier
            if copier is not None and not copier.is_running:
                self.ended[self._why(seat, copier)] += 1
                seat.copier = None
                self.come(seat.name)

    def stop(self) -> None:
        """They end what they have begun. Java's is killed: its own way to end uses its consumer in two threads."""
        for seat in self._seats.values():
            copier, seat.copier = seat.copier, None
            if copier is None:
                continue
            if seat.library == JAVA or not copier.is_running:
                copier.kill()
            else:
                copier.stop()

    def _why(self, seat: _Seat, copier: Client) -> str:
        code = copier.ended()
        if seat.library == JAVA:
            return f"{seat.name}: done" if code == 0 else f"{seat.name}: {code}"
        if code != STOOD_STILL_CODE:
            raise ProcessFailed(f"{copier.name} ended by itself with {code}: {copier.output[-8_000:]}")
        return f"{seat.name}: stood still"

    def _next_life(self, seat: _Seat) -> Client:
        """Not started."""
        seat.lives += 1
        name = f"{seat.name}.{seat.lives}"
        if not seat.transactional_id or self.rng.random() < 0.5:
            seat.transactional_id = name
        job = Job(
            f"{seat.library}-copier",
            name,
            self.bootstrap,
            seat.link.source,
            0,
            str(self.processes.directory / f"{name}.history"),
            group=seat.link.group,
            transactional_id=seat.transactional_id,
            target=seat.link.target,
            target_partitions=seat.link.target_partitions,
        )
        kind = JavaCopier if seat.library == JAVA else Client
        seat.copier = self.processes.add(kind(job, self.processes.log_file(name)))
        return seat.copier
