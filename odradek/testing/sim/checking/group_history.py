"""What members of a consumer group were told, and what they asked for: plain records of a history (history.py).

    Assigned(at_ms=10.0, member="m1", topic="t", partitions=[0, 1], generation=3)
    Placed(at_ms=11.0, client="m1", topic="t", partition=0, offset=40, why="start")     its first record there
    Polled(at_ms=11.0, asked_ms=10.0, client="m1", …)                                   records that it has processed
    CommitAsked(at_ms=12.0, member="m1", commit=0, topic="t", offsets=[(0, 50)], generation=3)
    CommitAnswered(at_ms=13.0, member="m1", commit=0, generation=3)
    Revoked(at_ms=20.0, member="m1", topic="t", partitions=[0, 1])

Rules:
- A member is one life of one client: who is started again is another member. `MemberGone` ends it.
- A member owns a partition from `Assigned` to the next `Revoked` that names it, or to `MemberGone`.
- What it has processed is `Polled` with its name, noted before it commits that; `Placed` comes before the first record
  of each ownership.
- `Assigned` is noted when the client's callback is called, so after the answer that assigned; `Revoked` when the
  callback of the revocation ends, so after the last commit of the ownership was answered or given up.
"""

from dataclasses import dataclass
from typing import Final, Literal

NO_GENERATION: Final = -1
"""The client does not tell it, or has none."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A member was given partitions, besides those that it owns; none, where it is told that it has none."""

    at_ms: float
    member: str
    topic: str
    partitions: list[int]
    generation: int = NO_GENERATION
    instance_id: str = ""
    """Of a static member."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """A member has given partitions up."""

    at_ms: float
    member: str
    topic: str
    partitions: list[int]
    is_lost: bool = False
    """The client says that they may be another member's already."""


@dataclass(frozen=True, slots=True)
class CommitAsked:
    """A member asks its client to commit."""

    at_ms: float
    member: str
    commit: int
    """Numbers the member's commits."""
    topic: str
    offsets: list[tuple[int, int]]
    """(partition, offset): the next one to be processed."""
    generation: int = NO_GENERATION
    """That the client was in when it was asked."""


@dataclass(frozen=True, slots=True)
class CommitAnswered:
    """The client says what became of a commit. None follows where the member was killed: it may have been done."""

    at_ms: float
    member: str
    commit: int
    error: str = ""
    """Empty: all its offsets are committed."""
    generation: int = NO_GENERATION
    """That the client was in when it answered."""


@dataclass(frozen=True, slots=True)
class MemberGone:
    """A member has ended, and owns nothing any more."""

    at_ms: float
    member: str
    why: Literal["left", "killed"]


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """A broker said what a group has committed."""

    at_ms: float
    asked_ms: float
    machine: str
    topic: str
    offsets: list[tuple[int, int]]
    """(partition, offset); -1 where it says that there is none."""


GroupRecord = Assigned | Revoked | CommitAsked | CommitAnswered | MemberGone | OffsetsRead
