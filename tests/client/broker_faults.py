"""What can happen to a request instead of a plain answer, and to which requests it does.

    cluster.on(ProduceRequest, error(ErrorCode.NOT_ENOUGH_REPLICAS, "orders", 1), times=2)
    cluster.on(ProduceRequest, late(5_000), nth=3)
    cluster.on(MetadataRequest, edited(forget_brokers), node=0, times=None)

A request goes through: [delay_before] -> takes effect -> response -> [edits] -> [delay_after] -> bytes -> [wire] ->
written -> [end] -> [mute] -> the next request of its connection, one at a time as in Kafka. A `Fault` says what
differs; several for one request add up, in their order.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse

APPENDED_ALL_THE_SAME: Final = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
"""Errors that a leader answers after it has appended the batch."""


class Ending(Enum):
    """What the broker does with the connection after the answer."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"


@dataclass(slots=True)
class Exchange:
    """A request that came, and what became of it."""

    node_id: int
    connection: int
    """Number of the connection, over all brokers."""
    at_ms: float
    """When its last byte came, though it may have had to wait for its turn then."""
    request: Request[Any]
    version: int
    correlation_id: int
    client_id: str | None
    response: Response | None = None
    """None until the request took effect, and for acks=0."""
    answered_at_ms: float | None = None
    answer_size: int = 0
    """Bytes of the answer before a fault touched them, the length in front included."""

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """What a Produce is for."""
        if not isinstance(self.request, ProduceRequest):
            return []
        return [(topic.name, part.index) for topic in self.request.topic_data for part in topic.partition_data]


@dataclass(frozen=True)
class PartitionError:
    """An error for some partitions of a Produce: all, those of a topic, or one."""

    code: ErrorCode
    topic: str | None
    partition: int | None
    appended: bool
    message: str | None

    def is_for(self, topic: str, partition: int) -> bool:
        return self.topic in (None, topic) and self.partition in (None, partition)


@dataclass(frozen=True)
class Fault:
    """How an exchange differs from the plain one."""

    applies: bool = True
    delay_before_ms: float = 0.0
    delay_after_ms: float = 0.0
    produce_error: PartitionError | None = None
    edit: Callable[[Exchange], None] | None = None
    wire: Callable[[bytes], bytes] | None = None
    """What of the answer's bytes is written."""
    end: Ending = Ending.KEEP
    mute_ms: float = 0.0
    blocks: bool = False
    """Nothing that follows on this connection is looked at any more."""


# ------------------------------------------------------------------------------------------------------------- errors
def error(
    code: ErrorCode,
    topic: str | None = None,
    partition: int | None = None,
    *,
    appended: bool | None = None,
    message: str | None = None,
) -> Fault:
    """Answers an error: for partitions of a Produce, topics or partitions of Metadata, or the whole answer.

    `appended`: whether the batch is in the log all the same; unless given, as a real leader has it for this code.
    """
    appended = code in APPENDED_ALL_THE_SAME if appended is None else appended
    produce_error = PartitionError(code, topic, partition, appended, message)
    return Fault(produce_error=produce_error, edit=lambda exchange: _set_error(exchange, produce_error))


def _set_error(exchange: Exchange, what: PartitionError) -> None:
    response = exchange.response
    if isinstance(response, MetadataResponse):
        for topic in response.topics:
            if what.topic in (None, topic.name):
                if what.partition is None:
                    topic.error_code = what.code
                    topic.partitions = []
                for part in topic.partitions:
                    if what.partition == part.partition_index:
                        part.error_code = what.code
                        part.leader_id = -1
    elif response is not None and not isinstance(response, ProduceResponse):
        assert "error_code" in response.fields, f"{type(response).__name__} has no error of its own"
        response.error_code = what.code  # type: ignore[attr-defined]  # pyright: ignore
        if "producer_id" in response.fields:
            response.producer_id = -1  # type: ignore[attr-defined]  # pyright: ignore


# -------------------------------------------------------------------------------------------------------------- times
def late(delay_ms: float) -> Fault:
    """Takes effect at once, and answers so much later."""
    return Fault(delay_after_ms=delay_ms)


