"""The client's errors: one tree under `ClientError`, each saying what happened, to what, and what to do next.

Every error has `retriable` (the same call may succeed later), `fatal` (this client will not succeed again before its
settings, rights or versions change), `code` (Kafka's, where there is one), `broker_message` (the broker's own words)
and `hint`. Constructors take facts and make the sentence.

    BrokerError          a broker answered with an error code; `broker_error` picks the class
      AuthorizationError, InvalidTopic, UnknownTopic, TopicExists, NotEnoughReplicas, RecordRefused, SequenceError,
      ProducerFenced, RecordTooLarge, UnsupportedVersion (both are also found before anything is sent)
    ConnectionFailed, RequestTimedOut, MalformedResponse, AuthenticationFailed        between client and broker
    ConfigError, SerializationError, InvalidPartition, PartitionerFailed              what the caller handed in
    BufferFull, BufferExhausted, MetadataMissing, MetadataTimeout, DeliveryTimeout    no room or time left
    UndeliveredRecords, BatchError                                                    reports about many records
    WrongUse             a call at the wrong time or place: ClientNotStarted, ClientClosed, WrongLoop, DeliveryPending

One error often ends thousands of records, and whoever raises an exception object adds to its traceback. So an error
that is kept is never raised itself but by `raise error.fresh()`. Errors survive pickling and copying.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from odradek.client.errors.base import ClientError, printable
from odradek.client.errors.broker_errors import (
    AuthenticationFailed,
    AuthorizationError,
    BrokerError,
    InvalidTopic,
    NotEnoughReplicas,
    ProducerFenced,
    RecordRefused,
    RecordTooLarge,
    SequenceError,
    TopicExists,
    UnknownTopic,
    UnsupportedVersion,
    broker_error,
)
from odradek.protocol.errors import ErrorCode

__all__ = [
    "AuthenticationFailed",
    "AuthorizationError",
    "BatchError",
    "BrokerError",
    "BufferExhausted",
    "BufferFull",
    "ClientClosed",
    "ClientError",
    "ClientNotStarted",
    "ConfigError",
    "ConnectionFailed",
    "DeliveryPending",
    "DeliveryTimeout",
    "InvalidPartition",
    "InvalidTopic",
    "MalformedResponse",
    "MetadataMissing",
    "MetadataTimeout",
    "NotEnoughReplicas",
    "PartitionerFailed",
    "ProducerClosed",
    "ProducerFenced",
    "ProducerNotStarted",
    "RecordRefused",
    "RecordTooLarge",
    "RequestTimedOut",
    "SequenceError",
    "SerializationError",
    "TopicExists",
    "UndeliveredRecords",
    "UnknownTopic",
    "UnsupportedVersion",
    "WrongLoop",
    "WrongUse",
    "broker_error",
]


# ---------------------------------------------------------------------------------------- between client and broker
class ConnectionFailed(ClientError):
    """No connection could be opened, or one was lost; what was in flight may have been carried out.

    `broker`: such as "broker 1 (localhost:9092)".
    """

    retriable = True
    code = ErrorCode.NETWORK_EXCEPTION
    hint = "Look whether the broker runs and can be reached; the client tries again by itself while there is time."

    def __init__(self, broker: str, why: str = "it was closed by the other side") -> None:
        super().__init__(f"the connection to {broker} failed: {printable(why)}")
        self.broker = broker


class RequestTimedOut(ClientError):
    """No answer within the time given. The connection is closed, since answers come in the order of requests."""

    retriable = True
    code = ErrorCode.REQUEST_TIMED_OUT
    hint = "Look at the load of the broker and the network, or raise request_timeout_ms."

    def __init__(self, request: str, broker: str, timeout_ms: float) -> None:
        super().__init__(f"{broker} has not answered {request} within {timeout_ms:.0f} ms")
        self.broker = broker


class MalformedResponse(ClientError):
    """Bytes that are no answer to what was asked. The connection is closed: nothing behind them can be trusted."""

    retriable = True
    code = ErrorCode.NETWORK_EXCEPTION
    hint = "Check that a Kafka broker listens there, with this security_protocol, and what stands in between."

    def __init__(self, request: str, broker: str, why: str) -> None:
        super().__init__(f"{broker} answered {request} with bytes that are no valid response: {printable(why)}")
        self.broker = broker


# ---------------------------------------------------------------------------------------- what the caller handed in
class ConfigError(ClientError, ValueError):
    """A setting that is refused. `settings`: the names of all that take part."""

    def __init__(self, message: str, *, settings: Sequence[str] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.settings = tuple(settings)


class SerializationError(ClientError):
    """A key, value or header could not be made bytes; the serializer's own error is the `__cause__`.

    `setting`: "key_serializer", "value_serializer" or "headers". `serializer`: its name, empty where none is set.
    """

    def __init__(self, topic: str, setting: str, value: object, why: str, serializer: str = "") -> None:
        part = setting.removesuffix("_serializer")
        kind = type(value).__name__
        by = f" by {serializer} ({setting})" if serializer else ""
        if setting == "headers":
            hint = "Hand in a sequence of pairs, such as [('trace', b'1')]."
        elif serializer:
            hint = f"Hand in what {serializer} takes, or set {setting} to one that takes {kind}."
        else:
            hint = f"Hand in bytes, or set {setting} to a function that makes bytes of {kind}."
        super().__init__(f"the {part} of a record for {topic}, a {kind}, cannot be serialized{by}: {why}", hint=hint)
        self.topic = topic
        self.setting = setting
        self.serializer = serializer


class InvalidPartition(ClientError):
    """A partition that the topic does not have. `chosen_by`: "the record", or the class of the partitioner."""

    def __init__(self, topic: str, partition: object, partition_count: int, chosen_by: str = "the record") -> None:
        super().__init__(
            f"{chosen_by} names partition {partition!r} of {topic}, which has 0 to {partition_count - 1}",
            hint="Name one of these, or none.",
        )
        self.topic = topic
        self.partition = partition
        self.partition_count = partition_count


class PartitionVanished(ClientError):
    """Records waited for a partition of a topic that was deleted meanwhile, and created again with fewer."""

    def __init__(self, topic: str, partition: int, partition_count: int, record_count: int) -> None:
        super().__init__(
            f"{record_count} record(s) for {topic}-{partition} were not delivered: the topic was deleted, and created "
            f"again with {partition_count} partition(s)",
            hint="Send them again; with a key, they go to one of those that there are now.",
        )
        self.topic = topic
        self.partition = partition
        self.partition_count = partition_count


class PartitionerFailed(ClientError):
    """The user's partitioner raised an error, which is the `__cause__`."""

    def __init__(self, topic: str, partitioner: str, why: Exception) -> None:
        super().__init__(
            f"{partitioner} failed for a record of {topic}: {type(why).__name__}: {why}",
            hint="Look at the partitioner; the record was not accepted.",
        )
        self.topic = topic


