"""What is read of each partition: from where, how far, and what is due next. Pure.

    assign → placed, by an offset or by ListOffsets → ask → fetched → take … → the end

`Positions` is told what happens (`assign`, `placed`, `fetched`, `failed`, `blocked`) and says what is due at `now_ms`:
partitions that are `unplaced`, those that are `fetchable`, and when to look again. Two offsets are kept apart:
`fetch_offset` is the next to ask for, `position` the next to hand out. Between them lies what is fetched ahead,
`buffer_bytes` over all partitions, and the one batch that a broker sends even if it is larger than allowed (KIP-74).

An error that passes is met by asking again, with backoff, for `retry_timeout_ms`; time in which the buffer is full, so
that nothing is asked for, does not count. An offset out of range places the partition anew where `auto_offset_reset`
says. Anything else `take` raises, after the records before it, and once; the partition rests then, until it is
assigned again.

(Source: SubscriptionState.java, AbstractFetch.java, FetchCollector.java.)
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError, broker_error
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetched import Chunk, FetchedBatch
from odradek.client.fetching.list_offsets import ListedOffset
from odradek.client.fetching.request import answers, fetch_request
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData

__all__ = ["Asked", "OffsetOutOfRange", "Position", "Positions"]

NEVER: Final = float("inf")
OUT_OF_RANGE: Final = int(ErrorCode.OFFSET_OUT_OF_RANGE)

# The leader, or what is known of the topic, has changed: metadata is asked for (FetchCollector.java).
STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
PASSING: Final = STALE_METADATA | {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    # No session is ever asked for; such an answer says nothing of the partition.
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
}


class OffsetOutOfRange(BrokerError):
    """The partition has no such offset, any more or yet, and `auto_offset_reset` is "none"."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, what=f"reading {partition} from offset {offset}")
        self.partition = partition
        self.offset = offset


class Position:
    """One partition that is read. It is replaced when it is assigned anew, so that late answers are told."""

    __slots__ = (
        "end_offset",
        "error",
        "failing_since_ms",
        "failures",
        "fetch_offset",
        "is_asked",
        "is_stopped",
        "partition",
        "position",
        "retry_at_ms",
        "start",
        "waiting_count",
    )

    def __init__(self, partition: TopicPartition, start: Start, end_offset: int | None) -> None:
        self.partition = partition
        self.start = start
        self.end_offset = end_offset
        """Where reading ends; None: nowhere."""
        self.fetch_offset = self.position = -1 if start.offset is None else start.offset
        """-1: not known yet, ListOffsets has to say."""
        self.waiting_count = 0
        """The chunks that `take` has not finished."""
        self.is_asked = False
        """A request for it is under way."""
        self.is_stopped = False
        """It ended by an error."""
        self.retry_at_ms = 0.0
        self.failures = 0
        self.failing_since_ms = NEVER
        self.error: ClientError | None = None
        """Why nothing comes, since `failing_since_ms`; tried again until it has lasted for too long."""

    @property
    def has_ended(self) -> bool:
        """Nothing more will be asked for."""
        return self.is_stopped or (self.end_offset is not None and self.fetch_offset >= self.end_offset)

    @property
    def is_finished(self) -> bool:
        """Nothing more will be handed out."""
        return self.has_ended and not self.waiting_count

    def is_due(self, now_ms: float) -> bool:
        return not self.is_asked and not self.has_ended and now_ms >= self.retry_at_ms

    def succeeded(self) -> None:
        self.is_asked = False
        self.failures = 0
        self.failing_since_ms = NEVER
        self.error = None
        self.retry_at_ms = 0.0


class Asked:
    """A Fetch under way: the request, and the partitions in it."""

    __slots__ = ("positions", "request")

    def __init__(self, request: FetchRequest, positions: list[Position]) -> None:
        self.request = request
        self.positions = positions


