"""What every API handler is given: the broker's state (`Context`), and whose request it is (`Call`).

An API is one row of `broker/served.py`, an `Api`; dispatch, the ApiVersions answer, metrics and the documentation all
follow from these rows. A handler is `async def handle(context, call, request) -> response`; it returns None where the
protocol has no answer (Produce with acks=0) and raises `CloseConnection` where Kafka closes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from odradek.broker.access.access import Access
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.access.resource import CLUSTER, DENIED, Resource, ResourceType
from odradek.broker.cluster_member import ClusterMember
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.coordinator.shards import Shards
from odradek.broker.disk.disk import Disk
from odradek.broker.fetching.consumer_sessions import FetchSessions
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.machine import GroupMachine
from odradek.broker.handling.decisions import Decisions, note, refused_in
from odradek.broker.handling.interceptors import Interceptors
from odradek.broker.handling.log_text import shown
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.observability.request_metrics import RequestMetrics
from odradek.broker.observability.request_times import RequestTimes
from odradek.broker.partitions.table import Partitions
from odradek.broker.replication.follower_sessions import FollowerSessions
from odradek.broker.txn.transactions import Transactions
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

if TYPE_CHECKING:  # what a broker without SASL, without an authorizer and without quotas does not import
    from odradek.broker.authentication.authentication import Authentication
    from odradek.broker.authentication.sasl_connection import SaslConnection
    from odradek.broker.handling.enforcement import Enforcement
    from odradek.broker.handling.throttling import Throttling

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class CloseConnection(Exception):
    """The protocol's answer is to close the connection; the text goes to the log, with the peer."""


