"""A history by ownership: which member of a group had which partition, from when to when, where it began there, and
what was committed. One group reads a topic.

    groups = Groups(ledger)
    for each in groups.ownerships: …
    groups.committed_before(("t", 0), index)        # the highest offset that was known to be committed by then
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.testing.sim.checking.expectations import TopicPartition
from odradek.testing.sim.checking.group_history import (
    Assigned,
    CommitAnswered,
    CommitAsked,
    MemberGone,
    OffsetsRead,
    Revoked,
)
from odradek.testing.sim.checking.history import Polled
from odradek.testing.sim.checking.ledger import Ledger

NOT_YET = float("inf")


@dataclass(slots=True)
class Ownership:
    """One member's, of one partition. Indexes are positions in the history; -1 where there is no such event."""

    key: TopicPartition
    assigned: Assigned
    index: int
    until_ms: float = NOT_YET
    until_index: int = -1
    first: Polled | None = None
    """The first records that it processed."""
    first_index: int = -1
    last: Polled | None = None
    last_index: int = -1

    @property
    def member(self) -> str:
        return self.assigned.member

    @property
    def generation(self) -> int:
        return self.assigned.generation

    def is_same_client(self, other: "Ownership") -> bool:
        """One member, or two lives of one static member."""
        instance_id = self.assigned.instance_id
        return self.member == other.member or (instance_id != "" and instance_id == other.assigned.instance_id)


@dataclass(slots=True)
class Commit:
    """One commit, and what was said of it."""

    asked: CommitAsked
    asked_index: int
    answered: CommitAnswered | None = None
    answered_index: int = -1

    @property
    def is_done(self) -> bool:
        return self.answered is not None and not self.answered.error

    def may_come_again(self, request_timeout_ms: float) -> bool:
        """Nobody knows whether, or when, it is done; or it is, and an earlier request of it may still be under way, for
        the client had the time to give one up."""
        answered = self.answered
        return answered is None or bool(answered.error) or answered.at_ms - self.asked.at_ms >= request_timeout_ms


class Known(NamedTuple):
    """An offset of a partition that is committed, as somebody was told."""

    offset: int
    commit: Commit
    """Which asked for it."""
    event: int
    """The index of the one that told of it."""


class HighestOffsets:
    """The highest offset of a partition, of all that were added until then. Add in the order of the history."""

    __slots__ = ("_indexes", "_known")

    def __init__(self) -> None:
        self._indexes: list[int] = []
        self._known: list[Known] = []

    def add(self, index: int, offset: int, commit: Commit) -> None:
        if not self._known or offset > self._known[-1].offset:
            self._indexes.append(index)
            self._known.append(Known(offset, commit, index))

    def before(self, index: int) -> Known | None:
        """Of what was added for events before `index`. None: there was nothing."""
        count = bisect_left(self._indexes, index)
        return self._known[count - 1] if count else None


class Groups:
    """All that members were told."""

    def __init__(self, ledger: Ledger) -> None:
        self.members: set[str] = set()
        self.topics: set[str] = set()
        self.assignments: list[tuple[int, Assigned]] = []
        self.ownerships: list[Ownership] = []
        """In the order in which they began."""
        self.commits: list[Commit] = []
        """In the order in which they were asked for."""
        self.reads: list[tuple[int, OffsetsRead]] = []
        """What brokers said is committed."""
        self.done: dict[TopicPartition, HighestOffsets] = {}
        """By the events that acknowledged them, or that told of them as committed."""
        self.asked: dict[TopicPartition, HighestOffsets] = {}
        """By the events that asked for them."""
        self._present: dict[tuple[str, str, int], Ownership] = {}
        self._open: dict[tuple[str, int], Commit] = {}
        self._wanted: dict[tuple[TopicPartition, int], list[Commit]] = {}
        """By partition and offset, in the order in which they were asked for."""
        for index, record in ledger.group_records:
            if isinstance(record, OffsetsRead):
                self._read(index, record)
                continue
            self.members.add(record.member)
            match record:
                case Assigned():
                    self._assign(index, record)
                case Revoked():
                    self._end(index, record.at_ms, record.member, record.topic, record.partitions)
                case MemberGone():
                    for member, topic, partition in [*self._present]:
                        if member == record.member:
                            self._end(index, record.at_ms, member, topic, [partition])
                case CommitAsked():
                    self._ask(index, record)
                case CommitAnswered():
                    self._answer(index, record)
        for each in self.ownerships:
            self._look_at_polls(ledger, each)

    def committed_before(self, key: TopicPartition, index: int) -> Known | None:
        """The highest offset that was known to be committed by then; None: none was."""
        found = self.done.get(key)
        return None if found is None else found.before(index)

    def asked_before(self, key: TopicPartition, index: int) -> Known | None:
        """The highest offset that somebody had asked to commit by then."""
        found = self.asked.get(key)
        return None if found is None else found.before(index)

    def may_have_come_late(
        self, key: TopicPartition, offset: int, index: int, request_timeout_ms: float
    ) -> Commit | None:
        """A commit of this very offset, asked for by then, that may have come behind a later one, by way of a
        connection that its client had given up."""
        for commit in self._wanted.get((key, offset), ()):
            if commit.asked_index < index and commit.may_come_again(request_timeout_ms):
                return commit
        return None

    def _assign(self, index: int, record: Assigned) -> None:
        self.topics.add(record.topic)
        self.assignments.append((index, record))
        self._end(index, record.at_ms, record.member, record.topic, record.partitions)
        for partition in record.partitions:
            found = Ownership((record.topic, partition), record, index)
            self._present[record.member, record.topic, partition] = found
            self.ownerships.append(found)

    def _end(self, index: int, at_ms: float, member: str, topic: str, partitions: Iterable[int]) -> None:
        for partition in partitions:
            found = self._present.pop((member, topic, partition), None)
            if found is not None:
                found.until_ms, found.until_index = at_ms, index

    def _read(self, index: int, record: OffsetsRead) -> None:
        self.reads.append((index, record))
        for partition, offset in record.offsets:
            key = record.topic, partition
            if commits := self._wanted.get((key, offset)):
                self.done.setdefault(key, HighestOffsets()).add(index, offset, commits[-1])

    def _ask(self, index: int, record: CommitAsked) -> None:
        commit = Commit(record, index)
        self.commits.append(commit)
        self._open[record.member, record.commit] = commit
        for partition, offset in record.offsets:
            key = record.topic, partition
            self.asked.setdefault(key, HighestOffsets()).add(index, offset, commit)
            self._wanted.setdefault((key, offset), []).append(commit)

    def _answer(self, index: int, record: CommitAnswered) -> None:
        commit = self._open.pop((record.member, record.commit), None)
        assert commit is not None, f"an answer to commit {record.commit} of {record.member}, which was not asked for"
        commit.answered, commit.answered_index = record, index
        if commit.is_done:
            for partition, offset in commit.asked.offsets:
                self.done.setdefault((commit.asked.topic, partition), HighestOffsets()).add(index, offset, commit)

    @staticmethod
    def _look_at_polls(ledger: Ledger, ownership: Ownership) -> None:
        for index, step in ledger.readers.get((ownership.member, *ownership.key), ()):
            if index > ownership.index and isinstance(step, Polled) and step.records:
                if 0 <= ownership.until_index < index:
                    return
                if ownership.first is None:
                    ownership.first, ownership.first_index = step, index
                ownership.last, ownership.last_index = step, index