# ---------------------------------------------------------------------------------------------- no room or time left
class BufferFull(ClientError):
    """`send_nowait` would have had to wait: there is no room, or others wait for it already."""

    retriable = True
    hint = "Use `await send()`, which waits, send less at a time, or raise buffer_memory."

    def __init__(self, size_bytes: int, free_bytes: int, waiting: int = 0) -> None:
        queue = f", and {waiting} other(s) wait before it" if waiting else ""
        super().__init__(f"a record needs {size_bytes} bytes of buffer_memory, of which {free_bytes} are free{queue}")
        self.size_bytes = size_bytes
        self.free_bytes = free_bytes
        self.waiting = waiting


class BufferExhausted(ClientError):
    """No room came free in time: the broker takes less than the program makes. The record was not accepted."""

    retriable = True
    hint = "Send more slowly, look why the broker is slow, or raise buffer_memory or max_block_ms."

    def __init__(self, topic: str, size_bytes: int, limit_bytes: int, timeout_ms: float) -> None:
        super().__init__(
            f"a record for {topic} waited {timeout_ms:.0f} ms (max_block_ms) in vain for {size_bytes} bytes of "
            f"buffer_memory ({limit_bytes} bytes)"
        )
        self.topic = topic
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class MetadataMissing(ClientError):
    """Nothing is known of the topic yet; it has been asked for now."""

    retriable = True
    hint = "Call `await prepare(topic)` first, use `await send()`, or try again in a moment."

    def __init__(self, topic: str) -> None:
        super().__init__(f"the partitions of {topic} are not known yet")
        self.topic = topic


class MetadataTimeout(ClientError):
    """What must be known of a topic was not learned in time. `why`: the last reason, if one is known."""

    retriable = True
    code = ErrorCode.REQUEST_TIMED_OUT
    hint = "Check bootstrap_servers, the topic's name and the right to describe it, or raise max_block_ms."

    def __init__(self, topic: str, timeout_ms: float, why: str = "") -> None:
        reason = f": {why}" if why else ""
        super().__init__(f"the partitions of {topic} were not learned within {timeout_ms:.0f} ms{reason}")
        self.topic = topic


class DeliveryTimeout(ClientError):
    """A record was not acknowledged within `delivery_timeout_ms`. `was_sent`: it may be in the log nevertheless."""

    retriable = True
    code = ErrorCode.REQUEST_TIMED_OUT

    def __init__(
        self,
        topic: str,
        partition: int,
        timeout_ms: float,
        *,
        was_sent: bool = False,
        last_error: ClientError | None = None,
    ) -> None:
        state = "it was sent and may be in the log" if was_sent else "it was not sent"
        last = f"; the last try failed with: {last_error.message}" if last_error is not None else ""
        super().__init__(
            f"a record for {topic}-{partition} was not acknowledged within {timeout_ms:.0f} ms (delivery_timeout_ms); "
            f"{state}{last}",
            hint=(last_error.hint if last_error is not None else "")
            or "Look whether the leader of the partition can be reached, or raise delivery_timeout_ms.",
        )
        self.topic = topic
        self.partition = partition
        self.was_sent = was_sent
        self.last_error = last_error