def slow(delay_ms: float) -> Fault:
    """Takes effect, and answers, so much later: even if the client has gone meanwhile."""
    return Fault(delay_before_ms=delay_ms)


def never(*, applies: bool = True) -> Fault:
    """Is not answered, nor is anything that follows on the connection."""
    return Fault(applies=applies, wire=_nothing, blocks=True)


def throttled(throttle_time_ms: int) -> Fault:
    """Answers with a throttle time, and reads nothing more from this connection for as long (KIP-219)."""

    def edit(exchange: Exchange) -> None:
        assert exchange.response is not None
        exchange.response.throttle_time_ms = throttle_time_ms  # type: ignore[attr-defined]  # pyright: ignore

    return Fault(edit=edit, mute_ms=throttle_time_ms)


# -------------------------------------------------------------------------------------------------- hostile and broken
def edited(edit: Callable[[Any], None]) -> Fault:
    """Changes the response before it is sent."""
    return Fault(edit=lambda exchange: edit(exchange.response))


def skipped() -> Fault:
    """Is not answered, though what follows is."""
    return Fault(wire=_nothing)


def twice() -> Fault:
    return Fault(wire=lambda data: data + data)


def wrong_correlation_id(by: int = 1) -> Fault:
    def wire(data: bytes) -> bytes:
        correlation_id = int.from_bytes(data[4:8], "big") + by
        return data[:4] + (correlation_id & 0x7FFFFFFF).to_bytes(4, "big") + data[8:]

    return Fault(wire=wire)


def torn(at: int, end: Ending = Ending.CLOSE) -> Fault:
    """Sends so many bytes of the answer, and closes the connection, or (KEEP) says nothing more on it."""
    return Fault(wire=lambda data: data[:at], end=end, blocks=end is Ending.KEEP)


def cut_body(by: int = 1) -> Fault:
    """A frame that is whole, and too short for its content."""
    return Fault(wire=lambda data: _framed(data[4 : len(data) - by]))


def trailing(more: bytes = b"\0") -> Fault:
    """A frame that is whole, with bytes behind its content."""
    return Fault(wire=lambda data: _framed(data[4:] + more))


def length(size: int) -> Fault:
    """Announces another length: negative, or of gigabytes."""
    return Fault(wire=lambda data: size.to_bytes(4, "big", signed=True) + data[4:])


def garbage(data: bytes) -> Fault:
    """Answers these bytes."""
    return Fault(wire=lambda _: data)


def disconnect_before(end: Ending = Ending.CLOSE) -> Fault:
    """Closes the connection without doing anything."""
    return Fault(applies=False, wire=_nothing, end=end)


def disconnect_after(end: Ending = Ending.CLOSE) -> Fault:
    """Does what was asked, and closes the connection without an answer."""
    return Fault(wire=_nothing, end=end)


def _nothing(data: bytes) -> bytes:
    return b""


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


# -------------------------------------------------------------------------------------------------------------- rules
class Rule:
    """Faults, and the requests that they happen to. `hits`: the exchanges that they happened to."""

    def __init__(
        self,
        request_type: type[Request[Any]],
        faults: tuple[Fault, ...],
        *,
        nth: int,
        times: int | None,
        node: int | None,
        topic: str | None,
        partition: int | None,
    ) -> None:
        self.request_type = request_type
        self.faults = faults
        self.node = node
        self.topic = topic
        self.partition = partition
        self.hits: list[Exchange] = []
        self._left_out = nth - 1
        self._times_left = times

    def take(self, exchange: Exchange) -> tuple[Fault, ...]:
        """The faults for this request; none when it is not meant."""
        if not self._is_meant(exchange) or self._times_left == 0:
            return ()
        if self._left_out:
            self._left_out -= 1
            return ()
        if self._times_left is not None:
            self._times_left -= 1
        self.hits.append(exchange)
        return self.faults

    def cancel(self) -> None:
        """It happens no more."""
        self._times_left = 0

    def _is_meant(self, exchange: Exchange) -> bool:
        if not isinstance(exchange.request, self.request_type) or self.node not in (None, exchange.node_id):
            return False
        if self.topic is None and self.partition is None:
            return True
        return any(
            self.topic in (None, topic) and self.partition in (None, partition)
            for topic, partition in exchange.partitions
        )
