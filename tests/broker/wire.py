"""A broker in this process on a free loopback port, and a client that speaks raw frames to it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from odradek.runtime.environment import Environment

R = TypeVar("R", bound=Response)

TIMEOUT_S = 20.0


def settings(
    data_dir: str | Sequence[str] | None = None, options: Mapping[str, str] | None = None, node_id: int = 0
) -> Settings:
    listener = Listener("PLAINTEXT", "127.0.0.1", 0)
    data_dirs = [data_dir] if isinstance(data_dir, str) else data_dir
    return Settings([listener], {listener.name: listener}, data_dirs, node_id, BrokerConfig(options or {}))


@asynccontextmanager
async def running_broker(
    options: Mapping[str, str] | None = None, disk: Disk | None = None, data_dir: str | Sequence[str] | None = None
) -> AsyncGenerator[Broker]:
    """A broker in memory, unless a disk and a directory are given."""
    broker = Broker(settings(data_dir, options), Environment(), MemoryDisk() if disk is None else disk)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


class RawClient:
    """One connection. Requests are answered in order, so `receive` needs to know only what was asked."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str = "raw") -> None:
        self.reader = reader
        self.writer = writer
        self.client_id = client_id
        self._correlation_id = 0

    def send(self, request: Request[R], version: int) -> int:
        """Queues a request; its correlation id."""
        self._correlation_id += 1
        header = RequestHeader(request.api_key, version, self._correlation_id, self.client_id)
        self.writer.writelines(request_frame(header, request.is_flexible(version), encode_parts(request, version)))
        return self._correlation_id

    async def receive_frame(self) -> memoryview:
        async with asyncio.timeout(TIMEOUT_S):
            size_bytes = int.from_bytes(await self.reader.readexactly(4), "big")
            return memoryview(await self.reader.readexactly(size_bytes))

    async def receive(self, request: Request[R], version: int) -> tuple[int, R]:
        """The next reply, which must be to `request`; with its correlation id."""
        frame = await self.receive_frame()
        flexible = request.is_flexible(version) and request.api_key != ApiVersionsRequest.api_key
        correlation_id, position = read_response_header(frame, flexible)
        return correlation_id, decode(request.response_type, version, frame, position)

    async def ask(self, request: Request[R], version: int) -> R:
        sent = self.send(request, version)
        correlation_id, response = await self.receive(request, version)
        assert correlation_id == sent
        return response

    async def is_closed(self) -> bool:
        """Waits until the broker has closed the connection; False when it has not within the time."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                while await self.reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def close(self) -> None:
        self.writer.close()


@asynccontextmanager
async def connected(broker: Broker, limit: int = 1 << 16) -> AsyncGenerator[RawClient]:
    """A client of the broker's first listener. `limit` bounds what its stream reads ahead."""
    endpoint = next(iter(broker.bound.values()))
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port, limit=limit)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()  # not close(): what the broker did not want to read would be waited for
        with suppress(ConnectionError):  # the broker had closed it, which is what some tests are about
            await writer.wait_closed()


def batch(*values: bytes, producer_id: int = -1, producer_epoch: int = -1, base_sequence: int = -1) -> bytes:
    records = [Record(index, 1_000 + index, None, value, ()) for index, value in enumerate(values)]
    return build_batch(records, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence)


def produce(
    topic: str, records: bytes | None, acks: int = -1, index: int = 0, timeout_ms: int = 5_000
) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])],
    )


async def produced(client: RawClient, topic: str, records: bytes | None, index: int = 0) -> PartitionProduceResponse:
    """The one partition's answer to a Produce v9 with acks=all."""
    response = await client.ask(produce(topic, records, index=index), 9)
    return response.responses[0].partition_responses[0]


async def create_topic(client: RawClient, name: str, partitions: int = 1) -> None:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])],
        timeout_ms=5_000,
    )
    response = await client.ask(request, 5)
    assert response.topics[0].error_code == 0, response.topics[0].error_message


async def topic_id(client: RawClient, name: str) -> bytes:
    response = await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
    return response.topics[0].topic_id
