"""The requests that clients have sent, as a test looks at them: filtered, ordered, and with assertions that show them.

kafka.requests(api="Metadata").at_most(10, within_s=10)
kafka.requests(api="OffsetCommit").before(kafka.requests(api="Produce", topic="bills")).none()
kafka.requests(api="OffsetCommit").commit_only(processed)
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self, overload

from odradek.broker.served import SERVED
from odradek.protocol.codec.codec import decode, encode
from odradek.testing.faults.processed_records import ProcessedRecords
from odradek.testing.faults.request_fields import groups_in, transactional_ids_in

__all__ = ["RecordedRequest", "Requests", "UnexpectedRequests", "begin_of"]

SHOWN_MAX: Final = 20
TOPICS_SHOWN_MAX: Final = 5


class UnexpectedRequests(AssertionError):
    """Clients have sent other requests than a test expects; the text shows them."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request of a client, as it came to a broker."""

    at_s: float
    """When it was received: seconds of CLOCK_MONOTONIC, which is `time.monotonic` where nothing freezes that."""
    broker: int
    api: str
    version: int
    client_id: str | None
    peer: str
    """HOST:PORT of the client's end of the connection."""
    request: Any
    """The decoded request. Of a Produce's records it has the header of the batch: 61 bytes, which say how many."""
    topics: tuple[tuple[str, int | None], ...] = ()
    """The topics and partitions that it names, in its order, also where it names them by id; None where it names a
    topic without partitions."""

    def __str__(self) -> str:
        """Without its time."""
        about = [topic if index is None else f"{topic}-{index}" for topic, index in self.topics]
        left_out = f", … {len(about) - TOPICS_SHOWN_MAX} more" if len(about) > TOPICS_SHOWN_MAX else ""
        parts = [f"{self.api} v{self.version} at broker {self.broker} of client {self.client_id!r} from {self.peer}"]
        if about:
            parts.append(f"of {', '.join(about[:TOPICS_SHOWN_MAX])}{left_out}")
        if groups := [each for each in groups_in(self.request) if each]:
            parts.append(f"of group {', '.join(groups)}")
        if ids := [each for each in transactional_ids_in(self.request) if each]:
            parts.append(f"of transactional id {', '.join(ids)}")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        body = base64.b64encode(encode(self.request, self.version)).decode()
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"request": body}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """Of what `to_json` gave."""
        [kind] = [each.request for each in SERVED if each.name == told["api"]]
        values = dict(told)
        values["request"] = decode(kind, told["version"], base64.b64decode(told["request"]))
        values["topics"] = tuple((topic, index) for topic, index in told["topics"])
        return cls(**values)


