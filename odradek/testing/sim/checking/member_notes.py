"""What a member of a group writes down, whatever its client: what it owns, where it stands, what it processes and
commits. Records of a history (group_history.py).

    notes = MemberNotes("m.1", "t", history.add, clock)
    notes.assigned([0, 1], generation=3)
    notes.processed(asked_ms, 0, [(40, 7)])                  # offsets and numbers of records
    notes.commit_asked(notes.to_commit([0, 1]), generation=3)
    notes.commit_answered(generation=3)

One commit is under way at a time: where a client repeats a request, an older offset never comes behind a newer one of
the same member.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from odradek.testing.sim.checking.group_history import (
    NO_GENERATION,
    Assigned,
    CommitAnswered,
    CommitAsked,
    Revoked,
)
from odradek.testing.sim.checking.history import Placed, Polled, PollFailed, Record


class MemberNotes:
    """Of one life of a member. `now_ms`: the time that records get."""

    def __init__(
        self,
        name: str,
        topic: str,
        add: Callable[[Record], object],
        now_ms: Callable[[], float],
        instance_id: str = "",
    ) -> None:
        self.name = name
        self.topic = topic
        self.instance_id = instance_id
        self.positions: dict[int, int | None] = {}
        """Of what it owns: the next offset; None before its first record there."""
        self._add = add
        self._now_ms = now_ms
        self._committed: dict[int, int] = {}
        """Of what it owns: the last offset that a commit was answered for."""
        self._asked: dict[int, int] | None = None
        """The commit that is under way."""
        self._count = 0

    # -- what it owns -------------------------------------------------------------------------------------------------

    def assigned(self, partitions: Iterable[int], generation: int = NO_GENERATION) -> None:
        given = sorted(partitions)
        self._add(Assigned(self._now_ms(), self.name, self.topic, given, generation, self.instance_id))
        for partition in given:
            self.positions[partition] = None
            self._committed.pop(partition, None)

    def revoked(self, partitions: Iterable[int], *, is_lost: bool = False) -> None:
        """Where `partitions` are none, nothing is written."""
        taken = sorted(partitions)
        if not taken:
            return
        for partition in taken:
            self.positions.pop(partition, None)
        self._add(Revoked(self._now_ms(), self.name, self.topic, taken, is_lost))

    # -- what it does -------------------------------------------------------------------------------------------------

    def processed(self, asked_ms: float, partition: int, records: Sequence[tuple[int, int]]) -> None:
        """`records`: offsets and numbers (`workload.decoded`), as they came. At least one."""
        position = self.positions.get(partition)
        if position is None:
            position = records[0][0]
            self._add(Placed(self._now_ms(), self.name, self.topic, partition, position, "start"))
        self.positions[partition] = records[-1][0] + 1
        self._add(Polled(self._now_ms(), asked_ms, self.name, self.topic, partition, position, [*records]))

    def failed(self, asked_ms: float, error: str) -> None:
        self._add(PollFailed(self._now_ms(), asked_ms, self.name, self.topic, error))

    @property
    def is_committing(self) -> bool:
        return self._asked is not None

    def to_commit(self, partitions: Iterable[int]) -> dict[int, int]:
        """What is processed of these and not committed."""
        return {
            partition: offset
            for partition in partitions
            if (offset := self.positions.get(partition)) is not None and offset != self._committed.get(partition)
        }

    def commit_asked(self, offsets: Mapping[int, int], generation: int = NO_GENERATION) -> None:
        """Call it before the client is asked."""
        assert self._asked is None, "one at a time"
        self._asked = dict(offsets)
        self._count += 1
        asked = sorted(offsets.items())
        self._add(CommitAsked(self._now_ms(), self.name, self._count, self.topic, asked, generation))

    def commit_answered(self, error: str = "", generation: int = NO_GENERATION) -> None:
        """`error`: empty where it is done."""
        assert self._asked is not None, "nothing was asked for"
        if not error:
            self._committed |= {each: offset for each, offset in self._asked.items() if each in self.positions}
        self._asked = None
        self._add(CommitAnswered(self._now_ms(), self.name, self._count, error, generation))
