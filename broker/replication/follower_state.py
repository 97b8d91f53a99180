"""What a follower does with one partition: where it fetches, and what an answer means (AbstractFetcherThread.scala).
Pure.

    FETCHING    asks its leader for what comes at its log's end, naming the leader epoch and the last epoch it has
    COMPARING   its offset is not one that the leader has: it asks where the leader's log begins and ends
    WAITING     until a moment: after an error, or for room in the quota

Where two logs part is told by leader epochs alone, never by the high watermark (KIP-101, KIP-279). The leader compares
with each fetch (KIP-595). It knows where our last epoch ends in its log, and answers the largest epoch up to it that it
has, with that epoch's end. From there on `truncation_offset` decides, and the next fetch compares again:

| we know the epoch that it names | cut at |
|---|---|
| yes | where that epoch ends here or there, whichever comes first |
| no | where the last epoch before it ends here: what we have of later ones, the leader does not have |

Each step takes at least one epoch off our log or ends the comparison, and nothing goes that the leader has.

Errors mean that metadata is under way, or that something is broken. Those of the first kind come right after an
election, when a leader hears of it later than its followers. They are tried again soon, the others after
`replica.fetch.backoff.ms`.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError

RETRY_FIRST_MS = 10.0
"""The first wait for metadata that is under way; it doubles, up to `replica.fetch.backoff.ms`."""
UNDER_WAY_FAILURES = 8
"""So many of these in a row pass by themselves, as where leadership moves: somewhat more than a second of waits."""
UNKNOWN = -1

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


def truncation_offset(
    leader_end: tuple[int, int], fetched: FetchPosition, end_offset_for: Callable[[int], tuple[int, int]]
) -> int:
    """Where to cut our log, when the leader says that what we have of our last epoch is not what it has.

    `leader_end`: the largest epoch at the leader up to our last one, and its end offset there. `end_offset_for`: the
    same question put to our log. At most the log's end: then only an epoch goes in which nothing was appended.

    Raises KafkaError CORRUPT_MESSAGE for what no leader answers to this fetch, lest we cut for it, or cut for ever.
    """
    epoch, end_offset = leader_end
    is_answer = 0 <= epoch <= fetched.last_fetched_epoch and end_offset >= 0
    if not is_answer or (epoch == fetched.last_fetched_epoch and end_offset >= fetched.fetch_offset):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the leader says that its epoch {epoch} ends at {end_offset}, and we were at {fetched.fetch_offset} in "
            f"epoch {fetched.last_fetched_epoch}",
        )
    own_epoch, own_end_offset = end_offset_for(epoch)
    assert own_end_offset >= 0, "our last epoch is known, and it is not before the leader's"
    if own_epoch == epoch:
        return min(own_end_offset, end_offset, fetched.fetch_offset)
    return min(own_end_offset, fetched.fetch_offset)


class Restart(NamedTuple):
    """Throw the log away and begin at this offset."""

    offset: int


class Truncate(NamedTuple):
    """Cut the log at this offset."""

    offset: int


def after_out_of_range(fetched: FetchPosition, leader_start_offset: int, leader_end_offset: int) -> Restart | Truncate:
    """What to do, now that it is known where the leader's log begins and ends.

    It has deleted all that we have, and perhaps more: then nothing here is of use to anybody. Or it ends before us:
    only where no epoch is known here, by which it could compare, its end is believed (an empty log that begins behind
    it; whoever has records has epochs). Otherwise the next fetch compares again.

    Raises KafkaError OFFSET_OUT_OF_RANGE where that does not explain it. It may have been so for a moment; or our last
    epoch is newer than all that the leader knows, and records are not thrown away for that: somebody has to look.
    """
    if leader_start_offset >= fetched.fetch_offset:
        return Restart(leader_start_offset)
    if fetched.last_fetched_epoch == UNKNOWN and leader_end_offset < fetched.fetch_offset:
        return Truncate(leader_end_offset)
    raise KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"the leader has the offsets {leader_start_offset} to {leader_end_offset}, and cannot answer for "
        f"{fetched.fetch_offset} behind epoch {fetched.last_fetched_epoch}",
    )
