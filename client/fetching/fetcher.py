"""A plain Fetch loop: reads partitions from their leaders, without a group. Consumers stand on it.

    async with Fetcher(cluster, environment, settings) as fetcher:
        fetcher.assign(TopicPartition("orders", 0), Start.earliest())
        while (batch := await fetcher.next(timeout_ms=1_000)) is not None:
            ...

It is a callback of the event loop, not a task, as the sender is: `_round` asks every leader that can be asked, one
Fetch a node at a time, and sets a timer to the moment at which something is due by itself. Answers are kept until they
are read, within `buffer_bytes`, so the next fetch is under way while records are handed out, and nothing is fetched
while nobody reads. `next` gives the loop a turn before each batch: a reader who finds enough that waits, and so never
waits, would keep everybody else from running, the next fetch first of all. What is due, and what an answer means, is
decided in `odradek.client.fetching.positions`; what is said to a broker that remembers, in `session`. A consumer takes
columns instead (`take_columns`, after `prepare`), and gives the loop its turns itself (`wait`).

(Source: Fetcher.java, AbstractFetch.java.)
"""

import asyncio
import logging
from functools import partial
from types import TracebackType
from typing import Final, Literal, Self

from odradek.client.arguments import require_kind, require_partitions, require_timeout
from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.waiters import Waiters
from odradek.client.errors.base import printable
from odradek.client.errors.client_errors import ClientError, UnsupportedVersion, broker_error
from odradek.client.fetching.config import FetchConfig
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetched import FetchedBatch, unpack
from odradek.client.fetching.list_offsets import list_offsets_request, listed_offsets, lowest_version
from odradek.client.fetching.position import Position
from odradek.client.fetching.positions import Asked, Positions, Taken
from odradek.client.fetching.request import highest_version
from odradek.client.fetching.session import FetchSession
from odradek.client.network.connection import Connection
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

__all__ = ["Fetcher", "settings_of"]

logger = logging.getLogger(__name__)

LOOK_AGAIN_MS: Final = 10.0
"""So long at least a leader that cannot be asked is left alone, but for news of the cluster."""
TIMER_SLACK_MS: Final = 0.001
"""The timer rings so much later: rounding may make `at_ms / 1000` seconds less than `at_ms` milliseconds."""
NEVER: Final = float("inf")


def settings_of(
    config: FetchConfig,
    *,
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
    retry_timeout_ms: int | None = None,
) -> FetchSettings:
    """What a configuration says of fetching. `retry_timeout_ms`: None for `default_api_timeout_ms`."""
    return FetchSettings(
        fetch_min_bytes=config.fetch_min_bytes,
        fetch_max_bytes=config.fetch_max_bytes,
        fetch_max_wait_ms=config.fetch_max_wait_ms,
        max_partition_fetch_bytes=config.max_partition_fetch_bytes,
        check_crcs=config.check_crcs,
        isolation_level=config.isolation_level,
        auto_offset_reset=auto_offset_reset,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
        retry_timeout_ms=config.default_api_timeout_ms if retry_timeout_ms is None else retry_timeout_ms,
    )


