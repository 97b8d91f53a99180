"""Keeps the last requests that clients have sent to the brokers of one cluster. Brokers note them in their threads."""

from collections import deque
from typing import Any, Final

from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.testing.faults.fault import Match
from odradek.testing.faults.recorded_requests import RecordedRequest, Requests
from odradek.testing.faults.request_fields import NameById, topics_in
from odradek.testing.faults.request_match import matches
from odradek.testing.waiting import now_s

__all__ = ["RequestRecorder"]

KEPT_MAX: Final = 10_000
KEPT_BYTES_MAX: Final = 64 << 20
"""Of the requests that are kept, as they were received; without the records of Produce, which are not kept."""
PRODUCE_BYTES: Final = 1000


_Noted = tuple[float, int, str, int, str | None, str, Any, int]
"""The attributes of a RecordedRequest, up to the request, and the size in bytes. Each request of a client is noted, so
this is the least that can be kept; what a test wants to know of it is found out when it asks."""


class RequestRecorder:
    """See the module."""

    def __init__(self) -> None:
        self._noted: deque[_Noted] = deque()
        self._size_bytes = 0

    def note(
        self, broker: int, api: str, version: int, client_id: str | None, peer: str, request: Any, size_bytes: int
    ) -> None:
        """One has come, now. In any thread."""
        if type(request) is ProduceRequest:
            # The records are a part of the connection's receive buffer, which is used again when nobody holds it.
            request, size_bytes = _KeptProduce(request), PRODUCE_BYTES
        noted = self._noted
        noted.append((now_s(), broker, api, version, client_id, peer, request, size_bytes))
        # Threads may count at the same time, and lose a few bytes by that: it is a bound, no account.
        self._size_bytes += size_bytes
        while len(noted) > KEPT_MAX or self._size_bytes > KEPT_BYTES_MAX:
            try:
                self._size_bytes -= noted.popleft()[-1]
            except IndexError:  # another thread was faster
                self._size_bytes = 0
                return

    def requests(self, match: Match, since_s: float | None, name_by_id: NameById) -> Requests:
        """Those that match, oldest first. `since_s`: none from before that moment."""

        def name(topic_id: bytes) -> str:
            return name_by_id(topic_id) or f"<topic id {topic_id.hex()}>"

        found: list[RecordedRequest] = []
        for at_s, broker, api, version, client_id, peer, kept, _ in list(self._noted):
            if (since_s is not None and at_s <= since_s) or match.api not in (None, api):
                continue
            request = kept.request() if isinstance(kept, _KeptProduce) else kept
            if matches(match, broker, api, client_id, request, name_by_id):
                topics = tuple(topics_in(request, name))
                found.append(RecordedRequest(at_s, broker, api, version, client_id, peer, request, topics))
        what = "requests" if match == Match() else f"requests ({match})"
        return Requests(found, what)

    def clear(self) -> None:
        """Forgets them all."""
        self._noted.clear()
        self._size_bytes = 0


class _KeptProduce:
    """What is kept of a Produce: all but the records, of which it is the header of each batch."""

    __slots__ = ("_acks", "_timeout_ms", "_topics", "_transactional_id")

    def __init__(self, request: ProduceRequest) -> None:
        self._transactional_id = request.transactional_id
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._topics = [
            (
                topic.name,
                topic.topic_id,
                [
                    (data.index, None if data.records is None else bytes(data.records[:HEADER_SIZE]))
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]

    def request(self) -> ProduceRequest:
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=name,
                    topic_id=topic_id,
                    partition_data=[PartitionProduceData(index=index, records=header) for index, header in batches],
                )
                for name, topic_id, batches in self._topics
            ],
        )
