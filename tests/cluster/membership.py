"""A member's side of a group under test: what it owns, where it stands, what it processes and commits, written to its
session (odradek/testing/sim/checking/member_notes.py).

A record counts as processed when it stands in the file, and only what stands there is committed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from odradek.testing.sim.checking.group_history import NO_GENERATION, MemberGone
from odradek.testing.sim.checking.member_notes import MemberNotes
from odradek.testing.sim.checking.numbered import decoded
from tests.cluster.client_session import Session, now_ms

SESSION_TIMEOUT_MS: Final = 6_000
"""The least that brokers allow by default."""
HEARTBEAT_MS: Final = 1_000
MAX_POLL_INTERVAL_MS: Final = 30_000
COMMIT_INTERVAL_MS: Final = 100.0
COMMIT_S: Final = 10.0
"""A member that waits for a commit gives it up then."""


class Membership:
    """One member, from its start to its end."""

    def __init__(self, session: Session) -> None:
        job = session.job
        self.session = session
        self.job = job
        self._notes = MemberNotes(job.name, job.topic, session.add, lambda: 0.0, job.instance_id)  # the session stamps
        self._asked_ms = 0.0

    # -- what it owns -------------------------------------------------------------------------------------------------

    @property
    def positions(self) -> Mapping[int, int | None]:
        """Of what it owns: the next offset; None before its first record there."""
        return self._notes.positions

    def assigned(self, partitions: Iterable[int], generation: int = NO_GENERATION) -> None:
        self._notes.assigned(partitions, generation)

    def revoked(self, partitions: Iterable[int], *, is_lost: bool = False) -> None:
        self._notes.revoked(partitions, is_lost=is_lost)

    def left(self) -> None:
        self.session.add(MemberGone(0.0, self.job.name, "left"))

    # -- what it does -------------------------------------------------------------------------------------------------

    def processed(self, asked_ms: float, partition: int, records: Sequence[tuple[int, bytes | None]]) -> None:
        """`records`: offsets and values, as they came."""
        self._notes.processed(asked_ms, partition, [(offset, decoded(value)) for offset, value in records])

    def failed(self, asked_ms: float, error: object) -> None:
        self._notes.failed(asked_ms, repr(error))

    def to_commit(self, *, is_now: bool = False) -> dict[int, int]:
        """What is processed and not committed; nothing while a commit is under way, or has just been, unless
        `is_now`."""
        if self._notes.is_committing or not (is_now or now_ms() - self._asked_ms >= COMMIT_INTERVAL_MS):
            return {}
        return self._notes.to_commit(self.positions)

    def commit_asked(self, offsets: Mapping[int, int], generation: int = NO_GENERATION) -> None:
        """Call it before the client is asked."""
        self._asked_ms = now_ms()
        self._notes.commit_asked(offsets, generation)

    def commit_answered(self, error: object = None, generation: int = NO_GENERATION) -> None:
        """`error`: None where it is done."""
        self._notes.commit_answered("" if error is None else repr(error), generation)
