"""What a bad network card or disk makes of answers: records whose CRC is wrong, and what cannot be read."""

from typing import Final

from odradek.broker.handling.context import Call, Caller
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.messages.fetch import FetchResponse, PartitionData
from odradek.protocol.primitives import Buffer
from odradek.testing.faults.partial_failures import changed
from odradek.testing.faults.request_fields import IsHit, NameById, topic_name

__all__ = ["ReplyCorruption", "with_corrupt_records"]

CRC_LAST_BYTE: Final = 20
"""Of a batch's header: what is checked stays whole, and does not fit to its CRC. So a client that checks it refuses the
records, and one that does not takes them as they are."""
SIZE_BYTES, CORRELATION_ID_BYTES = 4, 4
BODY: Final = SIZE_BYTES + CORRELATION_ID_BYTES
"""Where a reply's body begins, or the tags of its header: neither can begin with this byte."""
BAD_BYTE: Final = b"\xff"


def with_corrupt_records(answer: FetchResponse, is_hit: IsHit | None, name_by_id: NameById) -> FetchResponse | None:
    """The answer with records that their CRC does not fit to, in the first batch of each partition that is meant (None:
    of all); None where it has no such records."""
    count = 0

    def corrupted(topic: str, data: PartitionData) -> PartitionData:
        nonlocal count
        records = data.records
        if records is None or len(records) < HEADER_SIZE or not (is_hit is None or is_hit(topic, data.partition_index)):
            return data
        count += 1
        copied = bytearray(records)
        copied[CRC_LAST_BYTE] ^= 0xFF
        return changed(data, records=bytes(copied))

    topics = [
        changed(topic, partitions=[corrupted(topic_name(topic, name_by_id), each) for each in topic.partitions])
        for topic in answer.responses
    ]
    return changed(answer, responses=topics) if count else None


class ReplyCorruption:
    """Changes replies on their way to the client: a `ConnectionInterceptor`."""

    def __init__(self) -> None:
        self._due: set[tuple[Caller, bytes]] = set()

    @property
    def is_due(self) -> bool:
        """Whether a reply that has not been sent is to be corrupted."""
        return bool(self._due)

    def corrupt(self, call: Call) -> None:
        """The reply to this request is corrupted."""
        self._due.add(_key(call))

    def spare(self, call: Call) -> None:
        """The reply to this request is not corrupted after all."""
        self._due.discard(_key(call))

    def connected(self, caller: Caller) -> None: ...

    def received(self, caller: Caller, frame: memoryview) -> memoryview | None:
        return frame

    def replying(self, caller: Caller, reply: list[Buffer]) -> list[Buffer] | None:
        if not self._due:
            return reply
        whole = b"".join(reply)
        key = caller, whole[SIZE_BYTES:BODY]
        if key not in self._due:
            return reply
        self._due.discard(key)
        return [whole[:BODY], BAD_BYTE * min(1, len(whole) - BODY), whole[BODY + 1 :]]


def _key(call: Call) -> tuple[Caller, bytes]:
    return call.caller, call.correlation_id.to_bytes(CORRELATION_ID_BYTES, "big", signed=True)