class Positions:
    """The partitions that are read, in the order in which they are asked for. `random`: numbers from 0 up to 1."""

    def __init__(self, settings: FetchSettings, random: Callable[[], float]) -> None:
        self.settings = settings
        self.buffered_bytes = 0
        """Fetched, and not handed out to the end."""
        self.metadata_is_stale = False
        """An answer said so; who asks for metadata sets it back."""
        self.notices: list[str] = []
        """What happened that the user should know of; who logs it removes it."""
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._positions: dict[TopicPartition, Position] = {}
        self._waiting: deque[tuple[Position, Chunk]] = deque()
        self._expected_bytes = 0
        self._full_since_ms = NEVER
        """Since when the buffer is full, as far as `fetchable` has seen; NEVER: it is not."""

    def __iter__(self) -> Iterator[Position]:
        return iter(self._positions.values())

    def __getitem__(self, partition: TopicPartition) -> Position:
        return self._positions[partition]

    # ------------------------------------------------------------------------------------------- what is read
    def assign(self, partition: TopicPartition, start: Start, end_offset: int | None = None) -> None:
        """Reads a partition from `start` up to before `end_offset`; anew, if it is being read."""
        self.release(partition)
        self._positions[partition] = Position(partition, start, end_offset)

    def release(self, partition: TopicPartition) -> None:
        """Reads a partition no more; what was fetched of it is dropped."""
        position = self._positions.pop(partition, None)
        if position is not None:
            self._drop_waiting(position)

    @property
    def is_finished(self) -> bool:
        """Every partition has come to its end, or to an error that was raised."""
        return all(position.is_finished for position in self)

    # ------------------------------------------------------------------------------------------------ what is due
    def unplaced(self, now_ms: float) -> list[Position]:
        """The partitions for which ListOffsets has to be asked."""
        return [position for position in self if position.fetch_offset < 0 and position.is_due(now_ms)]

    def fetchable(self, now_ms: float) -> list[Position]:
        """The partitions to fetch from, whoever has waited longest first; none while there is no room."""
        if self._is_full:
            self._full_since_ms = min(self._full_since_ms, now_ms)
        elif self._full_since_ms != NEVER:
            self._excuse_pause(now_ms)
        if self.room_bytes <= 0:
            return []
        return [position for position in self if position.fetch_offset >= 0 and position.is_due(now_ms)]

    @property
    def room_bytes(self) -> int:
        """What may be asked for: the buffer, less what waits in it and what is under way."""
        return self.settings.buffer_bytes - self.buffered_bytes - self._expected_bytes

    def next_ms(self, now_ms: float) -> float:
        """When a backoff ends, or errors have lasted too long; infinity: nothing is due by itself."""
        due = NEVER
        for position in self:
            is_paused = self._is_full and position.fetch_offset >= 0
            if not position.is_asked and not position.has_ended and not is_paused:
                times = (position.retry_at_ms, self._gives_up_at_ms(position))
                due = min([due, *(time for time in times if time > now_ms)])
        return due

    # ------------------------------------------------------------------------------------------------- asking
    def ask(
        self, positions: Iterable[Position], leader_epochs: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes]
    ) -> Asked:
        """A Fetch of fetchable partitions that have one leader. It ends by `fetched` or `not_fetched`."""
        wanted = {each.partition: (each.fetch_offset, leader_epochs.get(each.partition, -1)) for each in positions}
        settings = self.settings
        assert self.room_bytes > 0, "nothing is fetchable without room"
        # No more than can come of so many partitions: it is room that other brokers are not asked to fill meanwhile.
        most_bytes = len(wanted) * settings.max_partition_fetch_bytes
        max_bytes = max(1, min(settings.fetch_max_bytes, self.room_bytes, most_bytes))
        asked = Asked(fetch_request(wanted, topic_ids, settings, max_bytes), list(positions))
        self._expected_bytes += max_bytes
        for position in asked.positions:
            position.is_asked = True
            self._to_the_end(position)  # who found no room is the next
        return asked

    def fetched(self, asked: Asked, response: FetchResponse, now_ms: float) -> None:
        """Takes over the answer."""
        if response.error_code:
            self.not_fetched(asked, broker_error(response.error_code, "", "Fetch"), now_ms)
            return
        self._expected_bytes -= asked.request.max_bytes
        found = answers(asked.request, response)
        for position in asked.positions:
            answer = found.get(position.partition)
            if not self._is_read(position):
                continue
            if answer is None:
                missing = self._error(position, ErrorCode.NOT_LEADER_OR_FOLLOWER, ", which the answer leaves out,")
                self.failed(position, missing, now_ms)
            elif answer.error_code == OUT_OF_RANGE:
                self._reset(position)
            elif answer.error_code:
                self.failed(position, self._error(position, answer.error_code), now_ms)
            else:
                self._keep(position, answer)

    def not_fetched(self, asked: Asked, error: ClientError, now_ms: float) -> None:
        """There will be no answer."""
        self._expected_bytes -= asked.request.max_bytes
        for position in asked.positions:
            self.failed(position, error, now_ms)

    def placed(self, position: Position, outcome: ListedOffset | ClientError, now_ms: float) -> None:
        """Takes over what ListOffsets says of an unplaced partition, whose `is_asked` was set for the time being."""
        if isinstance(outcome, ClientError):
            self.failed(position, outcome, now_ms)
            return
        position.succeeded()
        if outcome.offset < 0:
            position.start = Start.latest()  # no record is as young as that; those to come are
            return
        position.fetch_offset = outcome.offset
        if not position.waiting_count:
            position.position = outcome.offset

    def failed(self, position: Position, error: ClientError, now_ms: float) -> None:
        """A request for a partition failed: it is made again after a backoff, or not any more."""
        position.is_asked = False
        if not self._is_read(position) or position.is_stopped:
            return
        self.metadata_is_stale |= error.code in STALE_METADATA
        if error.code not in PASSING:
            self._stop(position, error)
            return
        position.retry_at_ms = now_ms + self._backoff.after_ms(position.failures)
        position.failures += 1
        self.blocked(position, error, now_ms)

    def blocked(self, position: Position, error: ClientError, now_ms: float) -> None:
        """A partition cannot be asked for now, for this reason. `retry_timeout_ms` ends that, too."""
        position.failing_since_ms = min(position.failing_since_ms, now_ms)
        position.error = error
        if now_ms >= self._gives_up_at_ms(position):
            self._stop(position, error)

    # -------------------------------------------------------------------------------------------------- taking
    def take(self) -> FetchedBatch | None:
        """The next batch of records, in the order of arrival; None: nothing waits.

        Raises the ClientError that ended a partition, once, after the records before it.
        """
        while self._waiting:
            position, chunk = self._waiting[0]
            try:
                batch = chunk.take(position.end_offset)
            except ClientError:
                position.position = chunk.position
                position.is_stopped = True
                self._drop_waiting(position)  # what comes behind the gap would hide it
                raise
            position.position = chunk.position
            if batch is not None:
                return batch
            self._waiting.popleft()
            self.buffered_bytes -= chunk.size_bytes
            position.waiting_count -= 1
            if not position.waiting_count and position.fetch_offset >= 0:
                position.position = position.fetch_offset
        return None

    # -------------------------------------------------------------------------------------------------- within
    def _is_read(self, position: Position) -> bool:
        """Whether it was neither released nor assigned anew since it was asked for."""
        return self._positions.get(position.partition) is position

    def _keep(self, position: Position, answer: PartitionData) -> None:
        position.succeeded()
        if not answer.records:
            return
        settings = self.settings
        aborted = (answer.aborted_transactions or ()) if settings.read_committed else None
        chunk = Chunk(
            position.partition, position.fetch_offset, answer.records, check_crcs=settings.check_crcs, aborted=aborted
        )
        position.fetch_offset = chunk.after
        position.is_stopped = chunk.error is not None
        self._put(position, chunk)
        # Who got something goes to the end: a broker fills its answer in the order of the request (KIP-74).
        self._to_the_end(position)

    def _reset(self, position: Position) -> None:
        """The offset to fetch from is out of range."""
        position.succeeded()
        policy = self.settings.auto_offset_reset
        if policy == "none":
            self._stop(position, OffsetOutOfRange(position.partition, position.fetch_offset))
            return
        self.notices.append(
            f"{position.partition} has no offset {position.fetch_offset}: reading goes on at its {policy} offset"
        )
        position.start = Start.earliest() if policy == "earliest" else Start.latest()
        position.fetch_offset = -1

    def _stop(self, position: Position, error: ClientError) -> None:
        position.is_stopped = True
        self._put(position, Chunk(position.partition, position.fetch_offset, error=error))

    def _put(self, position: Position, chunk: Chunk) -> None:
        self._waiting.append((position, chunk))
        self.buffered_bytes += chunk.size_bytes
        position.waiting_count += 1

    def _drop_waiting(self, position: Position) -> None:
        self.buffered_bytes -= sum(chunk.size_bytes for owner, chunk in self._waiting if owner is position)
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not position)
        position.waiting_count = 0

    def _to_the_end(self, position: Position) -> None:
        """The partition is asked for, and has records asked of it, behind the others."""
        self._positions[position.partition] = self._positions.pop(position.partition)

    @property
    def _is_full(self) -> bool:
        """Nothing more is fetched before somebody reads."""
        return self.buffered_bytes >= self.settings.buffer_bytes

    def _excuse_pause(self, now_ms: float) -> None:
        """While the buffer was full nobody asked, so nobody failed: as if what failed before had begun later."""
        for position in self:
            if position.fetch_offset >= 0:
                paused_ms = now_ms - max(self._full_since_ms, position.failing_since_ms)
                position.failing_since_ms += max(0.0, paused_ms)
        self._full_since_ms = NEVER

    def _gives_up_at_ms(self, position: Position) -> float:
        timeout_ms = self.settings.retry_timeout_ms
        return NEVER if timeout_ms is None else position.failing_since_ms + timeout_ms

    def _error(self, position: Position, code: int, more: str = "") -> ClientError:
        return broker_error(code, "", f"Fetch of {position.partition} at offset {position.fetch_offset}{more}")
