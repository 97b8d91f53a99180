"""The DeleteRecords of a partition that this broker leads: who must have deleted before one is answered (KIP-107).

The answer promises that the records are gone, whoever leads next. So it waits until the low watermark has come to the
offset: the lowest log start on the disks of all that count (`Replicas.low_watermark`). Followers say theirs with each
fetch that names the partition, and those that have not been told of the new start are woken for it
(follower_sessions.py). From the answer on nobody joins the in-sync set with a lower start (`Replicas.may_join`); the
look at the low watermark and that promise are one step.

The low watermark may go back: a replica is added, or its broker comes back with a lower start. So whoever was woken
looks again.
"""

from collections.abc import Callable, Collection

from odradek.broker.log.log import Log
from odradek.broker.replica.replicas import UNKNOWN_OFFSET, Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress

LiveReplicas = Callable[[], Collection[int]]
"""The replicas that are usable, on brokers that are there."""


class Deletions:
    """The DeleteRecords of one partition."""

    __slots__ = ("_environment", "_log", "_low_watermark", "_replicas", "asked_offset", "live_replicas")

    def __init__(self, log: Log, environment: Environment) -> None:
        self._log = log
        self._environment = environment
        self._low_watermark = Progress(UNKNOWN_OFFSET)
        self._replicas: Replicas | None = None
        self.asked_offset = 0
        """The furthest that was asked for in this leader epoch: followers are told of it at once."""
        self.live_replicas: LiveReplicas = _nobody

    def begin(self, replicas: Replicas) -> None:
        """A leader epoch begins, with the log start that is there: nobody joins with a lower one."""
        self._replicas = replicas
        self.asked_offset = 0
        replicas.promised_log_start = max(replicas.promised_log_start, self._log.log_start_offset)
        self._low_watermark.restart(UNKNOWN_OFFSET)

    def fail(self, error: KafkaError) -> None:
        """This broker does not lead any more: whoever waits gets `error`."""
        self._replicas = None
        self._low_watermark.fail(error)

    def ask(self, offset: int) -> None:
        """A DeleteRecords up to `offset` has come."""
        self.asked_offset = max(self.asked_offset, offset)

    def look(self) -> int:
        """The low watermark as it is now; whoever waited for it is woken. UNKNOWN_OFFSET where this broker does not
        lead."""
        if self._replicas is None:
            return UNKNOWN_OFFSET
        low_watermark = self._replicas.low_watermark(self._log.log_start_offset, self.live_replicas())
        self._low_watermark.lower(low_watermark)
        self._low_watermark.advance(low_watermark)
        return low_watermark

    def replicas_changed(self) -> None:
        """A follower has fetched, or others count now."""
        if self._low_watermark.waiting:
            self.look()

    async def held_by_all(self, offset: int, deadline_ms: float) -> int:
        """Returns the low watermark once all that count have deleted up to `offset`, which this leader has done.

        From then on that is promised. `deadline_ms` is of the monotonic clock; one that has passed leaves one look.
        Raises KafkaError: REQUEST_TIMED_OUT, NOT_LEADER_OR_FOLLOWER, and what else ends leadership.
        """
        while (low_watermark := self.look()) < offset:
            remaining_ms = deadline_ms - self._environment.monotonic_ms()
            try:
                await self._low_watermark.reach(offset, max(0.0, remaining_ms))
            except TimeoutError:
                raise KafkaError(
                    ErrorCode.REQUEST_TIMED_OUT,
                    f"{self._log.directory}: the log starts at {self._log.log_start_offset}, and not all replicas have "
                    f"deleted up to {offset} in time: the low watermark is {low_watermark}",
                ) from None
        if self._replicas is not None:
            self._replicas.promised_log_start = max(self._replicas.promised_log_start, offset)
        return low_watermark


def _nobody() -> Collection[int]:
    return ()
