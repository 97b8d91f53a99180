"""Questions to a server over one blocking connection, each a function: create a topic, where it ends, what it holds.

They are asked before and after a run, never during one. Versions are such as both contenders serve.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeVar

from benchmarks.load.frames import PRODUCE_VERSION
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.primitives import Buffer

A = TypeVar("A")
R = TypeVar("R", bound=Response)

TIMEOUT_S = 60.0
API_VERSIONS = ApiVersionsRequest.api_key
ACKS_ALL = -1
EARLIEST = -2
LATEST = -1
SET = 0
"""An operation of IncrementalAlterConfigs."""
TOPIC_RESOURCE = 2
FETCH_BYTES = 8 * 1024 * 1024
LEADER_TIMEOUT_S = 30.0
RETRY_S = 0.02


class Wire:
    """A connection that asks one question at a time."""

    def __init__(self, host: str, port: int, *, timeout_s: float = TIMEOUT_S) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Request[R], version: int, *, answered_in: int | None = None) -> R:
        """The response, which may be of another version than the request.

        Raises OSError, and MalformedMessage for what is none.
        """
        self._correlation_id += 1
        flexible = request.is_flexible(version)
        header = RequestHeader(request.api_key, version, self._correlation_id, "wire")
        self.send(b"".join(request_frame(header, flexible, encode_parts(request, version))))
        frame = self.receive_frame()
        # ApiVersions is answered with the oldest header, for clients that do not know yet what the broker speaks.
        correlation_id, position = read_response_header(frame, flexible and request.api_key != API_VERSIONS)
        assert correlation_id == self._correlation_id
        return decode(request.response_type, version if answered_in is None else answered_in, frame, position)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytearray:
        return self._receive(int.from_bytes(self._receive(4), "big"))

    def is_closed(self) -> bool:
        """Whether the server closes the connection instead of sending anything."""
        try:
            return not self._socket.recv(1)
        except ConnectionError:
            return True

    def _receive(self, size_bytes: int) -> bytearray:
        data = bytearray(size_bytes)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise ConnectionError("closed by the server")
            view = view[count:]
        return data


def create_topic(wire: Wire, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Creates a topic and waits until all its partitions have leaders. Raises KafkaError."""
    ask_for_topic(wire, name, partitions, configs)
    assert set(offsets_once_led(wire, name, partitions)) == {0}


def ask_for_topic(
    wire: Wire, name: str, partitions: int, configs: Mapping[str, str] | None = None, *, replication_factor: int = 1
) -> None:
    """Creates a topic, and waits for nothing. Raises KafkaError."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=[CreatableTopicConfig(name=option, value=value) for option, value in (configs or {}).items()],
    )
    (created,) = wire.ask(CreateTopicsRequest(topics=[topic]), 5).topics
    check(created.error_code, created.error_message)


def offsets_once_led(wire: Wire, topic: str, partitions: int) -> list[int]:
    """Where the partitions end, as soon as all of them have leaders. Raises KafkaError."""
    return repeat_until_answered(lambda: offsets_at(wire, topic, LATEST, partitions))


def repeat_until_answered(ask: Callable[[], A]) -> A:
    """Asks again while the answer is an error that passes, up to `LEADER_TIMEOUT_S`. Raises KafkaError."""
    deadline = time.monotonic() + LEADER_TIMEOUT_S
    while True:
        try:
            return ask()
        except KafkaError as error:
            if not error.code.retriable or time.monotonic() > deadline:
                raise
        time.sleep(RETRY_S)  # between two questions, not instead of them


def delete_topic(wire: Wire, name: str) -> None:
    """Raises KafkaError."""
    (deleted,) = wire.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5).responses
    check(deleted.error_code, deleted.error_message)


def set_topic_options(wire: Wire, topic: str, options: Mapping[str, str]) -> None:
    """Changes options of a topic. Raises KafkaError."""
    changes = [AlterableConfig(name=name, config_operation=SET, value=value) for name, value in options.items()]
    resource = AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=changes)
    (altered,) = wire.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1).responses
    check(altered.error_code, altered.error_message)


def new_producer(wire: Wire) -> tuple[int, int]:
    """The id and the epoch of a new idempotent producer. Raises KafkaError."""

    def ask() -> tuple[int, int]:
        answered = wire.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
        check(answered.error_code)
        return answered.producer_id, answered.producer_epoch

    return repeat_until_answered(ask)


def offsets_at(wire: Wire, topic: str, timestamp: int, partitions: int) -> list[int]:
    """Where each partition starts (`EARLIEST`) or ends (`LATEST`). Raises KafkaError."""
    return offsets_of(wire, topic, timestamp, range(partitions))


def offsets_of(wire: Wire, topic: str, timestamp: int, partitions: Sequence[int]) -> list[int]:
    """The same of some partitions: those that the broker leads. Raises KafkaError."""
    asked = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in partitions]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])
    answered = wire.ask(request, 5).topics[0].partitions
    for partition in answered:
        check(partition.error_code)
    offsets = {partition.partition_index: partition.offset for partition in answered}
    return [offsets[index] for index in partitions]


def offset_at(wire: Wire, topic: str, timestamp: int) -> int:
    """Where partition 0 starts or ends. Raises KafkaError."""
    return offsets_at(wire, topic, timestamp, 1)[0]


def produce_record(wire: Wire, topic: str, partition: int, value: bytes, timestamp_ms: int) -> int:
    """Writes one record by acks=all to the leader of a partition; its offset. Raises KafkaError."""
    batch = build_batch([Record(0, timestamp_ms, None, value)])
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])]
    answered = wire.ask(ProduceRequest(acks=ACKS_ALL, timeout_ms=30_000, topic_data=data), PRODUCE_VERSION)
    (told,) = answered.responses[0].partition_responses
    check(told.error_code, told.error_message)
    return told.base_offset


def fetch(wire: Wire, topic: str, offset: int, partition: int = 0) -> Buffer:
    """Batches of a partition from `offset` on; the last one may be cut off. Raises KafkaError."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    response = wire.ask(FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics), 11)
    check(response.error_code)
    (answered,) = response.responses[0].partitions
    check(answered.error_code)
    return answered.records or b""


def served_keys(wire: Wire) -> set[int]:
    """The APIs that a server has. Raises KafkaError."""
    answered = wire.ask(ApiVersionsRequest(), 0)
    check(answered.error_code)
    return {served.api_key for served in answered.api_keys}


def check(error_code: int, text: str | None = None) -> None:
    """Raises KafkaError for any code but NONE."""
    if error_code != 0:
        raise KafkaError(ErrorCode(error_code), text or "")
