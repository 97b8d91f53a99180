"""A blocking connection to any broker, ours or Apache Kafka, that speaks raw frames: for asking both the same."""

import socket
from types import TracebackType
from typing import Final, Self, TypeVar

from protocol.codec import decode, encode_parts
from protocol.frames import RequestHeader, read_response_header, request_frame
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.schema import Request, Response
from tests.apache_kafka import receive

R = TypeVar("R", bound=Response)

TIMEOUT_S: Final = 20.0


class Peer:
    """One connection. Raises ConnectionError where the broker closes it."""

    def __init__(self, host: str, port: int) -> None:
        self._sock = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def ask(self, request: Request[R], version: int, *, answered_in: int | None = None) -> R:
        """Sends a request and decodes its answer, which may be of another version than the request."""
        self._correlation_id += 1
        header = RequestHeader(request.api_key, version, self._correlation_id, "peer")
        parts = request_frame(header, request.is_flexible(version), encode_parts(request, version))
        self._sock.sendall(b"".join(parts))
        frame = memoryview(self.receive_frame())
        flexible = request.is_flexible(version) and request.api_key != ApiVersionsRequest.api_key
        correlation_id, position = read_response_header(frame, flexible)
        assert correlation_id == self._correlation_id
        return decode(request.response_type, version if answered_in is None else answered_in, frame, position)

    def send_raw(self, payload: bytes) -> None:
        """Sends a frame of these bytes, whatever they are."""
        self.send_unframed(len(payload).to_bytes(4, "big") + payload)

    def send_unframed(self, data: bytes) -> None:
        self._sock.sendall(data)

    def receive_frame(self) -> bytes:
        return receive(self._sock, int.from_bytes(receive(self._sock, 4), "big"))

    def is_closed(self) -> bool:
        """Whether the broker closes the connection instead of sending anything."""
        try:
            return not self._sock.recv(1)
        except ConnectionError:
            return True

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Creates a topic and waits until its partitions have leaders (Kafka answers before that)."""
        entries = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=entries
        )
        created = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False), 5)
        assert created.topics[0].error_code == 0, created.topics[0].error_message
        while not self.has_leaders(name, partitions):
            pass

    def has_leaders(self, name: str, partitions: int) -> bool:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        [topic] = self.ask(asked, 9).topics
        return len(topic.partitions) == partitions and all(each.error_code == 0 for each in topic.partitions)
