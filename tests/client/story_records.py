"""The records of a story: how each is sent, what became of it, and an interceptor that keeps count of them."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.results.delivery import Ack, Delivery

KEYS = 5
"""So many keys there are."""


class Manner(NamedTuple):
    """A way of sending: by which call, to where, with what, and how patiently."""

    call: Literal["send", "send_nowait", "send_batch"] = "send"
    """Where `send_nowait` would have to wait, `send` follows, as a program would do it."""
    aim: Literal["partition", "key", "nothing"] = "partition"
    has_headers: bool = False
    """They are given as an iterator, which can be read once."""
    cancel_after_turns: int = 0
    """Every other group of records is sent in a task that is cancelled so many turns of the loop later; 0: none is."""


PLAIN = Manner()


class Record:
    """A record that was sent, and what became of it. `sender`: records of one sender are sent one after the other."""

    def __init__(self, number: int, partition: int, sender: int, manner: Manner) -> None:
        self.number = number
        self.partition = partition
        """Where it was told to go; -1: nowhere."""
        self.sender = sender
        self.value = b"%d:%06d" % (partition, number)
        self.key = b"key %d" % (number % KEYS) if manner.aim == "key" else None
        self.headers: tuple[tuple[str, bytes | None], ...] = ()
        if manner.has_headers:
            self.headers = (("number", b"%d" % number), ("empty", None))
        self.delivery: Delivery | None = None
        self.accepted_ms = 0.0
        self.ended_ms: list[float] = []
        self.refusal: ClientError | None = None
        """Why it was not accepted, or failed in a bulk."""
        self.bulk_ack: Ack | None = None
        self.is_cancelled = False
        """Its `send` was."""
        self.detours = 0
        """How often `send_nowait` would have had to wait."""

    def __repr__(self) -> str:
        return self.value.decode()

    @property
    def arguments(self) -> dict[str, Any]:
        """What `send` is given beside the value."""
        arguments: dict[str, Any] = {}
        if self.partition >= 0:
            arguments["partition"] = self.partition
        if self.key is not None:
            arguments["key"] = self.key
        if self.headers:
            arguments["headers"] = iter(self.headers)
        return arguments

    @property
    def error(self) -> BaseException | None:
        return self.refusal if self.delivery is None else self.delivery.exception()

    @property
    def ack(self) -> Ack | None:
        if self.delivery is None:
            return self.bulk_ack
        return None if self.error is not None else self.delivery.result()


class Audit(Interceptor):
    """Reads every record to its end, and counts how many of them it was told the end of."""

    def __init__(self) -> None:
        self.seen: Counter[bytes] = Counter()
        self.headers_read = 0
        self.ended = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.seen[record.value] += 1
        self.headers_read += len(list(record.headers))
        return record

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        self.ended += 1

    def check(self, records: list[Record]) -> None:
        """It was told of every record that it saw, but for those whose `send` was cancelled while it waited."""
        told = sum(record.detours if record.is_cancelled else self.seen[record.value] for record in records)
        assert self.ended == told, f"{self.ended} ends of {told} records"


def columns(records: list[Record], manner: Manner) -> dict[str, Iterator[Any]]:
    """What `send_batch` is given for these."""
    given: dict[str, Iterator[Any]] = {"values": (record.value for record in records)}
    if manner.aim == "key":
        given["keys"] = (record.key for record in records)
    if manner.has_headers:
        given["headers"] = (iter(record.headers) for record in records)
    return given
