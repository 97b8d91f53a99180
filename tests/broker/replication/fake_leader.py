"""A leader in memory: real bytes of Fetch 17 and ListOffsets from real logs, with what can go wrong on the way.

    leader = FakeLeader(network, node_id=1)
    leader.lead(index, Led(log, leader_epoch=3))
    ...
    leader.append(index, data)              # wakes a fetch that is held back

A fetch is held back until there is something to answer, its time is up, or another request follows it. Sessions are
the broker's own (broker/fetching/consumer_sessions.py), with what those of followers do otherwise
(broker/replication/follower_sessions.py): a partition leaves the session with an error, or where the logs part, and
records that were sent are not sent again, before a request names the partition.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from odradek.broker.fetching.consumer_sessions import CachedPartition, FetchSession, FetchSessions, PartitionKey
from odradek.broker.replication.fetcher import Connect
from odradek.broker.replication.follower_state import FetchPosition
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.runtime.environment import Environment
from tests.broker.log.logs import append
from tests.broker.replication.replicas_world import Led
from tests.client.broker_connection import BrokerConnection
from tests.client.broker_faults import Exchange, Fault
from tests.client.memory_network import MemoryNetwork, MemoryServer

PORT = 9092
SERVED: tuple[type[Request[Any]], ...] = (ApiVersionsRequest, FetchRequest, ListOffsetsRequest)
Key = tuple[bytes, int]


class LeaderConnection(BrokerConnection):
    """Holds fetches back."""

    def __init__(self, leader: "FakeLeader", number: int) -> None:
        super().__init__(leader, number, lambda: leader.network.loop.time() * 1000)
        self._leader = leader

    def _apply(self, exchange: Exchange, faults: tuple[Fault, ...]) -> None:
        if isinstance(exchange.request, FetchRequest):
            self._leader.fetched(self, exchange.request, lambda response: self.reply(exchange, response))
        else:
            super()._apply(exchange, faults)

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        if self._frames:
            self._leader.answer_held(self)

    def reply(self, exchange: Exchange, response: Response) -> None:
        exchange.response = response
        self._answer(exchange, ())


class Held:
    """A fetch that is held back."""

    def __init__(
        self,
        connection: LeaderConnection,
        max_bytes: int,
        reply: Callable[[Response], None],
        session: FetchSession,
        timer: asyncio.TimerHandle,
    ) -> None:
        self.connection = connection
        self.max_bytes = max_bytes
        self.reply = reply
        self.session = session
        self.timer = timer


class FakeLeader:
    """See the module."""

    def __init__(self, network: MemoryNetwork, node_id: int = 1, slots: int = 100) -> None:
        self.network = network
        self.node_id = node_id
        self.address = f"10.0.0.{node_id}"
        self.led: dict[Key, Led] = {}
        self.errors: dict[Key, list[ErrorCode]] = {}
        """Of a partition, for its next answers."""
        self.edits: list[Callable[[FetchResponse], None]] = []
        """What becomes of the next answers, one each."""
        self.delays_ms: list[float] = []
        """How long the next answers take."""
        self.list_offsets_end_connection = 0
        """So many of the next ListOffsets end their connection."""
        self.refusals: list[ErrorCode] = []
        """Of whole fetches, for the next ones."""
        self.fetches: list[FetchRequest] = []
        self.fetch_times_ms: list[float] = []
        self.answered: list[int] = []
        """How many partitions were in each answer."""
        self.sent_bytes: Counter[Key] = Counter()
        self._sent: dict[tuple[int, PartitionKey], FetchPartition] = {}  # by session, with the request it answered
        self.sessions = FetchSessions(slots, iter(range(1, 1 << 30)).__next__)
        self._held: list[Held] = []
        self._numbers = iter(range(1, 1 << 30))
        self._timers: set[asyncio.TimerHandle] = set()
        self._server: MemoryServer | None = None
        self.start()

    # -- what a test does -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._server = self.network.listen(lambda: LeaderConnection(self, next(self._numbers)), self.address, PORT)
        self._server.start()

    def stop(self) -> None:
        """The process is gone: connections are reset, new ones refused."""
        assert self._server is not None
        self._server.close()
        self._server = None
        for held in self._held:
            held.timer.cancel()
        self._held.clear()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for link in self.network.links_to(self.address, PORT):
            link.server.abort()

    def lead(self, index: int, led: Led) -> None:
        self.led[led.topic_id, index] = led

    def append(self, index: int, data: bytes, topic: str = "orders") -> None:
        led = self.led[topic[:1].encode() * 16, index]
        append(led.log, data, led.leader_epoch)
        self.wake()

    def wake(self) -> None:
        """Something has changed: fetches that are held back are looked at again."""
        for held in list(self._held):
            self._try(held, is_last=False)

    def answer_held(self, connection: LeaderConnection) -> None:
        """Of a connection that asks something else: nobody waits behind a fetch that waits."""
        for held in [each for each in self._held if each.connection is connection]:
            self._try(held, is_last=True)

    def positions(self, fetch: FetchRequest) -> dict[int, int]:
        """The offsets that a fetch names, by partition."""
        return {one.partition: one.fetch_offset for topic in fetch.topics for one in topic.partitions}

    # -- fetches --------------------------------------------------------------------------------------------------

    def fetched(self, connection: LeaderConnection, request: FetchRequest, reply: Callable[[Response], None]) -> None:
        self.fetches.append(request)
        now_ms = self.network.loop.time() * 1000
        self.fetch_times_ms.append(now_ms)
        try:
            if self.refusals:
                raise KafkaError(self.refusals.pop(0))
            session = self._session(request, now_ms)
        except KafkaError as error:
            reply(FetchResponse(error_code=error.code, session_id=0, responses=[]))
            return
        timer = self._after(request.max_wait_ms, lambda: self._try(held, is_last=True))
        held = Held(connection, request.max_bytes, reply, session, timer)
        self._held.append(held)
        self._try(held, is_last=False)

    def _session(self, request: FetchRequest, now_ms: float) -> FetchSession:
        wanted: dict[PartitionKey, FetchPartition] = {
            ("", topic.topic_id, one.partition): one for topic in request.topics for one in topic.partitions
        }
        session = self.sessions.resolve(request.session_id, request.session_epoch, True, now_ms)
        if session is None:
            session = self.sessions.create(True, now_ms) or FetchSession(0, True, now_ms)
        forgotten = [
            ("", topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
        ]
        session.update(wanted, forgotten)
        return session

    def _try(self, held: Held, *, is_last: bool) -> None:
        """Answers, if there is anything to answer, or time is up."""
        session = held.session
        answers: dict[PartitionKey, PartitionData] = {}
        due = self._due(session)
        for key, cached in due.items():
            answers[key] = self._read(key[1:], cached.request, is_dry=True)
        is_urgent = any(one.error_code or one.diverging_epoch or one.records for one in answers.values())
        if not (is_last or is_urgent or not session.partitions or self._has_news(session, answers)):
            return
        self._held.remove(held)
        held.timer.cancel()
        room_bytes = held.max_bytes
        for key, cached in due.items():
            answers[key] = answer = self._read(key[1:], cached.request)
            if answer.records and len(answer.records) > room_bytes and room_bytes < held.max_bytes:
                answer.records = b""
            room_bytes -= len(answer.records or b"")
        told = session.filter(answers)
        for key, answer in told.items():
            if answer.records:
                self._sent[session.session_id, key] = session.partitions[key].request
            elif answer.error_code or answer.diverging_epoch:
                session.update({}, [key])
        self.answered.append(len(told))
        topics: dict[bytes, list[PartitionData]] = {}
        for key, answer in told.items():
            topics.setdefault(key[1], []).append(answer)
            self.sent_bytes[key[1], key[2]] += len(answer.records or b"")
        response = FetchResponse(
            session_id=session.session_id,
            responses=[FetchableTopicResponse(topic_id=one, partitions=rows) for one, rows in topics.items()],
        )
        if self.edits:
            self.edits.pop(0)(response)
        if self.delays_ms:
            self._after(self.delays_ms.pop(0), lambda: held.reply(response))
        else:
            held.reply(response)

    def _due(self, session: FetchSession) -> dict[PartitionKey, CachedPartition]:
        """Without those whose records were sent, and that no request has named since."""
        sent, number = self._sent, session.session_id
        return {
            key: cached for key, cached in session.partitions.items() if sent.get((number, key)) is not cached.request
        }

    def _has_news(self, session: FetchSession, answers: dict[PartitionKey, PartitionData]) -> bool:
        return any(
            session.partitions[key].high_watermark not in (-1, answer.high_watermark) for key, answer in answers.items()
        )

    def _read(self, key: Key, wanted: FetchPartition, *, is_dry: bool = False) -> PartitionData:
        errors = self.errors.get(key)
        if errors or key not in self.led:
            code = ErrorCode.UNKNOWN_TOPIC_ID if not errors else errors[0] if is_dry else errors.pop(0)
            return PartitionData(partition_index=key[1], error_code=code, high_watermark=-1, records=b"")
        asked = FetchPosition(
            wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch, wanted.log_start_offset
        )
        return self.led[key].read(key[1], asked, wanted.partition_max_bytes)

    # -- what connections ask (broker_connection.Broker) ----------------------------------------------------------

    def after(self, delay_ms: float, action: Callable[[], None]) -> None:
        if delay_ms <= 0:
            action()
        else:
            self._after(delay_ms, action)

    def _after(self, delay_ms: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        def run() -> None:
            self._timers.discard(timer)
            action()

        timer = self.network.loop.call_later(delay_ms / 1000, run)
        self._timers.add(timer)
        return timer

    def request_type(self, connection: BrokerConnection, api_key: int, version: int) -> type[Request[Any]] | None:
        del connection
        return next((one for one in SERVED if one.api_key == api_key and self.serves(one, version)), None)

    def serves(self, cls: type[Request[Any]], version: int) -> bool:
        return cls.min_version <= version <= cls.max_version

    def arrived(self, exchange: Exchange) -> tuple[Fault, ...]:
        del exchange
        return ()

    def apply(self, connection: BrokerConnection, exchange: Exchange, faults: tuple[Fault, ...]) -> Response | None:
        del faults
        if isinstance(exchange.request, ListOffsetsRequest):
            if self.list_offsets_end_connection:
                self.list_offsets_end_connection -= 1
                connection.transport.abort()
            return self._list_offsets(exchange.request)
        rows = [
            ApiVersion(api_key=one.api_key, min_version=one.min_version, max_version=one.max_version) for one in SERVED
        ]
        return ApiVersionsResponse(api_keys=rows)

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        assert request.replica_id >= 0, "only a replica is told where the log ends"
        topics: list[ListOffsetsTopicResponse] = []
        for topic in request.topics:
            rows: list[ListOffsetsPartitionResponse] = []
            for wanted in topic.partitions:
                row = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
                try:
                    led = self.led[topic.name[:1].encode() * 16, wanted.partition_index]
                    led.check_epoch(wanted.current_leader_epoch)
                    row.offset = led.log.log_start_offset if wanted.timestamp == -2 else led.log.log_end_offset
                except KafkaError as error:
                    row.error_code = error.code
                rows.append(row)
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
        return ListOffsetsResponse(topics=topics)

    def violated(self, what: str) -> None:
        raise AssertionError(what)

    def lost(self, connection: BrokerConnection) -> None:
        """A fetch of it that is held back is forgotten."""
        for held in [held for held in self._held if held.connection is connection]:
            held.timer.cancel()
            self._held.remove(held)


def connecting(environment: Environment, leaders: dict[int, FakeLeader]) -> Connect:
    """Connections to these leaders, as a fetcher takes them."""
    config = ClientConfig(bootstrap_servers="unused:1", client_id="broker-0")

    @asynccontextmanager
    async def connected(leader_id: int) -> AsyncGenerator[Connection]:
        leader = leaders[leader_id]
        try:
            connection = await open_connection(environment, config, leader_id, leader.address, PORT)
        except ClientError as error:
            raise OSError(str(error)) from error
        try:
            yield connection
        except ClientError as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
            await connection.closed()

    def connect(leader_id: int) -> AbstractAsyncContextManager[Connection]:
        return connected(leader_id)

    return connect
