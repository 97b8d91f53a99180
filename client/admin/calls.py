"""How Admin asks: which broker, at which version, how often, and until when.

Every call has one deadline. Within it a broker that cannot be reached, a lost connection, and errors that pass are met
by asking again, after a backoff and with newer metadata: the controller or a leader may be another one by then. That is
done `retries` times at most. What was answered for good is not asked for again, so the items of a call settle one by
one.

A request whose answer was lost may have been carried out. It is made again nevertheless: nothing that Admin asks for
does harm twice, and its callers know how to read TOPIC_ALREADY_EXISTS and UNKNOWN_TOPIC_OR_PARTITION then.

(Source: KafkaAdminClient.java: Call, `handleNotControllerError`; AdminApiDriver.java.)
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from odradek.client.admin.errors import ItemsFailed
from odradek.client.cluster.cluster import CONTROLLER, Cluster
from odradek.client.errors.client_errors import ClientError, RequestTimedOut, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.connection import Connection
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.environment import Environment

__all__ = ["Again", "Calls", "Deadline", "UnknownBroker"]

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)
K = TypeVar("K")
V = TypeVar("V")

PASSING: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors of an item that asking again can cure. Not among them: UNKNOWN_TOPIC_OR_PARTITION, which is an answer here,
and REQUEST_TIMED_OUT, by which a controller says that it has begun and could not wait for the end."""


class Deadline(NamedTuple):
    """When a call ends, on the loop's clock, and how long it was given."""

    at_ms: float
    timeout_ms: float


class Again(NamedTuple):
    """The outcome of an item that asking again can cure, though its error alone does not tell."""

    error: ClientError


class UnknownBroker(ClientError):
    """The cluster has no broker with this id."""

    hint = "Name one that describe_cluster lists."

    def __init__(self, node_id: int) -> None:
        super().__init__(f"the cluster has no broker {node_id}")


