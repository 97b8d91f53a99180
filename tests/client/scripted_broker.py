"""A Kafka cluster in memory that does what a test says: answers like a broker, or late, wrong, torn, or not at all.

    with scripted_cluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=3)
        cluster.on(ProduceRequest, error(ErrorCode.NOT_ENOUGH_REPLICAS, partition=1), times=2)
        cluster.on(ProduceRequest, disconnect_after(), nth=4)
        producer = Producer(cluster.bootstrap, environment=cluster.environment)
        ...
        cluster.move_leader("orders", 0, to=2)
        cluster.brokers[1].stop()
        assert cluster.values("orders") == ...

It speaks real bytes through `odradek.protocol.codec.codec` on a network in memory, and its partitions are logs that
hold real batches (`broker_log.py`). What a broker does when nothing goes wrong stands in `broker_handlers.py`, faults
in `broker_faults.py`, how a request goes through them in `broker_connection.py`. When the context ends, it raises
`ClientErred` for what no client may do (`violations`), and SocketsLeft for connections that were left open.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from ssl import SSLContext
from typing import Any, TypeVar

from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_connection import BrokerConnection
from tests.client.broker_faults import Exchange, Fault, Rule
from tests.client.broker_handlers import HANDLERS, Call, Handler, whole_metadata
from tests.client.broker_log import MAX_MESSAGE_BYTES, LoggedBatch, PartitionLog
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork, MemoryServer, Path, Reach

Q = TypeVar("Q", bound=Request[Any])

PORT = 9092
CLUSTER_ID = "c2NyaXB0ZWQtY2x1c3Rlcg"
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class ClientErred(AssertionError):
    """The client did what no client may do, whatever the broker did to it."""


class Partition:
    """Who leads a partition, and its log, which all brokers share."""

    def __init__(self, log: PartitionLog, leader: int) -> None:
        self.log = log
        self.leader = leader
        self.leader_epoch = 0


class Topic:
    def __init__(self, name: str, topic_id: bytes, partitions: list[Partition]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.max_message_bytes = MAX_MESSAGE_BYTES
        self.log_append_time = False


class ScriptedBroker:
    """One node. `versions`: what it serves, by request; connections that exist go on with what is set now."""

    def __init__(self, cluster: "ScriptedCluster", node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.host = f"broker-{node_id}.test"
        self.address = f"10.0.0.{node_id + 1}"
        self.port = PORT
        self.versions: dict[type[Request[Any]], tuple[int, int]] = {
            cls: (cls.min_version, cls.max_version) for cls in cluster.handlers
        }
        self.service_ms = 0.0
        """So long it takes for each Produce, beside its faults."""
        self.is_fenced = False
        """Metadata does not list it, and its partitions have no leader."""
        self.stale_metadata: Response | None = None
        """What it answers to Metadata instead of the truth; see `freeze_metadata`."""
        self.connections: list[BrokerConnection] = []
        self._server: MemoryServer | None = None
        self._timers: set[asyncio.TimerHandle] = set()

    @property
    def path(self) -> Path:
        """How connections to it behave."""
        return self.cluster.network.path(self.address, self.port)

    @property
    def is_running(self) -> bool:
        return self._server is not None

    def start(self, versions: dict[type[Request[Any]], tuple[int, int]] | None = None) -> None:
        """Listens (again), perhaps as another release than before."""
        assert self._server is None
        self.versions |= versions or {}
        self.is_fenced = False
        self.path.reach = Reach.OPEN
        self._server = self.cluster.network.listen(self._connection, self.address, self.port, self.cluster.ssl)
        self._server.start()

    def stop(self, *, vanish: bool = False, fenced: bool = False) -> None:
        """Ends the process: what was begun is not done, its connections close and new ones are refused.

        `vanish`: the machine is gone, which nobody is told. `fenced`: the others know and elect nobody in its place.
        """
        assert self._server is not None
        self._server.close()
        self._server = None
        self.is_fenced = fenced
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if vanish:
            self.path.reach = Reach.BLACK_HOLE
        for link in self.cluster.network.links_to(self.address, self.port):
            if vanish:
                link.lose_server()
            else:
                link.server.abort()

    def close_connections(self) -> None:
        """Ends all of its connections and goes on listening."""
        for link in self.cluster.network.links_to(self.address, self.port):
            link.server.abort()

    def freeze_metadata(self) -> None:
        """From now on it answers Metadata as of now, until `stale_metadata` is None again: it hears of no change."""
        self.stale_metadata = whole_metadata(self)

    # -- what its connections ask ----------------------------------------------------------------------------------

    def _connection(self) -> BrokerConnection:
        connection = BrokerConnection(self, self.cluster.next_number(), self.cluster.now_ms)
        self.connections.append(connection)
        return connection

    def lost(self, connection: BrokerConnection) -> None:
        self.cluster.waiting_max |= connection.waiting_max
        self.connections.remove(connection)

    def after(self, delay_ms: float, action: Callable[[], None]) -> None:
        if delay_ms <= 0:
            action()
            return

        def run() -> None:
            self._timers.discard(timer)
            action()

        timer = self.cluster.network.loop.call_later(delay_ms / 1000.0, run)
        self._timers.add(timer)

    def request_type(self, connection: BrokerConnection, api_key: int, version: int) -> type[Request[Any]] | None:
        for cls in self.versions:
            if cls.api_key == api_key and (self.serves(cls, version) or cls is ApiVersionsRequest):
                guard = self.cluster.guard
                return cls if guard is None or guard(connection, cls) else None
        return None

    def serves(self, cls: type[Request[Any]], version: int) -> bool:
        low, high = self.versions[cls]
        return low <= version <= high

    def arrived(self, exchange: Exchange) -> tuple[Fault, ...]:
        self.cluster.exchanges.append(exchange)
        faults = [fault for rule in self.cluster.rules for fault in rule.take(exchange)]
        if self.service_ms and isinstance(exchange.request, ProduceRequest):
            faults.append(Fault(delay_before_ms=self.service_ms))
        return tuple(faults)

    def apply(self, connection: BrokerConnection, exchange: Exchange, faults: tuple[Fault, ...]) -> Response | None:
        handler = self.cluster.handlers[type(exchange.request)]
        return handler(Call(self, connection, exchange, faults))

    def violated(self, what: str) -> None:
        self.cluster.violations.append(what)


class ScriptedCluster:
    """See the module."""

    def __init__(
        self, network: MemoryNetwork, *, brokers: int = 1, seed: int = 0, ssl: SSLContext | None = None
    ) -> None:
        self.network = network
        self.ssl = ssl
        """Of all listeners."""
        self.environment = MemoryEnvironment(network, seed=seed)
        """What a client of the cluster is given."""
        self.topics: dict[str, Topic] = {}
        self.rules: list[Rule] = []
        self.exchanges: list[Exchange] = []
        """Every request that came, oldest first."""
        self.violations: list[str] = []
        self.waiting_max: Counter[int] = Counter()
        """As `BrokerConnection.waiting_max`, of all connections that have ended; see `most_in_flight`."""
        self.auto_create_partitions: int | None = None
        """So many partitions get topics that Metadata asks for and that do not exist; None: they are not made."""
        self.gives_hints = True
        """Produce names the new leader (KIP-951)."""
        self.controller_id = 0
        self.guard: Callable[[BrokerConnection, type[Request[Any]]], bool] | None = None
        """Whether a request is allowed now; where it is not, the connection is closed (before authentication)."""
        self.handlers: dict[type[Request[Any]], Handler] = dict(HANDLERS)
        self._producer_ids = iter(range(1_000, 1 << 30))
        self._numbers = iter(range(1, 1 << 30))
        self.brokers: dict[int, ScriptedBroker] = {}
        for _ in range(brokers):
            self.add_broker()

    # -- the cluster -----------------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> list[str]:
        return [f"{broker.host}:{broker.port}" for broker in self.brokers.values()]

    def now_ms(self) -> float:
        return self.environment.monotonic_ms()

    def add_broker(self) -> ScriptedBroker:
        broker = ScriptedBroker(self, len(self.brokers))
        self.network.names[broker.host] = [broker.address]
        self.brokers[broker.node_id] = broker
        broker.start()
        return broker

    def serve(self, request_type: type[Request[Any]], handler: Handler) -> None:
        """Serves one more API, in all declared versions, or one in another way than before; on all brokers."""
        self.handlers[request_type] = handler
        for broker in self.brokers.values():
            broker.versions.setdefault(request_type, (request_type.min_version, request_type.max_version))

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        leaders: Sequence[int] | None = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> Topic:
        """Creates a topic, led in turn by the brokers unless told by whom (-1: nobody)."""
        assert name not in self.topics
        turns = list(self.brokers) if leaders is None else list(leaders)
        topic_id = self.environment.random_uuid()
        self.topics[name] = topic = Topic(name, topic_id, [])
        topic.max_message_bytes = max_message_bytes
        for index in range(partitions):
            log = PartitionLog(f"{name}-{index}", self.violations)
            topic.partitions.append(Partition(log, turns[index % len(turns)]))
        return topic

    def delete_topic(self, name: str) -> None:
        del self.topics[name]

    def add_partitions(self, name: str, count: int) -> None:
        """Adds partitions, so that there are `count`."""
        topic = self.topics[name]
        for index in range(len(topic.partitions), count):
            log = PartitionLog(f"{name}-{index}", self.violations)
            topic.partitions.append(Partition(log, list(self.brokers)[index % len(self.brokers)]))

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        """Elects another leader (-1: nobody), under the next leader epoch. All data stays."""
        state = self.topics[topic].partitions[partition]
        state.leader = to
        state.leader_epoch += 1

    # -- what goes wrong, and when ---------------------------------------------------------------------------------

    def on(
        self,
        request_type: type[Request[Any]],
        *faults: Fault,
        nth: int = 1,
        times: int | None = 1,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> Rule:
        """The faults happen to the `nth` request from now on that is meant, and to the next ones, `times` in all.

        Meant are requests of this type, to this node, and (for Produce) for this topic and partition, where given.
        `times` None: for ever, or until the rule's `cancel`.
        """
        assert faults
        rule = Rule(request_type, faults, nth=nth, times=times, node=node, topic=topic, partition=partition)
        self.rules.append(rule)
        return rule

    # -- what came of it -------------------------------------------------------------------------------------------

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        return self.topics[topic].partitions[partition].log

    def batches(self, topic: str, partition: int = 0) -> list[LoggedBatch]:
        return self.log(topic, partition).batches

    def values(self, topic: str, partition: int | None = None) -> list[bytes | None]:
        """The values in a partition, or in all of a topic, one partition after the other, in the order of the log."""
        parts = self.topics[topic].partitions
        chosen = parts if partition is None else [parts[partition]]
        return [value for part in chosen for batch in part.log.batches for value in batch.values]

    def requests(self, request_type: type[Q], *, node: int | None = None) -> list[Q]:
        """The requests of a type that came, oldest first."""
        return [
            each.request
            for each in self.exchanges
            if isinstance(each.request, request_type) and node in (None, each.node_id)
        ]

    def exchanges_of(self, request_type: type[Request[Any]], *, node: int | None = None) -> list[Exchange]:
        return [
            each for each in self.exchanges if isinstance(each.request, request_type) and node in (None, each.node_id)
        ]

    def count(self, request_type: type[Request[Any]], *, node: int | None = None) -> int:
        return len(self.exchanges_of(request_type, node=node))

    def most_in_flight(self, request_type: type[Request[Any]]) -> int:
        """The most requests of this type that any connection had here at once without an answer."""
        open_now = (each.waiting_max for broker in self.brokers.values() for each in broker.connections)
        return max(each[request_type.api_key] for each in (self.waiting_max, *open_now))

    def check(self) -> None:
        """Raises ClientErred for what the client may not do, SocketsLeft for connections that it has not closed."""
        if self.violations:
            raise ClientErred("\n".join(self.violations))
        self.network.check_closed()

    def stop(self) -> None:
        """Ends everything, without a word about it."""
        for broker in self.brokers.values():
            if broker.is_running:
                broker.stop()
        self.network.stop()

    # -- what its handlers ask -------------------------------------------------------------------------------------

    def next_number(self) -> int:
        return next(self._numbers)

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def topic_for_metadata(self, name: str, may_create: bool) -> tuple[Topic | None, ErrorCode]:
        """The topic that Metadata asks for, made where it is missing and the cluster makes topics."""
        if name in self.topics:
            return self.topics[name], ErrorCode.NONE
        if TOPIC_NAME.fullmatch(name) is None:
            return None, ErrorCode.INVALID_TOPIC_EXCEPTION
        if may_create and self.auto_create_partitions is not None:
            self.create_topic(name, self.auto_create_partitions)
        # KRaft answers like this while it creates the topic, too.
        return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@contextmanager
def scripted_cluster(
    *,
    brokers: int = 1,
    seed: int = 0,
    ssl: SSLContext | None = None,
    sends_late: bool = False,
    checks: bool = True,
) -> Generator[ScriptedCluster]:
    """A cluster on a network of its own, for the loop that runs. At the end it is checked (see `check`) and stopped."""
    cluster = ScriptedCluster(MemoryNetwork(seed=seed, sends_late=sends_late), brokers=brokers, seed=seed, ssl=ssl)
    try:
        yield cluster
        if checks:
            cluster.check()
    finally:
        cluster.stop()
