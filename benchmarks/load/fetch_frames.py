"""Fetch in bytes: the question, in which only correlation id and offset change, and the head of its answer.

Version 11 is asked, the last one without tags and topic ids: what stands before the records of one partition has one
size then, and is read at one go. Records are what is left, and are not looked at here.
"""

from struct import Struct
from typing import NamedTuple

from benchmarks.load.replies import LoadFailed
from odradek.protocol.codec.codec import encode, encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import RequestHeader, request_frame, response_frame
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

FETCH_KEY = 1
FETCH_VERSION = 11
_ID = Struct(">i")
_ID_POSITION = 8
_OFFSET = Struct(">q")


class FetchQuestion:
    """A Fetch of one partition, as a buffer in which correlation id and offset are replaced."""

    def __init__(
        self, topic: str, max_bytes: int, *, partition: int = 0, min_bytes: int = 1, max_wait_ms: int = 500
    ) -> None:
        def frame(offset: int) -> bytes:
            asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
            request = FetchRequest(
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                topics=[FetchTopic(topic=topic, partitions=[asked])],
            )
            header = RequestHeader(FETCH_KEY, FETCH_VERSION, 0, "benchmark")
            return b"".join(request_frame(header, False, encode_parts(request, FETCH_VERSION)))

        self._frame = bytearray(frame(0))
        pairs = enumerate(zip(self._frame, frame(-1), strict=True))
        self.offset_position = next(index for index, (without, with_all) in pairs if without != with_all)

    @property
    def size_bytes(self) -> int:
        return len(self._frame)

    def frame(self, correlation_id: int, offset: int) -> bytearray:
        """The question, valid until the next call."""
        _ID.pack_into(self._frame, _ID_POSITION, correlation_id)
        _OFFSET.pack_into(self._frame, self.offset_position, offset)
        return self._frame


class Head(NamedTuple):
    """What stands before the records."""

    size: int
    correlation_id: int
    error_code: int
    partition_error_code: int
    high_watermark: int
    records_bytes: int


class FetchAnswer:
    """Where everything stands in an answer for one partition. `head_bytes`, size included, stand before the records."""

    def __init__(self, topic: str) -> None:
        # throttle time; session, topics, name; partitions, index; last stable offset, log start offset, aborted
        # transactions (none, or null), preferred replica
        self._head = Struct(f">ii4xh4x4x2x{len(topic)}x4x4xhq8x8x4x4xi")
        self.head_bytes = self._head.size

    def read(self, data: memoryview, correlation_id: int) -> Head:
        """The head, once `head_bytes` have come, of the answer to the question with this id. Raises LoadFailed."""
        head = Head._make(self._head.unpack_from(data))
        if head.error_code or head.partition_error_code:
            raise LoadFailed(f"fetch {correlation_id}: {ErrorCode(head.error_code or head.partition_error_code).name}")
        if (head.size, head.correlation_id) != (self.head_bytes - 4 + head.records_bytes, correlation_id):
            raise LoadFailed(f"fetch {correlation_id}: an answer of another form, {head}")
        return head


def canned_answer(topic: str, records: bytes) -> bytearray:
    """An answer with correlation id 0, size first."""
    partition = PartitionData(
        partition_index=0, high_watermark=0, last_stable_offset=0, log_start_offset=0, records=records
    )
    response = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])
    return bytearray(b"".join(response_frame(0, False, [encode(response, FETCH_VERSION)])))
