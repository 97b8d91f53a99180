from typing import NamedTuple

from kafka.future import Future
from kafka.structs import TopicPartition

class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int
    checksum: int | None
    serialized_key_size: int
    serialized_value_size: int
    serialized_header_size: int

class FutureRecordMetadata(Future[RecordMetadata]):
    def get(self, timeout: float | None = None) -> RecordMetadata: ...