class Calls:
    """Questions to one cluster."""

    def __init__(
        self, cluster: Cluster, environment: Environment, *, request_timeout_ms: float, backoff: Backoff, retries: int
    ) -> None:
        self._cluster = cluster
        self._environment = environment
        self._request_timeout_ms = request_timeout_ms
        self._backoff = backoff
        self._retries = retries

    def deadline(self, timeout_ms: float) -> Deadline:
        return Deadline(self._environment.monotonic_ms() + timeout_ms, timeout_ms)

    def remaining_ms(self, deadline: Deadline) -> float:
        """The time that is left for one request. Raises RequestTimedOut when there is none."""
        left_ms = deadline.at_ms - self._environment.monotonic_ms()
        if left_ms <= 0:
            raise RequestTimedOut("a call of Admin", "the cluster", deadline.timeout_ms)
        return min(left_ms, self._request_timeout_ms)

    # ------------------------------------------------------------------------------------------ one question
    async def ask(
        self,
        request: Request[R],
        deadline: Deadline,
        *,
        node: int | None = None,
        at_least: int = 0,
        at_most: int | None = None,
    ) -> R:
        """Asks a broker, the CONTROLLER, or (None) the least loaded broker, once.

        `at_least`: the version that the request needs; `at_most`: the last one that carries it.

        Raises ClientError, also for a request that holds what its version cannot carry; after a retriable one the
        request may have been carried out nevertheless.
        """
        await self._require_known(node, deadline)
        return await self._cluster.ask_once(request, deadline.at_ms, node=node, at_least=at_least, at_most=at_most)

    async def connect(self, node: int | None, deadline: Deadline) -> Connection:
        """An open connection to a broker, the CONTROLLER, or (None) the least loaded broker.

        Raises ClientError, before anything of a call has been sent there.
        """
        await self._require_known(node, deadline)
        return await self._cluster.connection_to(node, deadline.at_ms)

    async def ask_until(self, request: Request[R], deadline: Deadline) -> R:
        """Asks the least loaded broker, until one has answered."""
        return await self.until("", lambda: self.ask(request, deadline), deadline)

    async def until(self, what: str, once: Callable[[], Awaitable[V]], deadline: Deadline) -> V:
        """What `once` has come to, tried until it comes to something. `what`: the call, for logs."""

        async def attempt(_: list[str]) -> Mapping[str, V]:
            return {"": await once()}

        return (await self.complete(what, [""], attempt, deadline))[""]

    async def _require_known(self, node: int | None, deadline: Deadline) -> None:
        """A broker that nobody here knows may be new. Raises UnknownBroker."""
        if node is None or node == CONTROLLER or self._cluster.metadata.node(node) is not None:
            return
        response = await self.ask(MetadataRequest(topics=[]), deadline)
        if all(broker.node_id != node for broker in response.brokers):
            raise UnknownBroker(node)
        self._cluster.metadata.request_update()

    # ------------------------------------------------------------------------------------------ until it is settled
    async def complete(
        self,
        what: str,
        items: Iterable[K],
        attempt: Callable[[list[K]], Awaitable[Mapping[K, V | ClientError | Again]]],
        deadline: Deadline,
    ) -> dict[K, V]:
        """Attempts until every item has its result or its error, and returns the results.

        After `retries` repetitions, of which one without a connection is one, too, the last errors stand. Raises
        ItemsFailed when items have failed, and what `attempt` raises when that is all that came of the call.
        """
        wanted: list[K] = list(dict.fromkeys(items))
        pending: list[K] = wanted
        results: dict[K, V] = {}
        errors: dict[K, ClientError] = {}
        failures = 0
        while pending:
            raised: ClientError | None = None
            outcomes: Mapping[K, V | ClientError | Again] = {}
            again: list[K] = []
            try:
                outcomes = await attempt(pending)
            except ClientError as error:
                raised = error
            for item in pending:
                outcome = raised if raised is not None else outcomes[item] if item in outcomes else _missing(what, item)
                if isinstance(outcome, Again | ClientError):
                    errors[item] = failure = outcome.error if isinstance(outcome, Again) else outcome
                    if isinstance(outcome, Again) or _passes(failure):
                        again.append(item)
                else:
                    results[item] = outcome
                    errors.pop(item, None)
            pending = again
            wait_ms = self._backoff.after_ms(failures)
            failures += 1
            is_over = failures > self._retries or self._environment.monotonic_ms() + wait_ms >= deadline.at_ms
            if raised is not None and not results and (is_over or not pending):
                raise raised
            if is_over:
                break
            if pending:
                logger.debug("%s is tried again for %d item(s), in %.0f ms", what, len(pending), wait_ms)
                self._cluster.metadata.request_update()
                await self._environment.sleep(wait_ms)
        if errors:
            raise ItemsFailed(what, {item: errors[item] for item in wanted if item in errors}, results)
        return {item: results[item] for item in wanted}


class ControllerCall:
    """A call of the controller, which may ask it more than once."""

    def __init__(self, calls: Calls, deadline: Deadline, at_least: int = 0) -> None:
        """`at_least`: the version that its requests need."""
        self._calls = calls
        self._deadline = deadline
        self._at_least = at_least
        self.answer_was_lost = False
        """What was asked for may have been done: what an answer says of it may be of this call's own doing."""

    async def ask(self, request: Request[R]) -> R:
        """Raises ClientError."""
        try:
            return await self._calls.ask(request, self._deadline, node=CONTROLLER, at_least=self._at_least)
        except ClientError:
            self.answer_was_lost = True
            raise


def _passes(error: ClientError) -> bool:
    return error.code in PASSING or isinstance(error, RequestTimedOut)


def _missing(what: str, item: object) -> ClientError:
    return broker_error(ErrorCode.UNKNOWN_SERVER_ERROR, "", f"{what} of {item}, which the answer leaves out,")
