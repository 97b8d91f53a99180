"""Replies to the load: every one is looked at, and has to be what a broker without an error answers.

reply (v9, no error): size int32 | correlation_id int32 | tags | 1 topic, its name | 1 partition, index int32,
                      error_code int16, base_offset int64, … always of the same size
"""

from struct import Struct
from typing import NamedTuple

from benchmarks.load.frames import PRODUCE_VERSION, Load
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.frames import read_response_header, response_frame
from odradek.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


class LoadFailed(Exception):
    """A reply was not what it should be, or the connection was closed."""


class Reply(NamedTuple):
    """What is read of a reply that has the expected size."""

    size: int
    correlation_id: int
    partition: int
    error_code: int
    base_offset: int


class ReplyShape:
    """Where everything stands in a reply without an error, which has always the same size: `size_bytes`, all in all."""

    def __init__(self, topic: str) -> None:
        assert len(topic) < 127, "its length must fit into one byte of a varint"
        # tags and array length 2 B, name with its length, array length 1 B
        self._struct = Struct(f">ii2x{1 + len(topic)}x1xihq")
        self.size_bytes = len(canned_reply(topic, 0, 0))

    def read(self, data: memoryview, position: int) -> Reply:
        return Reply(*self._struct.unpack_from(data, position))


def canned_reply(topic: str, correlation_id: int, base_offset: int, partition: int = 0) -> bytes:
    """A reply without an error, size first."""
    answered = PartitionProduceResponse(index=partition, base_offset=base_offset, log_start_offset=0)
    response = ProduceResponse(responses=[TopicProduceResponse(name=topic, partition_responses=[answered])])
    return b"".join(response_frame(correlation_id, True, [encode(response, PRODUCE_VERSION)]))


class Replies:
    """Counts replies and checks each: in the order of the requests, without an error, at the offset that follows.

    Where connections share a partition, the offset has to be larger than the one before.
    """

    def __init__(self, load: Load, partition: int = 0) -> None:
        self.count = 0
        self._shape = ReplyShape(load.topic)
        self._partition = partition
        self._records_per_batch = load.records_per_batch
        self._is_shared = load.is_shared
        self._spread = load.spread
        self._next_offset = 0

    def take(self, data: memoryview) -> int:
        """Checks the whole replies at the beginning of `data`; how many bytes they are. Raises LoadFailed."""
        position, size_bytes = 0, self._shape.size_bytes
        while len(data) - position >= size_bytes:
            reply = self._shape.read(data, position)
            offset = reply.base_offset if self._is_shared else self.count // self._spread * self._records_per_batch
            partition = self._partition + self.count % self._spread
            if offset < self._next_offset or reply != (size_bytes - 4, self.count, partition, 0, offset):
                raise LoadFailed(f"reply {self.count}: {explain(bytes(data[position:]))}")
            position += size_bytes
            self.count += 1
            if self._is_shared:
                self._next_offset = offset + self._records_per_batch
        # A reply with an error may be shorter than a good one; waiting for the rest of it would be waiting for ever.
        if len(data) - position >= 4 and int.from_bytes(data[position : position + 4], "big") != size_bytes - 4:
            raise LoadFailed(f"reply {self.count}: {explain(bytes(data[position:]))}")
        return position


def explain(reply: bytes) -> str:
    """A reply in words, whatever it is."""
    size = int.from_bytes(reply[:4], "big")
    frame = reply[4 : 4 + size]
    try:
        correlation_id, position = read_response_header(frame, True)
        (topic,) = decode(ProduceResponse, PRODUCE_VERSION, frame, position).responses
        (partition,) = topic.partition_responses
        error = ErrorCode(partition.error_code)
    except (MalformedMessage, ValueError) as why:
        return f"{size} bytes announced, beginning with {frame[:64]!r} ({why})"
    text = f" ({partition.error_message})" if partition.error_message else ""
    where = f"partition {partition.index}, base offset {partition.base_offset}"
    return f"correlation id {correlation_id}, {error.name}{text}, {where}"
