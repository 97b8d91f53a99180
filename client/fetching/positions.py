"""What is read of each partition: from where, how far, and what is due next. Pure.

    assign → placed, by an offset or by ListOffsets → ask → fetched → take … → the end

`Positions` is told what happens (`assign`, `placed`, `fetched`, `failed`, `blocked`) and says what is due at `now_ms`:
partitions that are `unplaced`, those that are `fetchable`, and when to look again. Two offsets are kept apart:
`fetch_offset` is the next to ask for, `position` the next to hand out. Between them lies what is fetched ahead,
`buffer_bytes` over all partitions, and the one batch that a broker sends even if it is larger than allowed (KIP-74).

An error that passes is met by asking again, with backoff, for `retry_timeout_ms`; time in which the buffer is full, so
that nothing is asked for, does not count. An offset out of range places the partition anew where `auto_offset_reset`
says; so does a log that was truncated below what was read (KIP-320), at the offset where it parted, and with
`follows_new_topics` a topic that was deleted and created again, at its beginning. Anything else `take` raises, after
the records before it, and once; the partition rests then, until it is assigned again.

A leader may name a replica to read from instead (KIP-392): `replica_id`, until that replica fails, does not know the
offset, or `replica_max_age_ms` have passed.

(Source: SubscriptionState.java, AbstractFetch.java, FetchCollector.java.)
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetched import Chunk, FetchedBatch, Packed
from odradek.client.fetching.list_offsets import ListedOffset
from odradek.client.fetching.position import (
    NEVER,
    OUT_OF_RANGE,
    PASSING,
    STALE_METADATA,
    LogTruncated,
    OffsetOutOfRange,
    Position,
)
from odradek.client.fetching.request import WantedPartition, answers, fetch_request
from odradek.client.fetching.session import SESSION_ERRORS
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.columns import Columns
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from odradek.protocol.primitives import ZERO_UUID

__all__ = ["Asked", "LogTruncated", "OffsetOutOfRange", "Position", "Positions", "Taken"]


class Asked:
    """A Fetch under way: the request as it stands for itself, the partitions in it, and who is asked (-1: the leader).

    `is_full`: it was sent like that, so that each of the partitions has to be answered.
    """

    __slots__ = ("is_full", "node_id", "positions", "request")

    def __init__(self, request: FetchRequest, positions: list[Position], node_id: int) -> None:
        self.request = request
        self.positions = positions
        self.node_id = node_id
        self.is_full = True


class Taken(NamedTuple):
    """Records that were taken of a partition. `next_offset`: behind them; `leader_epoch`: of the last of them."""

    partition: TopicPartition
    columns: Columns
    next_offset: int
    leader_epoch: int


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

    def __contains__(self, partition: object) -> bool:
        return partition in self._positions

    def pause(self, partition: TopicPartition) -> None:
        """Asks for nothing more of it and hands nothing out, until `resume`. What is fetched stays while there is room.

        Raises KeyError for one that is not read.
        """
        self._positions[partition].is_paused = True

    def resume(self, partition: TopicPartition) -> None:
        """Ends `pause`."""
        self._positions[partition].is_paused = False

    def names(self, position: Position, topic_id: bytes) -> None:
        """Metadata says that its topic, of which nothing is asked for at the moment, has this id."""
        known, position.topic_id = position.topic_id, topic_id
        if known in (b"", ZERO_UUID, topic_id) or not self.settings.follows_new_topics:
            return
        if self.settings.auto_offset_reset == "none":
            self._stop(position, OffsetOutOfRange(position.partition, position.fetch_offset))
            return
        self.notices.append(f"{position.partition} belongs to a topic that was created again: its beginning is read")
        self._place_again(position, Start.earliest())

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
            self._drop_paused()
        if self._is_full:
            self._full_since_ms = min(self._full_since_ms, now_ms)
        elif self._full_since_ms != NEVER:
            self._excuse_pause(now_ms)
        if self.room_bytes <= 0:
            return []
        return [
            position
            for position in self
            if position.fetch_offset >= 0 and position.is_due(now_ms) and not position.is_paused
        ]

    @property
    def room_bytes(self) -> int:
        """What may be asked for: the buffer, less what waits in it and what is under way."""
        return self.settings.buffer_bytes - self.buffered_bytes - self._expected_bytes

    def next_ms(self, now_ms: float) -> float:
        """When a backoff ends, or errors have lasted too long; infinity: nothing is due by itself."""
        due = NEVER
        for position in self:
            is_paused = position.fetch_offset >= 0 and (self._is_full or position.is_paused)
            if not position.is_asked and not position.has_ended and not is_paused:
                times = (position.retry_at_ms, self._gives_up_at_ms(position))
                due = min([due, *(time for time in times if time > now_ms)])
        return due

    # ------------------------------------------------------------------------------------------------- asking
    def ask(
        self,
        positions: Iterable[Position],
        leader_epochs: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes],
        node_id: int = -1,
        client_rack: str = "",
    ) -> Asked:
        """A Fetch of fetchable partitions that one broker is asked for. It ends by `fetched` or `not_fetched`.

        `client_rack`: the broker may name a replica there; empty: it is to answer itself.
        """
        wanted = {
            each.partition: WantedPartition(
                each.fetch_offset, leader_epochs.get(each.partition, -1), each.last_fetched_epoch
            )
            for each in positions
        }
        settings = self.settings
        assert self.room_bytes > 0, "nothing is fetchable without room"
        # No more than can come of so many partitions: it is room that other brokers are not asked to fill meanwhile.
        most_bytes = len(wanted) * settings.max_partition_fetch_bytes
        max_bytes = max(1, min(settings.fetch_max_bytes, self.room_bytes, most_bytes))
        request = fetch_request(wanted, topic_ids, settings, max_bytes)
        request.rack_id = client_rack
        asked = Asked(request, list(positions), node_id)
        self._expected_bytes += max_bytes
        for position in asked.positions:
            position.is_asked = True
            self._to_the_end(position)  # who found no room is the next
        return asked

    def fetched(self, asked: Asked, response: FetchResponse, now_ms: float) -> None:
        """Takes over the answer."""
        if response.error_code in SESSION_ERRORS and not asked.is_full:
            self._expected_bytes -= asked.request.max_bytes
            for position in asked.positions:
                position.is_asked = False
            return
        if response.error_code:
            self.not_fetched(asked, broker_error(response.error_code, "", "Fetch"), now_ms)
            return
        self._expected_bytes -= asked.request.max_bytes
        found = answers(asked.request, response)
        for position in asked.positions:
            answer = found.get(position.partition)
            if not self._is_read(position):
                continue
            if answer is not None:
                self._answered(position, answer, asked.node_id, now_ms)
            elif asked.is_full:
                missing = self._error(position, ErrorCode.NOT_LEADER_OR_FOLLOWER, ", which the answer leaves out,")
                self.failed(position, missing, now_ms)
            else:
                position.succeeded()  # there is nothing new

    def not_fetched(self, asked: Asked, error: ClientError, now_ms: float) -> None:
        """There will be no answer."""
        self._expected_bytes -= asked.request.max_bytes
        for position in asked.positions:
            if position.replica_id == asked.node_id >= 0:
                position.leave_replica(now_ms)
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
        while (entry := self._first(None)) is not None:
            position, chunk = entry
            try:
                batch = chunk.take(position.end_offset)
            except ClientError:
                self._broke(position, chunk)
                raise
            position.position = chunk.position
            if batch is not None:
                return batch
            self._used_up(entry)
        return None

    def take_columns(self, partition: TopicPartition | None, count_min: int) -> Taken | None:
        """The same in columns: records of one partition, of as many batches as it takes to have so many.

        Fewer where an answer ends before. `partition`: of this one alone. Raises as `take`.
        """
        while (entry := self._first(partition)) is not None:
            position, chunk = entry
            try:
                columns = chunk.take_columns(position.end_offset, count_min)
            except ClientError:
                self._broke(position, chunk)
                raise
            position.position = chunk.position
            if columns is not None:
                return Taken(position.partition, columns, chunk.position, chunk.leader_epoch)
            self._used_up(entry)
        return None

    def packed(self, partition: TopicPartition | None) -> tuple[Chunk, Packed] | None:
        """What to decompress in a helper thread before the next records are taken; None: they can be taken at once."""
        entry = self._first(partition)
        packed = None if entry is None else entry[1].packed()
        return None if entry is None or packed is None else (entry[1], packed)

    # -------------------------------------------------------------------------------------------------- within
    def _first(self, partition: TopicPartition | None) -> tuple[Position, Chunk] | None:
        """What waits for longest, of this partition or of any, but for those that are paused."""
        for entry in self._waiting:
            position = entry[0]
            if (partition is None or position.partition == partition) and not position.is_paused:
                return entry
        return None

    def _used_up(self, entry: tuple[Position, Chunk]) -> None:
        position, chunk = entry
        if self._waiting[0] is entry:
            self._waiting.popleft()
        else:
            self._waiting.remove(entry)
        self.buffered_bytes -= chunk.size_bytes
        position.waiting_count -= 1
        if not position.waiting_count and position.fetch_offset >= 0:
            position.position = position.fetch_offset

    def _broke(self, position: Position, chunk: Chunk) -> None:
        position.position = chunk.position
        position.is_stopped = True
        self._drop_waiting(position)  # what comes behind the gap would hide it

    def _is_read(self, position: Position) -> bool:
        """Whether it was neither released nor assigned anew since it was asked for."""
        return self._positions.get(position.partition) is position

    def _answered(self, position: Position, answer: PartitionData, node_id: int, now_ms: float) -> None:
        if answer.error_code and position.replica_id == node_id >= 0:
            # The leader knows better: a replica may not have what was read elsewhere, or what is committed.
            position.leave_replica(now_ms)
            position.succeeded()
        elif answer.error_code == OUT_OF_RANGE:
            self._reset(position)
        elif answer.error_code:
            self.failed(position, self._error(position, answer.error_code), now_ms)
        elif answer.diverging_epoch is not None and answer.diverging_epoch.end_offset >= 0:
            self._diverged(position, min(answer.diverging_epoch.end_offset, position.fetch_offset))
        else:
            if answer.preferred_read_replica >= 0:
                position.replica_id = answer.preferred_read_replica
                position.replica_until_ms = now_ms + self.settings.replica_max_age_ms
            self._keep(position, answer)

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
        position.last_fetched_epoch = chunk.last_epoch
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
        self._place_again(position, Start.earliest() if policy == "earliest" else Start.latest())

    def _diverged(self, position: Position, end_offset: int) -> None:
        """The log was truncated, and what was read from `end_offset` on is not in it any more."""
        position.succeeded()
        if self.settings.auto_offset_reset == "none":
            self._stop(position, LogTruncated(position.partition, position.fetch_offset, end_offset))
            return
        self.notices.append(
            f"{position.partition} was truncated below {position.fetch_offset}: reading goes on at {end_offset}, where "
            "its records are others now"
        )
        self._drop_waiting(position)
        position.position = min(position.position, end_offset)
        self._place_again(position, Start.at_offset(position.position))

    def _place_again(self, position: Position, start: Start) -> None:
        position.start = start
        position.fetch_offset = -1 if start.offset is None else start.offset
        position.last_fetched_epoch = start.leader_epoch

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

    def _drop_paused(self) -> None:
        """Gives the room of paused partitions to the others; it is fetched again when they are resumed."""
        for position in self:
            if position.is_paused and position.waiting_count and not (position.is_asked or position.is_stopped):
                self._drop_waiting(position)
                position.fetch_offset = position.position
                position.last_fetched_epoch = -1

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