class Endpoint(NamedTuple):
    """A host and port as clients are told them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Caller:
    """Who is at the other end of one connection."""

    __slots__ = (
        "_on_arrival",
        "charged",
        "follows",
        "has_more",
        "host",
        "keeps_turn",
        "listener",
        "mute",
        "on_close",
        "peer",
        "principal",
        "protocol",
        "sasl",
        "software",
        "takes_slices",
    )

    def __init__(
        self,
        listener: str,
        peer: str = "unknown",
        host: str = "",
        protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
    ) -> None:
        self.listener = listener
        self.peer = peer
        self.host = host
        self.protocol = protocol
        """What the listener speaks."""
        self.principal = ANONYMOUS
        self.sasl: SaslConnection | None = None
        """How it authenticates, on a listener with SASL."""
        self.software = ""
        """Client name and version, once ApiVersions v3 or later told them (KIP-511)."""
        self.takes_slices = False
        """Whether an answer to it may hold slices of files (disk/file_slice.py)."""
        self.on_close: Callable[[], None] | None = None
        """Called once, when the connection has ended."""
        self.has_more: Callable[[], bool] = never
        """Whether another request has been received, and waits for the answer to this one."""
        self.keeps_turn = False
        """Whether its request waits before it has done anything, so that the next one must not begin: it would overtake
        this one, where both are of an API whose requests begin behind others (`Api.is_eager`)."""
        self.follows = False
        """Whether it fetches as a follower. It is served to the end of a broker that stops: the last requests of
        clients are answered when followers have what these have written."""
        self._on_arrival: Callable[[], None] | None = None
        self.mute: Callable[[float], None] = mute_nobody
        """Called with the time (`Environment.monotonic_ms`) until which a quota wants it to be silent."""
        self.charged: frozenset[str] = frozenset()
        """The quotas that a request of its connection was charged to."""

    @contextmanager
    def telling_of_arrivals(self, on_arrival: Callable[[], None]) -> Generator[None]:
        """Within the block, `on_arrival` is called whenever another request has been received."""
        self._on_arrival = on_arrival
        try:
            yield
        finally:
            self._on_arrival = None

    def arrived(self) -> None:
        """Another request has been received."""
        if self._on_arrival is not None:
            self._on_arrival()


def never() -> bool:
    """False."""
    return False


def mute_nobody(until_ms: float) -> None:
    """Of a caller without a connection."""
    del until_ms


class Call:
    """One request of one caller: what its header says, and the errors that its answer holds."""

    __slots__ = ("caller", "client_id", "correlation_id", "decisions", "is_forwarded", "times", "version")

    def __init__(
        self,
        caller: Caller,
        version: int,
        correlation_id: int,
        client_id: str | None,
        times: RequestTimes,
        *,
        is_forwarded: bool = False,
    ) -> None:
        self.caller = caller
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.is_forwarded = is_forwarded
        """Whether another broker has sent it on, in an Envelope."""
        self.times = times
        self.decisions: Decisions | None = None
        """What it was allowed and refused; None without an authorizer, or before the first question."""

    @property
    def principal(self) -> Principal:
        return self.caller.principal

    @property
    def host(self) -> str:
        return self.caller.host

    @property
    def request_name(self) -> str:
        return self.times.name

    def failed(self, error: KafkaError) -> ErrorCode:
        """The code to put into the answer; counts it for the metrics."""
        times = self.times
        if times.errors is None:
            times.errors = []
        times.errors.append(error.code)
        return error.code

    def begins_again(self) -> None:
        """It is handled once more: nothing of its answer counts."""
        self.times.errors = self.decisions = None

    @property
    def errors(self) -> list[ErrorCode] | None:
        """The errors that its answer holds so far; None: none."""
        return self.times.errors


def of_partition(error: Exception, topic: str, index: int) -> KafkaError:
    """What one partition is answered whose handling has failed with this; the other partitions of the request go on.

    An error of the disk that nobody has turned into an answer is KAFKA_STORAGE_ERROR. What nobody foresaw is
    UNKNOWN_SERVER_ERROR, with the trace in the log.
    """
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, OSError):
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    logger.error("%s-%d: a request of it failed", shown(topic), index, exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{topic}-{index}: {type(error).__name__}: {error}")


Need = tuple[Operation, ResourceType]
"""An operation on resources of a type."""


@dataclass(frozen=True, slots=True)
class Api:
    """One served API: its messages, its versions, its handler, and the shape of its failure."""

    request: type[Request[Any]]
    handle: Callable[["Context", Call, Any], Awaitable[Any]]
    fail: Callable[[Any, ErrorCode], Any]
    """The API's own answer to `request` when nothing of it could be done."""
    served: tuple[int, int]
    needs: tuple[Need, ...]
    """What its callers may have to be allowed; which of it, its handler knows."""
    refuse: Callable[["Context", Call, Any, Collection[str], KafkaError], Any] | None = None
    """The answer with this error for these topics, to which the caller has lost its right while the request waited.
    None: all of the request is refused then (handling/reauthorization.py)."""
    advertised_from: int | None = None
    """The lowest version advertised, where that is lower than the lowest one served."""
    advertised_until: int | None = None
    """The highest version advertised, where that is lower than the highest one served (handling/releases.py)."""
    is_before_authentication: bool = False
    """Whether a connection may ask for it before it has said who it is."""
    is_forwarded: bool = False
    """Whether a broker that is not the controller sends it on (handling/forwarding.py)."""
    is_advertised: bool = True
    is_eager: bool = False
    """Whether a request begins while others like it, of the same connection and before it, still wait for something:
    what it does before it waits is done in their order, and so are the replies (decision 003)."""
    has_records: bool = False
    """Whether its requests are large because of records, which decoding leaves as they are."""
    key: int = field(init=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.request.api_key)
        object.__setattr__(self, "name", self.request.__name__.removesuffix("Request"))

    @property
    def advertised(self) -> tuple[int, int]:
        lowest, highest = self.served
        until = highest if self.advertised_until is None else min(highest, self.advertised_until)
        return (lowest if self.advertised_from is None else self.advertised_from), until


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Who this broker is."""

    node_id: int
    cluster_id: str


@dataclass(frozen=True, slots=True)
class Sessions:
    """Of Fetches (KIP-227)."""

    consumers: FetchSessions
    followers: FollowerSessions


@dataclass(slots=True)
class Context:
    """The broker as its handlers see it. Owned by the event loop's thread."""

    identity: BrokerIdentity
    environment: Environment
    tasks: Tasks
    config: BrokerConfig
    disk: Disk
    metadata: ImageFollower
    member: ClusterMember
    partitions: Partitions
    access: Access
    sessions: Sessions
    groups: Shards[GroupMachine]
    group_counts: GroupCounts
    transactions: Transactions
    metrics: RequestMetrics
    served: Mapping[int, Api]
    authentication: "Authentication | None" = None
    """SASL, where a listener speaks it."""
    interceptors: Interceptors = field(default_factory=Interceptors)
    quotas: "Throttling | None" = None
    """While quotas of users or client ids are set: what charges requests to them."""
    enforcement: "Enforcement | None" = None
    """When the rules of `access` count; None without an authorizer."""
    starting: asyncio.Event | None = None
    """While the metadata does not show this broker yet: connections are taken, and requests begin when it is set. An
    answer from before names no broker, by which clients go astray (librdkafka waits for metadata for a minute)."""
    stopping: bool = False
    _interrupts: dict[Callable[[], None], None] = field(default_factory=dict[Callable[[], None], None])

    @contextmanager
    def starting_up(self) -> Generator[None]:
        """Within the block connections are taken, and their requests begin when it has ended well."""
        self.starting = starting = asyncio.Event()
        yield
        self.starting = None
        starting.set()

    @contextmanager
    def interruptible(self, interrupt: Callable[[], None]) -> Generator[None]:
        """Within the block, `interrupt` is called when the server stops: what waits for data answers with what it
        has."""
        self._interrupts[interrupt] = None
        try:
            yield
        finally:
            self._interrupts.pop(interrupt, None)

    @contextmanager
    def waiting(self, call: Call) -> Generator[None]:
        """The block waits for others: for data, the metadata store, another broker. One at a time in a request."""
        call.times.waits(self.environment.precise_s())
        try:
            yield
        finally:
            call.times.goes_on(self.environment.precise_s())

    def stop(self) -> None:
        """No new requests from here on; those that wait are told."""
        self.stopping = True
        self.groups.stop()
        self.transactions.stop()
        for interrupt in tuple(self._interrupts):
            interrupt()

    async def shielded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Awaits work that must not be cut short in the middle, even when the client that asked for it is gone."""
        return await asyncio.shield(self.tasks.start(work, "shielded work"))

    # -- rights -----------------------------------------------------------------------------------------------------

    def permits(self, call: Call, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        """Whether the caller may do that: for what is left out of an answer rather than refused.

        With an authorizer a request asks each question once, and again when rights have changed meanwhile.
        """
        access = self.access
        if not access.is_enforced:
            return True
        decisions = call.decisions
        if decisions is None:
            decisions = call.decisions = {}
        question, generation = (operation, resource), access.generation
        said = decisions.get(question)
        if said == generation:
            return True
        if said is not None and said == refused_in(generation):
            return False
        is_granted = access.permits(call, operation, resource, logs_refusal=logs_refusal)
        note(decisions, question, generation, is_granted=is_granted)
        return is_granted

    def require(self, call: Call, operation: Operation, resource: Resource) -> None:
        """Raises KafkaError: the AUTHORIZATION_FAILED of the resource."""
        if self.access.is_enforced and not self.permits(call, operation, resource):
            what = f"{resource.kind.name} {resource.name!r}"
            raise KafkaError(DENIED[resource.kind], f"{call.principal} may not {operation.name} {what}")

    def permits_any(self, call: Call, operation: Operation, kind: ResourceType) -> bool:
        """Whether there is any resource of the type with which the caller may do that."""
        access = self.access
        if not access.is_enforced:
            return True
        is_granted = access.permits_any(call, operation, kind)
        if call.decisions is None:
            call.decisions = {}
        note(call.decisions, (operation, kind), access.generation, is_granted=is_granted)
        return is_granted

    def permits_broker(self, call: Call) -> bool:
        """Whether the caller may say what only brokers say: by ClusterAction, where there is an authorizer; else by
        the listener, which is that on which brokers talk to one another."""
        if self.access.is_enforced:
            return self.permits(call, Operation.CLUSTER_ACTION, CLUSTER)
        return self.is_from_brokers_listener(call)

    def require_broker(self, call: Call) -> None:
        """Raises KafkaError CLUSTER_AUTHORIZATION_FAILED where nobody else's word counts for a broker's."""
        if self.access.is_enforced:
            self.require(call, Operation.CLUSTER_ACTION, CLUSTER)
        elif not self.is_from_brokers_listener(call):
            listener = call.caller.listener
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"listener {listener} is not the one of brokers")

    def is_from_brokers_listener(self, call: Call) -> bool:
        return call.caller.listener == self.member.peers.listener
