"""What of one partition may be read, and whom to wake when that changes.

A Fetch subscribes to `watchers` before it reads, so that no news falls between the two (watch.py). Readers of committed
records stop before the first offset that may still be aborted: the last stable offset (KIP-98).
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from odradek.broker.log.log import Log
from odradek.broker.log.segment_reader import FetchData
from odradek.broker.replica.isolation import Isolation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.progress import Progress

P = TypeVar("P")


class PartitionReader(Generic[P]):
    """The readers' side of one partition."""

    __slots__ = (
        "_high_watermark",
        "_log",
        "_name",
        "_partition",
        "appended_bytes",
        "changes",
        "log_watchers",
        "watchers",
    )

    def __init__(self, partition: P, name: str, log: Log, high_watermark: Progress) -> None:
        """`partition` is what those are told who watch it; `name`, of it, is for errors."""
        self._partition = partition
        self._name = name
        self._log = log
        self._high_watermark = high_watermark
        self.appended_bytes = 0
        """How many bytes were appended since the start: what a waiting Fetch measures growth by."""
        self.changes = 0
        """How often something else changed that readers must hear of at once."""
        self.watchers: dict[Callable[[P], None], None] = {}
        self.log_watchers: dict[Callable[[P], None], None] = {}
        """Called at each append: followers read further than the high watermark."""

    # -- bounds -------------------------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """Nothing before it can be aborted any more, or be lost with its marker."""
        first_unstable = self._log.producers.first_unstable_offset
        high_watermark = self._high_watermark.value
        return high_watermark if first_unstable is None else min(first_unstable, high_watermark)

    def end_offset(self, isolation: Isolation) -> int:
        """The first offset that such a reader may not see."""
        if isolation is Isolation.HIGH_WATERMARK:
            return self._high_watermark.value
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self._log.log_end_offset

    def require_offset(self, offset: int) -> None:
        """Raises KafkaError OFFSET_OUT_OF_RANGE below the log start or above the log end."""
        log = self._log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self._name} is not between {log.log_start_offset} and {log.log_end_offset}",
            )

    # -- reading ------------------------------------------------------------------------------------------------

    def fetch(
        self,
        offset: int,
        size_bytes_max: int,
        *,
        at_least_one_batch: bool,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        as_slice: bool = False,
    ) -> FetchData:
        """Whole batches from the one that holds `offset`, as far as `isolation` allows, with aborted records
        (`Log.aborted_transactions`); empty when there is none. With `as_slice` they may be a slice of a file.

        Raises KafkaError: OFFSET_OUT_OF_RANGE below the log start or above the log end.
        """
        end_offset = self.end_offset(isolation)
        return self._log.fetch(offset, size_bytes_max, end_offset, at_least_one_batch, as_slice=as_slice)

    # -- news ---------------------------------------------------------------------------------------------------

    def appended(self, size_bytes: int) -> None:
        """The log of a leader has grown."""
        self.appended_bytes += size_bytes
        for wake in self.log_watchers:
            wake(self._partition)

    def notify(self, *, changes: int = 1) -> None:
        """Has the fetches that watch this partition look at it again, whatever they wait for; with 0 `changes` they
        look at the high watermark alone, which may not have moved far enough."""
        self.changes += changes
        for wake in tuple(self.watchers):
            wake(self._partition)
