"""A fault as data: what it does, to which requests, how often. It survives JSON: a cluster may be in another process.

    Fault(kind=Kind.FAIL, match=match_of(api="Produce", topic="orders"), error=ErrorCode.REQUEST_TIMED_OUT, times=3)

| kind | what becomes of a request | uses |
|---|---|---|
| FAIL | it is answered with the error; of named partitions only they are, and the others are handled | `error` |
| DELAY | it, or its answer, waits | `delay_ms`, `where` |
| DROP | it is not handled and not answered; or handled and not answered | `where` |
| DISCONNECT | its connection is closed, before it is handled or behind that | `where` |
| HALF_OPEN | from it on nothing of its connection is handled or answered, and the connection stays open | |
| HOLD | it, or its answer, waits until the test lets it go | `where` |
| CORRUPT | records of a Fetch have a CRC that is wrong; the answer of another API cannot be read | |
| THROTTLE | its answer says that the client has to wait, and the connection is muted so long (KIP-219) | `delay_ms` |
| STALL_FOLLOWER | followers get nothing of a partition, and leave the in-sync set | `follower` |
| INTERCEPT | a function of the test decides; this one is no data | |
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, Self

from odradek.broker.served import SERVED
from odradek.protocol.errors import ErrorCode

__all__ = ["Fault", "FaultRefused", "Kind", "Match", "Where", "error_code", "match_of"]

API_NAMES: Final = {api.key: api.name for api in SERVED}
DELAY_MS_MAX: Final = 3_600_000.0


class FaultRefused(ValueError):
    """A fault cannot be as it was asked for; the text says why."""


class Kind(StrEnum):
    FAIL = "fail"
    DELAY = "delay"
    DROP = "drop"
    DISCONNECT = "disconnect"
    HALF_OPEN = "half_open"
    HOLD = "hold"
    CORRUPT = "corrupt"
    THROTTLE = "throttle"
    STALL_FOLLOWER = "stall_follower"
    INTERCEPT = "intercept"


class Where(StrEnum):
    """On which side of the handler."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which requests are meant: those of which all that is not None is so. Made by `match_of`."""

    api: str | None = None
    broker: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    """May hold `*` and `?`, as file names in a shell."""
    group: str | None = None
    transactional_id: str | None = None
    brokers_too: bool = False
    """Whether requests of brokers among themselves are meant, too; else they are left out."""

    def __str__(self) -> str:
        parts = [self.api or "every request"]
        if self.topic is not None:
            parts.append(f"of {self.topic}" if self.partition is None else f"of {self.topic}-{self.partition}")
        if self.group is not None:
            parts.append(f"of group {self.group}")
        if self.transactional_id is not None:
            parts.append(f"of transactional id {self.transactional_id}")
        if self.client_id is not None:
            parts.append(f"of client {self.client_id}")
        if self.broker is not None:
            parts.append(f"at broker {self.broker}")
        if self.brokers_too:
            parts.append("(brokers' too)")
        return " ".join(parts)


def match_of(
    *,
    api: str | int | None = None,
    broker: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    client_id: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    brokers_too: bool = False,
) -> Match:
    """`api`: a name as "Produce", or its key. Raises FaultRefused."""
    if partition is not None and topic is None:
        raise FaultRefused(f"partition {partition} is named without its topic: add topic=…")
    name = None if api is None else _api_name(api)
    return Match(
        api=name,
        broker=broker,
        topic=topic,
        partition=partition,
        client_id=client_id,
        group=group,
        transactional_id=transactional_id,
        brokers_too=brokers_too,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """See the module."""

    kind: Kind
    match: Match
    error: ErrorCode | None = None
    delay_ms: float = 0.0
    times: int | None = None
    """To so many requests it is applied; None: to all."""
    where: Where = Where.REQUEST
    follower: int | None = None
    """The broker that is stalled; None: each follower."""

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise FaultRefused(f"times is {self.times}, and has to be 1 or more, or None for every time")
        if not 0 <= self.delay_ms <= DELAY_MS_MAX:
            raise FaultRefused(f"ms is {self.delay_ms:g}, and has to be from 0 to {DELAY_MS_MAX:g}")
        if self.kind is Kind.STALL_FOLLOWER and self.match.topic is None:
            raise FaultRefused("a follower is stalled by topic: add topic=…")

    def __str__(self) -> str:
        what, answer = self.match, "the answer to " if self.where is Where.ANSWER else ""
        match self.kind:
            case Kind.FAIL:
                assert self.error is not None
                return f"fail {what} with {self.error.name}"
            case Kind.DELAY:
                return f"delay {answer}{what} by {self.delay_ms:g} ms"
            case Kind.DROP | Kind.HOLD:
                return f"{self.kind} {answer}{what}"
            case Kind.DISCONNECT:
                return f"disconnect {'behind' if answer else 'at'} {what}"
            case Kind.HALF_OPEN:
                return f"half-open connections from {what} on"
            case Kind.CORRUPT:
                return f"corrupt {'records' if self.corrupts_records else 'the answer'} of {what}"
            case Kind.THROTTLE:
                return f"throttle {what} by {self.delay_ms:g} ms"
            case Kind.STALL_FOLLOWER:
                who = "followers" if self.follower is None else f"broker {self.follower} as a follower"
                name = what.topic if what.partition is None else f"{what.topic}-{what.partition}"
                return f"stall {who} of {name}"
            case Kind.INTERCEPT:
                return f"intercept {what}"

    @property
    def corrupts_records(self) -> bool:
        return self.kind is Kind.CORRUPT and self.match.api == "Fetch"

    @property
    def corrupts_replies(self) -> bool:
        return self.kind is Kind.CORRUPT and self.match.api != "Fetch"

    def text(self, count: int) -> str:
        """With how often it was applied so far."""
        return f"{self}, {count} time(s)" if self.times is None else f"{self}, {count} of {self.times} time(s)"

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """Of what `to_json` gave. Raises FaultRefused, ValueError, TypeError."""
        values = dict(told)
        values["kind"], values["where"] = Kind(told["kind"]), Where(told["where"])
        values["match"] = Match(**told["match"])
        if told["error"] is not None:
            values["error"] = ErrorCode(told["error"])
        return cls(**values)


def error_code(error: ErrorCode | str | int) -> ErrorCode:
    """By its name, in either case, or its number. Raises FaultRefused."""
    if isinstance(error, str):
        name = error.upper()
        if name not in ErrorCode.__members__:
            raise FaultRefused(f"Kafka has no error {error!r}{_nearest(name, ErrorCode.__members__)}")
        found = ErrorCode[name]
    else:
        try:
            found = ErrorCode(error)
        except ValueError:
            raise FaultRefused(f"Kafka has no error with the number {error}") from None
    if found is ErrorCode.NONE:
        raise FaultRefused("NONE is no error: to answer a request without handling it, use intercept")
    return found


def _api_name(api: str | int) -> str:
    """Raises FaultRefused."""
    if isinstance(api, int):
        if api not in API_NAMES:
            raise FaultRefused(f"no API with the key {api} is served; served are {sorted(API_NAMES)}")
        return API_NAMES[api]
    by_lower = {name.lower(): name for name in API_NAMES.values()}
    if (name := by_lower.get(api.lower())) is None:
        raise FaultRefused(f"no API {api!r} is served{_nearest(api, API_NAMES.values())}")
    return name


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.4)
    return f"; the nearest is {near[0]}" if near else ""
