"""Fetches from one leading broker all partitions that this broker follows there (ReplicaFetcherThread.scala).

One connection, one request in flight, one incremental session (leader_session.py): the leader holds a request back
until there is something to answer, and the next one goes out as soon as the answer is in the logs. It looks at what
has changed since the last one, and at nothing else (followed_set.py).

- A fetch claims everything before its offset. Where the topic wants syncs (`flush.messages`), the next request waits
  for those of the last answer, as Kafka does within the append.
- Answers may come late. Each is compared with the present epoch and log end right before it is applied; what was
  removed, or has another epoch by now, is passed over.
- An error of one partition makes that partition wait, the connection's makes all wait: 50 ms, then twice
  as long each time, up to `replica.fetch.backoff.ms`.
- A partition that comes while the leader holds a request back is not to wait for that: a second request, which asks for
  nothing, follows at once, and a leader lets nobody wait behind a Fetch that waits (api/fetch/follower.py). So a new
  leader has its followers within milliseconds, and not after `replica.fetch.wait.max.ms` as in Kafka.

The leader never says what is to be trusted about it: who leads, and in which epoch, comes from the metadata alone.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, NoReturn

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.replica.quota import ReplicationQuota
from odradek.broker.replication.fetch_requests import (
    EARLIEST,
    LATEST,
    Replica,
    fetch_request,
    list_offsets_request,
    offsets_in,
)
from odradek.broker.replication.followed_set import FollowedSet
from odradek.broker.replication.follower_state import FetchPosition, Phase
from odradek.broker.replication.following import FollowerReplica, Following
from odradek.broker.replication.leader_session import LeaderSession, PartitionId
from odradek.client.network.connection import Connection
from odradek.protocol.errors import ErrorCode, KafkaError, code_of
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

logger = logging.getLogger(__name__)

FETCH_VERSION: Final = 17
RECONNECT_FIRST_MS: Final = 50.0
WARNED_AFTER_MS: Final = 2_000.0
"""A leader that stops, or starts, is not reached for some moments. Where that lasts longer, something is wrong."""
NUDGE_MS: Final = 2.0
"""So long a new partition waits for others that come with it, and for its leader to hear of it."""
NEWS_SOON_MS: Final = 5.0
"""How long the leader may hold a request back while a log start is being written down; twice as long each time. A
DeleteRecords waits for what the next request says of it."""
BREATHE_BYTES: Final = 256 * 1024
"""After so many appended bytes the loop gets a turn."""
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Connect = Callable[[int], AbstractAsyncContextManager[Connection]]
"""A connection to the broker of this id, for the length of a block. Whatever fails leaves it as an OSError."""


class FetchRefused(OSError):
    """The leader answered the whole request with an error."""


class Fetcher:
    """See the module."""

    def __init__(
        self,
        leader_id: int,
        replica: Replica,
        connect: Connect,
        environment: Environment,
        config: BrokerConfig,
        quota: ReplicationQuota,
    ) -> None:
        """`quota` is that of all fetchers of this broker."""
        self.leader_id = leader_id
        self._replica = replica
        self._connect = connect
        self._environment = environment
        self._config = config
        self._followed = FollowedSet(quota)
        self._session = LeaderSession()
        self._news = asyncio.Event()
        self._connection: Connection | None = None
        self._is_asking = False  # a fetch is in flight
        self._nudge: asyncio.TimerHandle | None = None
        self._failures = 0
        self._soon_ms = NEWS_SOON_MS
        self._failing_since_ms = 0.0
        self._is_warned = False

    def __len__(self) -> int:
        return len(self._followed)

    def __repr__(self) -> str:
        return f"<Fetcher from broker {self.leader_id}: {len(self._followed)} partitions>"

    # -- what is fetched ------------------------------------------------------------------------------------------

    def add(self, partition: FollowerReplica) -> None:
        """From now on, at its present leader epoch. One that is there goes on, or begins anew in a new epoch."""
        if self._followed.add(partition, self._config.replica_fetch_backoff_ms):
            self._news.set()
            self._nudge_soon()

    def remove(self, key: PartitionId) -> None:
        """Nothing that is still to come is applied."""
        self._followed.remove(key)
        self._news.set()

    def changed(self, key: PartitionId) -> None:
        """Something that a fetch says has moved without it: the log start on the disk."""
        self._followed.touch(key)
        self._news.set()

    def _nudge_soon(self) -> None:
        """Something new has come while a request is in flight, which may be held back for long."""
        connection = self._connection
        if connection is not None and self._is_asking and self._nudge is None:
            self._nudge = self._environment.loop.call_later(NUDGE_MS / 1000, self._nudge_leader, connection)

    def _nudge_leader(self, connection: Connection) -> None:
        """Once for each request: the timer is kept until that is answered."""
        if connection.is_open:
            request = list_offsets_request(self._replica.broker_id, (), LATEST)
            connection.send(
                request,
                connection.version_of(ListOffsetsRequest),
                _ignore,
                timeout_ms=self._config.replica_socket_timeout_ms,
            )

    # -- the loop -------------------------------------------------------------------------------------------------

    async def run(self) -> NoReturn:
        """Fetches until it is cancelled."""
        while True:
            await self._until_wanted()
            try:
                await self._converse()
            except OSError as error:
                await self._pause_after(error)
            except Exception as error:
                logger.exception("%r: a mistake of ours ended the connection", self)
                await self._pause_after(error)

    async def _converse(self) -> NoReturn:
        """Over one connection, until it fails. Raises FetchRefused, and what the connection does."""
        try:
            async with self._connect(self.leader_id) as connection:
                self._connection = connection
                while True:
                    await self._exchange(connection)
        finally:
            self._connection = None
            self._answered()
            self._restart_session()

    async def _until_wanted(self) -> None:
        while not len(self._followed):
            self._news.clear()
            await self._news.wait()

    def _restart_session(self, *, is_closed: bool = False) -> None:
        self._session.restart(is_closed=is_closed)
        self._followed.touch_all()

    async def _pause_after(self, error: Exception) -> None:
        self._tell(error)
        delay_ms = min(RECONNECT_FIRST_MS * 2.0 ** min(self._failures, 20), self._config.replica_fetch_backoff_ms)
        self._failures += 1
        await self._environment.sleep(max(1.0, delay_ms))

    def _tell(self, error: Exception) -> None:
        """Once at INFO, since a leader that stops fails so, too, and is followed by another one; once as a warning if
        it goes on."""
        now_ms = self._environment.monotonic_ms()
        if not self._failures:
            self._failing_since_ms = now_ms
            self._is_warned = False
            logger.info("fetching from broker %d fails, and is tried again: %s", self.leader_id, error)
        elif not self._is_warned and now_ms - self._failing_since_ms >= WARNED_AFTER_MS:
            self._is_warned = True
            logger.warning(
                "fetching from broker %d has failed for %.0f ms, and is tried again: %s",
                *(self.leader_id, now_ms - self._failing_since_ms, error),
            )

    async def _exchange(self, connection: Connection) -> None:
        """One request and all that its answer brings. Raises FetchRefused, and what the connection does."""
        await self._settle()
        self._news.clear()
        now_ms = self._environment.monotonic_ms()
        self._followed.release(now_ms)
        changes = self._session.ask(self._followed.positions(now_ms))
        asked = self._session.known
        if not asked and not changes.forgotten:
            await self._wait_for_news(now_ms)
            return
        request = fetch_request(self._replica, self._session, changes, self._config, self._rest_ms(now_ms))
        self._is_asking = True
        try:
            response = await connection.ask(
                request, version=FETCH_VERSION, timeout_ms=self._config.replica_socket_timeout_ms
            )
        finally:
            self._answered()
        if response.error_code:
            self._refused(code_of(response.error_code))
            return
        was_new = self._session.is_new
        self._session.answered(response.session_id)
        if self._session.is_new:
            self._followed.touch_all()
        if self._failures and was_new:
            logger.info("fetching from broker %d works again", self.leader_id)
        self._failures = 0
        await self._apply(response, asked)
        await self._compare(connection)

    def _answered(self) -> None:
        self._is_asking = False
        if self._nudge is not None:
            self._nudge.cancel()
            self._nudge = None

    def _refused(self, code: ErrorCode) -> None:
        """A session that the leader does not know any more is begun anew at once; for all else the connection ends."""
        if code not in SESSION_ERRORS or self._session.is_new:
            raise FetchRefused(f"broker {self.leader_id} answers {code.name}")
        self._restart_session(is_closed=code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    # -- what to ask for ------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Returns when what came last may be claimed, or its partition waits because it may not."""
        while (following := self._followed.unsettled()) is not None:
            try:
                await following.partition.durable(following.partition.log.log_end_offset)
            except KafkaError as error:
                self._followed.failed(following, error, self._environment.monotonic_ms())

    def _rest_ms(self, now_ms: float) -> float:
        """How long the leader may hold a request back: until somebody has waited long enough, or has news."""
        most_ms = min(self._config.replica_fetch_wait_max_ms, self._config.replica_socket_timeout_ms / 2)
        if self._followed.has_news_soon:
            most_ms, self._soon_ms = min(most_ms, self._soon_ms), 2 * self._soon_ms
        else:
            self._soon_ms = NEWS_SOON_MS
        deadline_ms = self._followed.next_deadline_ms()
        return most_ms if deadline_ms is None else min(most_ms, max(0.0, deadline_ms - now_ms))

    async def _wait_for_news(self, now_ms: float) -> None:
        deadline_ms, loop = self._followed.next_deadline_ms(), self._environment.loop
        timer = None if deadline_ms is None else loop.call_later((deadline_ms - now_ms) / 1000, self._news.set)
        try:
            await self._news.wait()
        finally:
            if timer is not None:
                timer.cancel()

    # -- what is answered -----------------------------------------------------------------------------------------

    async def _apply(self, response: FetchResponse, asked: dict[PartitionId, FetchPosition]) -> None:
        appended_bytes = 0
        for topic in response.responses:
            for answer in topic.partitions:
                key = topic.topic_id, answer.partition_index
                if (position := asked.get(key)) is None:
                    continue
                now_ms, wall_ms = self._environment.monotonic_ms(), self._environment.now_ms()
                size_bytes = self._followed.take(key, answer, position, now_ms, wall_ms)
                if size_bytes is None:
                    self._session.name_again(key)
                    continue
                appended_bytes += size_bytes
                if appended_bytes >= BREATHE_BYTES:
                    appended_bytes = 0
                    await breathe()

    async def _compare(self, connection: Connection) -> None:
        """Asks where the leader's logs begin and end, for those whose offset it does not have."""
        comparing = [one for one in self._followed.looked_at() if one.state.phase is Phase.COMPARING]
        asked = {one.key: one.position for one in comparing}
        if not comparing:
            return
        offsets: dict[PartitionId, tuple[int, int]] = {}
        try:
            starts = await self._list_offsets(connection, comparing, EARLIEST)
            ends = await self._list_offsets(connection, comparing, LATEST)
            offsets = {key: (starts[key], ends[key]) for key in starts if key in ends}
        finally:
            now_ms = self._environment.monotonic_ms()
            for key, position in asked.items():
                self._followed.compare(key, offsets.get(key), position, now_ms)

    async def _list_offsets(
        self, connection: Connection, following: Sequence[Following], timestamp: int
    ) -> dict[PartitionId, int]:
        request = list_offsets_request(self._replica.broker_id, following, timestamp)
        response = await connection.ask(request, timeout_ms=self._config.replica_socket_timeout_ms)
        return offsets_in(response, following)


def _ignore(answer: object) -> None:
    """Of a nudge: what ends the connection is told to the request before it."""
