"""What a follower does with one partition: where it fetches, and what an answer means (AbstractFetcherThread.scala).
Pure.

    FETCHING    asks its leader for what comes at its log's end, naming the leader epoch and the last epoch it has
    COMPARING   its offset is not one that the leader has: it asks where the leader's log begins and ends
    WAITING     until a moment: after an error, or for room in the quota

Where two logs part, and what to cut then, stands in truncation.py.

Errors mean that metadata is under way, or that something is broken. Those of the first kind come right after an
election, when a leader hears of it later than its followers. They are tried again soon, the others after
`replica.fetch.backoff.ms`.
"""

from enum import Enum
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode

RETRY_FIRST_MS = 10.0
"""The first wait for metadata that is under way; it doubles, up to `replica.fetch.backoff.ms`."""
UNDER_WAY_FAILURES = 8
"""So many of these in a row pass by themselves, as where leadership moves: somewhat more than a second of waits."""

UNDER_WAY = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""What leader and follower answer while one of them has not heard of a change yet."""


class Phase(Enum):
    """See the module."""

    FETCHING = "fetching"
    COMPARING = "comparing"
    WAITING = "waiting"


MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.FETCHING: frozenset({Phase.FETCHING, Phase.COMPARING, Phase.WAITING}),
    Phase.COMPARING: frozenset({Phase.FETCHING, Phase.WAITING}),
    Phase.WAITING: frozenset({Phase.FETCHING, Phase.WAITING}),
}


class FetchPosition(NamedTuple):
    """What a fetch of a partition says: it differs from what the leader's session knows, or need not be sent."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerState:
    """One partition, at one leader and in one leader epoch. A new epoch is a new state."""

    __slots__ = ("_failures", "_is_told", "deadline_ms", "lag", "leader_epoch", "phase")

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.phase = Phase.FETCHING
        self.deadline_ms = 0.0
        """Until when it is WAITING."""
        self.lag: int | None = None
        """How many offsets the leader's high watermark is ahead; None before the first answer."""
        self._failures = 0
        self._is_told = False

    @property
    def is_in_sync(self) -> bool:
        """Whether nothing is missing that the leader has promised to anybody: such a one is not throttled."""
        return self.lag == 0

    def appended(self, leader_high_watermark: int, log_end_offset: int) -> None:
        """What came is in the log."""
        assert self.phase is Phase.FETCHING
        self._failures = 0
        self._is_told = False
        self.lag = max(0, leader_high_watermark - log_end_offset)

    def truncated(self) -> None:
        """The log ends where the leader has it, too, as far as is known."""
        self._move(Phase.FETCHING)

    def out_of_range(self) -> None:
        """The leader does not have our offset."""
        self._move(Phase.COMPARING)

    def failed(self, code: ErrorCode, now_ms: float, backoff_ms: float) -> bool:
        """An error: waits. Returns whether somebody is to be told of it, once for all that come in a row: at once, or
        for metadata under way when that goes on."""
        self._move(Phase.WAITING)
        delay_ms = min(RETRY_FIRST_MS * 2.0 ** min(self._failures, 20), backoff_ms) if code in UNDER_WAY else backoff_ms
        self.deadline_ms = now_ms + delay_ms
        self._failures += 1
        if self._is_told or (code in UNDER_WAY and self._failures < UNDER_WAY_FAILURES):
            return False
        self._is_told = True
        return True

    def throttled(self, now_ms: float, wait_ms: float) -> None:
        """There is no room in the quota."""
        self._move(Phase.WAITING)
        self.deadline_ms = now_ms + wait_ms

    def resume(self) -> None:
        """The wait is over."""
        assert self.phase is Phase.WAITING
        self._move(Phase.FETCHING)

    def _move(self, phase: Phase) -> None:
        assert phase in MOVES[self.phase], (self.phase, phase)
        self.phase = phase