class Requests(Sequence[RecordedRequest]):
    """Recorded requests in the order in which they came. Its assertions return it, to be followed by others."""

    def __init__(self, requests: Iterable[RecordedRequest], what: str) -> None:
        """`what`: which ones these are, for people."""
        self._requests = sorted(requests, key=lambda each: each.at_s)
        self._what = what

    @overload
    def __getitem__(self, index: int) -> RecordedRequest: ...
    @overload
    def __getitem__(self, index: slice) -> "Requests": ...
    def __getitem__(self, index: int | slice) -> "RecordedRequest | Requests":
        if isinstance(index, int):
            return self._requests[index]
        return Requests(self._requests[index], f"some of the {self._what}")

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[RecordedRequest]:
        return iter(self._requests)

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}>"

    def __str__(self) -> str:
        """A line a request, the last ones of many, with the seconds from the first one of all on."""
        lines = [f"  +{each.at_s - self._requests[0].at_s:.3f} s  {each}" for each in self._requests[-SHOWN_MAX:]]
        if (left_out := len(self) - len(lines)) > 0:
            lines.insert(0, f"  … {left_out} before")
        return "\n".join(lines) if lines else "  none"

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes."""
        return {"what": self._what, "requests": [each.to_json() for each in self]}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        """Of what `to_json` gave."""
        return cls((RecordedRequest.from_json(each) for each in told["requests"]), told["what"])

    # -- order ------------------------------------------------------------------------------------------------------

    def before(self, moment: "float | RecordedRequest | Requests") -> "Requests":
        """Those that came before a moment, a request, or the first one of others; all, where there are no others."""
        until_s = _first_s(moment)
        found = [each for each in self if until_s is None or each.at_s < until_s]
        return Requests(found, f"{self._what} before {_named(moment)}")

    def after(self, moment: "float | RecordedRequest | Requests") -> "Requests":
        """Those that came after a moment, a request, or the last one of others; all, where there are no others."""
        from_s = _last_s(moment)
        found = [each for each in self if from_s is None or each.at_s > from_s]
        return Requests(found, f"{self._what} after {_named(moment)}")

    def happened_before(self, other: "Requests") -> Self:
        """Each of these came before each of the others. Raises UnexpectedRequests, also where there are none of one."""
        self.at_least(1)
        other.at_least(1)
        late = self.after(other[0])
        if late:
            raise UnexpectedRequests(
                f"{len(late)} of {len(self)} {self._what} came after the first of the {other._what}:\n"
                f"{late}\nThat one was:\n  {other[0]}"
            )
        return self

    # -- number -----------------------------------------------------------------------------------------------------

    def none(self) -> Self:
        """There are none. Raises UnexpectedRequests."""
        return self.at_most(0)

    def at_least(self, count: int) -> Self:
        """There are so many. Raises UnexpectedRequests."""
        if len(self) < count:
            raise UnexpectedRequests(f"at least {count} {self._what} were expected, and {len(self)} came:\n{self}")
        return self

    def at_most(self, count: int, within_s: float | None = None) -> Self:
        """There are no more; with `within_s` in no stretch of time of this length. Raises UnexpectedRequests."""
        if within_s is None:
            if len(self) > count:
                raise UnexpectedRequests(f"at most {count} {self._what} were expected, and {len(self)} came:\n{self}")
            return self
        begin = 0
        for end, request in enumerate(self):
            while request.at_s - self[begin].at_s > within_s:
                begin += 1
            if end - begin >= count:
                found = self[begin : end + 1]
                raise UnexpectedRequests(
                    f"at most {count} {self._what} were expected within {within_s:g} s, and {len(found)} came in "
                    f"{request.at_s - self[begin].at_s:.3f} s:\n{found}"
                )
        return self

    # -- what was committed -----------------------------------------------------------------------------------------

    def commit_only(self, processed: ProcessedRecords) -> Self:
        """No offset was committed before the test had noted the record before it as processed, and all those noted
        before that one. For OffsetCommit and TxnOffsetCommit. Raises UnexpectedRequests."""
        for request in self:
            committed = [each.committed_offset for topic in request.request.topics for each in topic.partitions]
            for (topic, index), offset in zip(request.topics, committed, strict=True):
                assert index is not None, "these APIs name partitions"
                if why := processed.missing(topic, index, offset, request.at_s):
                    raise UnexpectedRequests(
                        f"offset {offset} of {topic}-{index} was committed too early: {why}:\n  {request}"
                    )
        return self


def begin_of(since: "float | RecordedRequest | Requests | None") -> float | None:
    """The moment after which requests are meant, in seconds; None: all are."""
    return None if since is None else _last_s(since)


def _first_s(moment: "float | RecordedRequest | Requests") -> float | None:
    if isinstance(moment, Requests):
        return moment[0].at_s if moment else None
    return moment.at_s if isinstance(moment, RecordedRequest) else moment


def _last_s(moment: "float | RecordedRequest | Requests") -> float | None:
    if isinstance(moment, Requests):
        return moment[-1].at_s if moment else None
    return moment.at_s if isinstance(moment, RecordedRequest) else moment


def _named(moment: "float | RecordedRequest | Requests") -> str:
    if isinstance(moment, Requests):
        return repr(moment)
    return str(moment) if isinstance(moment, RecordedRequest) else f"{moment:.3f} s"