class Fetcher:
    """Reads the partitions that are assigned to it, over the connections of a cluster that has been started."""

    def __init__(self, cluster: Cluster, environment: Environment, settings: FetchSettings | None = None) -> None:
        self.settings = settings or FetchSettings()
        self._cluster = cluster
        self._environment = environment
        self._positions = Positions(self.settings, environment.random)
        self._fetching: set[int] = set()
        """Nodes with a Fetch under way."""
        self._sessions: dict[int, FetchSession] = {}
        self._awaited: set[str] = set()
        """Topics that do not exist, and of which that was said."""
        self._readers = Waiters(environment)
        self._failure: Exception | None = None
        """What ended all reading."""
        self._is_scheduled = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe = cluster.subscribe(self._schedule)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Fetches no more; answers that are under way are dropped. The cluster stays open."""
        self._is_closed = True
        self._unsubscribe()
        if self._timer is not None:
            self._timer.cancel()
        self._readers.wake()

    # ------------------------------------------------------------------------------------------- what is read
    def assign(self, partition: TopicPartition, start: Start, end_offset: int | None = None) -> None:
        """Reads a partition from `start` on, to before `end_offset`; anew, if it is being read.

        Raises TypeError for arguments of a wrong kind.
        """
        require_partitions("partition", (partition,))
        require_kind("start", start, Start, "a Start, as Start.earliest() or Start.at_offset(5)")
        if start.offset is not None:
            require_kind("the offset of start", start.offset, int, "a whole number or None")
        require_kind("the timestamp of start", start.timestamp, int, "a whole number of milliseconds")
        if end_offset is not None:
            require_kind("end_offset", end_offset, int, "a whole number or None")
        self._positions.assign(partition, start, end_offset)
        self._schedule()

    def release(self, partition: TopicPartition) -> None:
        """Reads a partition no more."""
        require_partitions("partition", (partition,))
        self._positions.release(partition)
        self._schedule()  # there may be room for others now

    def position(self, partition: TopicPartition) -> int:
        """The offset of the record that `next` will hand out next; -1: it has to be looked up yet."""
        require_partitions("partition", (partition,))
        return self._positions[partition].position

    def pause(self, partition: TopicPartition) -> None:
        """Hands nothing out of it, and fetches nothing more, until `resume`. Raises KeyError: it is not read."""
        self._positions.pause(partition)
        self._schedule()  # there may be room for others now

    def resume(self, partition: TopicPartition) -> None:
        """Ends `pause`."""
        self._positions.resume(partition)
        self._schedule()

    @property
    def is_finished(self) -> bool:
        """Every partition has come to its end offset, or to an error that `next` has raised."""
        return self._positions.is_finished

    def failing(self) -> list[ClientError]:
        """Why partitions give nothing at the moment, those first that have failed for longest; they are tried again."""
        failing = [each for each in self._positions if each.error is not None and not each.is_stopped]
        return [each.error for each in sorted(failing, key=_failing_since_ms) if each.error is not None]

    async def next(self, timeout_ms: float) -> FetchedBatch | None:
        """The next batch of records of any partition; None when none came in time, or `is_finished`.

        Raises the ClientError that ends a partition, once; the others go on. What ends all reading is raised by every
        call. One caller at a time, who may be cancelled: that loses no records.
        """
        require_timeout("timeout_ms", timeout_ms)
        deadline_ms = self._environment.monotonic_ms() + timeout_ms
        await breathe()  # before anything is taken, which would be lost if this is cancelled
        while not self._is_closed:
            self.check()
            await self.prepare(None)
            waiting_bytes = self._positions.buffered_bytes
            try:
                batch = self._positions.take()
            finally:
                if self._positions.buffered_bytes < waiting_bytes:
                    self._schedule()  # there is room again
            if batch is not None or self._positions.is_finished:
                return batch
            if self._environment.monotonic_ms() >= deadline_ms:
                return None
            await self._readers.wait(deadline_ms)
        return None

    # ------------------------------------------------------------------------------------------- for a consumer
    def take_columns(self, partition: TopicPartition | None, count_min: int) -> Taken | None:
        """The next records of a partition, or (None) of any; None: nothing has come yet. It never waits.

        `count_min`: batches are put together until there are so many, as far as one answer has them. Raises what ends
        the partition, once.
        """
        waiting_bytes = self._positions.buffered_bytes
        try:
            return self._positions.take_columns(partition, count_min)
        finally:
            if self._positions.buffered_bytes < waiting_bytes:
                self._schedule()  # there is room again

    def is_packed(self, partition: TopicPartition | None) -> bool:
        """Whether `prepare` has something to do before the next records can be taken without much work."""
        return self._positions.packed(partition) is not None

    async def prepare(self, partition: TopicPartition | None) -> None:
        """Decompresses what is taken next in a helper thread, if it is much. Whoever is cancelled loses nothing."""
        if (found := self._positions.packed(partition)) is not None:
            chunk, packed = found
            chunk.unpacked(packed, await self._environment.run_computing(unpack, packed))

    async def wait(self, deadline_ms: float = NEVER) -> None:
        """Returns when something may have come, or at the deadline, on the loop's clock; at once when it is closed."""
        if not self._is_closed:
            await self._readers.wait(deadline_ms)

    def wake(self) -> None:
        """Has all who wait look again."""
        self._readers.wake()

    def check(self) -> None:
        """Raises what has ended all reading."""
        if isinstance(self._failure, ClientError):
            raise self._failure.fresh()
        if self._failure is not None:
            raise RuntimeError(f"fetching has failed: {self._failure!r}") from self._failure

    # -------------------------------------------------------------------------------------------------- rounds
    def _schedule(self) -> None:
        """Has `_run` called in this turn of the loop."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._environment.loop.call_soon(self._run)

    def _run(self, not_before_ms: float = 0.0) -> None:
        self._is_scheduled = False
        if self._is_closed:
            return
        self._failure = self._failure or self._cluster.fatal_error
        if self._failure is None:
            # A timer may ring up to a millisecond early (uvloop counts whole ones). What it was set for is due then: to
            # set it again for the rest would ring it over and over within that millisecond.
            now_ms = max(self._environment.monotonic_ms(), not_before_ms)
            try:
                self._round(now_ms)
            except Exception as error:  # noqa: BLE001
                # Nobody awaits a callback: without this, a mistake here would be a reader that waits for ever.
                self._failure = error
        self._readers.wake()

    def _round(self, now_ms: float) -> None:
        """Asks whom there is to ask, and sets the timer."""
        due: dict[int, tuple[list[Position], list[Position]]] = {}
        for position in (*self._positions.unplaced(now_ms), *self._positions.fetchable(now_ms)):
            node_id = self._node(position, now_ms)
            if node_id >= 0:
                unplaced, fetchable = due.setdefault(node_id, ([], []))
                (unplaced if position.fetch_offset < 0 else fetchable).append(position)
        look_at_ms = NEVER
        for node_id, (unplaced, fetchable) in due.items():
            if not unplaced and node_id in self._fetching:
                continue
            connection = self._cluster.connection(node_id)
            if connection is None:
                look_at_ms = min(look_at_ms, max(self._cluster.retry_at_ms(node_id), now_ms + LOOK_AGAIN_MS))
                error = broker_error(ErrorCode.NETWORK_EXCEPTION, "", f"connecting to broker {node_id}")
                is_backing_off = self._cluster.retry_at_ms(node_id) != NEVER
                for position in (*unplaced, *fetchable):
                    if position.replica_id == node_id and is_backing_off:
                        position.leave_replica(now_ms)
                    self._positions.blocked(position, error, now_ms)
                continue
            if unplaced:
                self._place(connection, unplaced, now_ms)
            if fetchable and node_id not in self._fetching and self._positions.room_bytes > 0:
                self._fetch(connection, fetchable, now_ms)
        self._tell()
        self._set_timer(min(look_at_ms, self._positions.next_ms(now_ms)), now_ms)

    def _node(self, position: Position, now_ms: float) -> int:
        """The node to ask about a partition; -1: none."""
        leader = self._leader(position, now_ms)
        replica = position.replica_id
        if leader < 0 or replica < 0 or position.fetch_offset < 0:
            return leader
        if now_ms >= position.replica_until_ms or self._cluster.metadata.node(replica) is None:
            position.replica_id = replica = -1
        return leader if replica < 0 else replica

    def _leader(self, position: Position, now_ms: float) -> int:
        """The node to ask about a partition; -1 where there is none, and the partition counts as failing."""
        topic, partition = position.partition
        metadata = self._cluster.metadata
        metadata.use(topic, now_ms)
        leader, _ = metadata.leader_of(topic, partition)
        if (known := metadata.topic(topic)) is not None:
            self._awaited.discard(topic)
            self._positions.names(position, known.topic_id)
            if position.is_stopped:
                return -1
        if leader >= 0:
            return leader
        if (error := metadata.error_of(topic)) is not None:
            self._positions.failed(position, error, now_ms)
            return -1
        heard = metadata.heard(topic)
        code = ErrorCode.LEADER_NOT_AVAILABLE if heard is None or not heard.code else heard.code
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self.settings.retry_timeout_ms is None:
            self._await_topic(topic)
        what = f"looking for the leader of {position.partition}"
        self._positions.blocked(position, broker_error(code, "", what), now_ms)
        self._positions.metadata_is_stale = True
        return -1

    def _await_topic(self, topic: str) -> None:
        """Says once that a topic does not exist."""
        if topic not in self._awaited:
            self._awaited.add(topic)
            logger.warning("topic %s does not exist; it is read as soon as there is one", printable(topic))

    def _tell(self) -> None:
        """What the positions want others to know."""
        for notice in self._positions.notices:
            logger.warning("%s", notice)
        self._positions.notices.clear()
        if self._positions.metadata_is_stale:
            self._positions.metadata_is_stale = False
            self._cluster.metadata.request_update()

    def _set_timer(self, at_ms: float, now_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_ms != NEVER:
            at_ms = max(at_ms, now_ms)
            self._timer = self._environment.loop.call_at((at_ms + TIMER_SLACK_MS) / 1000.0, self._run, at_ms)

    # ------------------------------------------------------------------------------------------------- questions
    def _place(self, connection: Connection, positions: list[Position], now_ms: float) -> None:
        """Asks where unplaced partitions begin."""
        wanted = {position.partition: position.start.timestamp for position in positions}
        committed = self.settings.read_committed
        for position in positions:
            position.is_asked = True
        try:
            version = connection.version_of(ListOffsetsRequest)
            needed = lowest_version(wanted.values(), read_committed=committed)
            if version < needed:
                ours, theirs = (needed, ListOffsetsRequest.max_version), (ListOffsetsRequest.min_version, version)
                raise UnsupportedVersion("ListOffsets", connection.broker, ours, theirs)
            connection.send(
                list_offsets_request(wanted, self._epochs(positions), read_committed=committed),
                version,
                partial(self._placed, positions),
                timeout_ms=self.settings.request_timeout_ms,
            )
        except ClientError as error:
            self._placed(positions, error)

    def _placed(self, positions: list[Position], answer: ListOffsetsResponse | ClientError) -> None:
        now_ms = self._environment.monotonic_ms()
        if isinstance(answer, ClientError):
            for position in positions:
                self._positions.placed(position, answer, now_ms)
        else:
            outcomes = listed_offsets([position.partition for position in positions], answer)
            for position in positions:
                self._positions.placed(position, outcomes[position.partition], now_ms)
        self._schedule()

    def _fetch(self, connection: Connection, positions: list[Position], now_ms: float) -> None:
        """Fetches from partitions that one node leads."""
        metadata = self._cluster.metadata
        topics = {position.partition.topic for position in positions}
        ids = {name: known.topic_id for name in topics if (known := metadata.topic(name)) is not None}
        node_id = connection.node_id
        rack = self.settings.client_rack if not any(each.shuns_replicas(now_ms) for each in positions) else ""
        asked = self._positions.ask(positions, self._epochs(positions), ids, node_id, rack)
        self._fetching.add(node_id)
        done = partial(self._fetched, node_id, asked)
        session = self._sessions.setdefault(node_id, FetchSession())
        try:
            version = connection.version_of(FetchRequest, highest_version(asked.request))
            timeout_ms = self.settings.request_timeout_ms + self.settings.fetch_max_wait_ms
            request = session.next_request(asked.request, version)
            asked.is_full = session.is_full
            connection.send(request, version, done, timeout_ms=timeout_ms)
        except ClientError as error:
            done(error)

    def _fetched(self, node_id: int, asked: Asked, answer: FetchResponse | ClientError) -> None:
        self._fetching.discard(node_id)
        now_ms = self._environment.monotonic_ms()
        session = self._sessions[node_id]
        if isinstance(answer, ClientError):
            session.lost()
            self._positions.not_fetched(asked, answer, now_ms)
        else:
            session.answered(answer)
            self._take_hints(asked, answer)
            self._positions.fetched(asked, answer, now_ms)
        self._schedule()

    def _take_hints(self, asked: Asked, answer: FetchResponse) -> None:
        """Newer leaders that a broker names beside an error (KIP-951)."""
        names = {topic.topic_id: topic.topic for topic in asked.request.topics}
        for topic in answer.responses:
            for each in topic.partitions:
                hint = each.current_leader
                if each.error_code and hint is not None and hint.leader_id >= 0:
                    name = topic.topic or names.get(topic.topic_id, "")
                    self._cluster.metadata.update_leader(
                        name, each.partition_index, hint.leader_id, hint.leader_epoch, answer.node_endpoints
                    )

    def _epochs(self, positions: list[Position]) -> dict[TopicPartition, int]:
        leader_of = self._cluster.metadata.leader_of
        return {position.partition: leader_of(*position.partition)[1] for position in positions}


def _failing_since_ms(position: Position) -> float:
    return position.failing_since_ms