# ------------------------------------------------------------------------------------------ reports about many records
class UndeliveredRecords(ClientError):
    """Records failed and nobody has looked at them. `errors`: (topic, partition, error) of the first of `count`."""

    hint = "Await the deliveries, or pass on_delivery, to learn of each."

    def __init__(self, count: int, errors: Sequence[tuple[str, int, ClientError]] = ()) -> None:
        shown = "; ".join(f"{topic}-{partition}: {error.message}" for topic, partition, error in errors[:3])
        more = " and more" if count > len(errors[:3]) and shown else ""
        super().__init__(f"{count} record(s) were not delivered{': ' if shown else ''}{shown}{more}")
        self.count = count
        self.errors = tuple(errors)
        self.retriable = bool(errors) and all(error.retriable for _, _, error in errors)


class BatchError(ClientError):
    """Records of `send_batch` failed, or it stopped before it had taken all of them.

    `acks`: by index, of those that were acknowledged. `errors`: by index, of those that failed or were refused.
    `unsent`: the indexes of those that were taken from the iterables and not accepted any more. `stopped_by`: why it
    stopped, None if it went on to the end; `__cause__` is that error as it was raised.
    """

    def __init__(
        self,
        acks: Sequence[Any],
        errors: Mapping[int, ClientError],
        unsent: Sequence[int] = (),
        stopped_by: Exception | None = None,
    ) -> None:
        if stopped_by is not None and not isinstance(stopped_by, ClientError):
            stopped_by = ClientError(f"{type(stopped_by).__name__}: {stopped_by}")
        first = min(errors, default=None)
        shown = f"; the first, at index {first}: {errors[first].message}" if first is not None else ""
        failed = f"{len(errors)} of {len(acks)} records failed{shown}"
        hint = "`errors` has the reason by index; send those again whose error is retriable"
        if stopped_by is not None:
            failed = (
                f"sending stopped: {stopped_by.message}. Of {len(acks)} records that were taken until then, "
                f"{len(unsent)} were not accepted and {len(errors)} failed{shown}"
            )
            hint += ", and those in `unsent`, after whatever made it stop"
        super().__init__(failed, hint=f"{hint}.")
        self.acks = acks
        self.errors = errors
        self.unsent = unsent
        self.stopped_by = stopped_by
        reasons = [*errors.values(), *([] if stopped_by is None else [stopped_by])]
        self.retriable = bool(reasons) and all(error.retriable for error in reasons)
        self.fatal = any(error.fatal for error in reasons)

    def __reduce__(self) -> tuple[Any, ...]:
        # The sequence of acks belongs to a producer; its acks may travel.
        missing = {*self.errors, *self.unsent}
        acks = tuple(None if index in missing else self.acks[index] for index in range(len(self.acks)))
        restore, (kind, arguments, state) = super().__reduce__()
        return restore, (kind, arguments, {**state, "acks": acks, "errors": dict(self.errors)})


# -------------------------------------------------------------------------------------- calls at a wrong time or place
class WrongUse(ClientError):
    """A call that can never succeed where or when it was made: a mistake in the program."""


class ClientNotStarted(WrongUse):
    """Use before `start()`."""

    hint = "Use it in an `async with` block, or call `await start()` first."

    def __init__(self, client: str = "client") -> None:
        super().__init__(f"this {client} has not been started")


class ProducerNotStarted(ClientNotStarted):
    """The producer was used before `start()`."""

    def __init__(self) -> None:
        super().__init__("producer")


class ClientClosed(WrongUse):
    """Use after `close()`. `why`: what became of the record or call, where there was one."""

    hint = "Use a client before it is closed; a new one can be made at any time."

    def __init__(self, client: str = "client", why: str = "") -> None:
        super().__init__(why or f"this {client} is closed")


class ProducerClosed(ClientClosed):
    """The producer is closed; or it was closed before a record was acknowledged, which `why` says."""

    def __init__(self, why: str = "") -> None:
        super().__init__("producer", why)


class WrongLoop(WrongUse):
    """Use from another event loop, another thread, or a forked child: `where`, such as "in another thread"."""

    hint = "Use a client in the event loop that started it; other threads have send_threadsafe; a child makes its own."

    def __init__(self, client: str = "client", where: str = "in another event loop") -> None:
        super().__init__(f"this {client} was used {where}")


class DeliveryPending(WrongUse):
    """The outcome of a record was asked for before it had one."""

    hint = "Await the delivery, or ask `done()` first."

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(f"the record for {topic}-{partition} has not ended yet")
