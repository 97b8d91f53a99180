"""The members of a group under test, a process each, seen from the test: they come, leave, are killed, and come again.

    members = Members(processes, "127.0.0.1:9092", "shared", partitions=12)
    members.start()
    members.kill("aiokafka")                     # SIGKILL; `leave` is SIGTERM
    members.come("aiokafka")                     # another life of it: another member, the same one where it is static
    members.wait_until_settled()                 # each partition has one owner, and nobody waits for an assignment
    members.wait_until_committed({0: 4711, …})   # as far as members were told

A *seat* is what a member is like: its library, whether it is static, and how it commits.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from odradek.testing.sim.checking.group_history import MemberGone
from odradek.testing.sim.checking.history import Record
from processes.child_process import ProcessFailed, start_together
from processes.cluster_processes import Processes
from tests.cluster.client_session import Job, now_ms
from tests.cluster.clients import LOOK_S
from tests.cluster.java_member import JavaMember
from tests.cluster.librdkafka_member import EXCUSED_CODES
from tests.cluster.member import Member

GROUP: Final = "rounds"
SETTLE_TIMEOUT_S: Final = 90.0
STATIC: Final = "librdkafka-static"
JAVA: Final = "java"


@dataclass(frozen=True, slots=True)
class Seat:
    """What the lives of one member have in common."""

    name: str
    kind: str
    instance_id: str = ""
    commits_in_background: bool = False


SEATS: Final = (
    Seat("kafka-python", "kafka-python-member"),
    Seat("aiokafka", "aiokafka-member", commits_in_background=True),
    Seat("librdkafka", "librdkafka-member", commits_in_background=True),
    Seat(STATIC, "librdkafka-member", instance_id="static-1"),
    Seat("odradek", "odradek-member"),
    Seat(JAVA, JAVA),
)


@dataclass(slots=True)
class _Place:
    seat: Seat
    lives: int = 0
    member: Member | None = None


@dataclass(slots=True)
class Members:
    """All of them, also those that are gone. They are among the processes that `processes` ends."""

    processes: Processes
    bootstrap: str
    topic: str
    partitions: int
    seats: tuple[Seat, ...] = SEATS
    all: list[Member] = field(default_factory=list[Member])
    notes: list[Record] = field(default_factory=list[Record])
    """Of those that were killed."""
    came_again: Counter[str] = field(default_factory=Counter[str])
    """Why consumers of librdkafka ended by themselves, and how many (librdkafka_member.py)."""
    _places: dict[str, _Place] = field(default_factory=dict[str, _Place])

    def __post_init__(self) -> None:
        self._places = {seat.name: _Place(seat) for seat in self.seats}

    # -- who is there -------------------------------------------------------------------------------------------------

    @property
    def present(self) -> list[Member]:
        return [place.member for place in self._places.values() if place.member is not None]

    @property
    def names(self) -> list[str]:
        """Of the seats, whether or not somebody is there."""
        return list(self._places)

    def start(self) -> None:
        start_together(*(self.next_life(name) for name in self.names))

    def come(self, name: str) -> None:
        """Does nothing where the member is there."""
        if self._places[name].member is None:
            self.next_life(name).start()

    def leave(self, name: str) -> None:
        """By SIGTERM. Raises ProcessFailed where it does not end as it should."""
        place = self._places[name]
        member, place.member = place.member, None
        if member is not None:
            member.stop()

    def kill(self, name: str) -> None:
        place = self._places[name]
        member, place.member = place.member, None
        if member is not None:
            member.kill()
            self._gone(member)

    def stop(self) -> None:
        """All leave, one after the other."""
        for name in self.names:
            self.leave(name)

    def next_life(self, name: str) -> Member:
        """Not started."""
        place = self._places[name]
        place.lives += 1
        name = f"{name}.{place.lives}"
        job = Job(
            place.seat.kind,
            name,
            self.bootstrap,
            self.topic,
            self.partitions,
            str(self.processes.directory / f"{name}.history"),
            group=GROUP,
            instance_id=place.seat.instance_id,
            commits_in_background=place.seat.commits_in_background,
        )
        kind = JavaMember if place.seat.kind == JAVA else Member
        member = self.processes.add(kind(job, self.processes.log_file(name)))
        place.member = member
        self.all.append(member)
        return member

    def _gone(self, member: Member) -> None:
        """It was killed, and will write no more."""
        member.look()
        member.owned.clear()
        self.notes.append(MemberGone(now_ms(), member.name, "killed"))

    # -- what they say ------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Reads what is new, and has those come again that librdkafka has let down. Raises ProcessFailed for one that
        has ended by itself otherwise."""
        for place in self._places.values():
            member = place.member
            if member is not None and not member.is_running:
                code = member.ended()
                if code not in EXCUSED_CODES:
                    raise ProcessFailed(f"{member.name} ended by itself with {code}: {member.output[-8_000:]}")
                self.came_again[EXCUSED_CODES[code]] += 1
                self._gone(member)
                self.next_life(place.seat.name).start()
        for member in self.all:
            member.look()

    def committed(self) -> dict[int, int]:
        """Of each partition the highest offset that any member was told to be committed, as far as it was looked at."""
        found: dict[int, int] = {}
        for member in self.all:
            for partition, offset in member.committed.items():
                found[partition] = max(offset, found.get(partition, 0))
        return found

    def history(self) -> list[Record]:
        """In time order, as far as it was looked at."""
        records = [record for member in self.all for record in member.records]
        return sorted((*records, *self.notes), key=lambda each: each.at_ms)

    # -- until --------------------------------------------------------------------------------------------------------

    def wait_until_settled(self, timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        """Until every member that is there knows what it owns, and each partition has one owner. Raises AssertionError
        with what each says."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.look()
            owned = sorted(each for member in self.present for each in member.owned)
            if owned == list(range(self.partitions)) and all(member.has_heard for member in self.present):
                return
            told = {member.name: sorted(member.owned) if member.has_heard else "waits" for member in self.present}
            assert time.monotonic() < deadline, f"not settled within {timeout_s} s: {told}"
            time.sleep(LOOK_S)  # between two looks

    def wait_until_committed(self, ends: Mapping[int, int], timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        """Until members were told that everything before these offsets is committed. Raises AssertionError with the
        partitions that lag."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.look()
            committed = self.committed()
            lag = {each: end - committed.get(each, 0) for each, end in ends.items() if committed.get(each, 0) < end}
            if not lag:
                return
            owners = {member.name: sorted(member.owned) for member in self.present}
            assert time.monotonic() < deadline, f"lag after {timeout_s} s: {lag}; owners: {owners}"
            time.sleep(LOOK_S)  # between two looks
