"""Questions to a `Loopback` by their names, its answers, and what became of them: for tests of the pipeline."""

import asyncio
from collections.abc import Callable
from typing import Any

from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.client.loopback import Peer, Received

VERSION = 12
Result = MetadataResponse | ClientError


def question(name: object) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=str(name))])


def reply(request: Received, throttle_time_ms: int = 0) -> MetadataResponse:
    """Repeats what was asked."""
    name = request.message.topics[0].name
    return MetadataResponse(cluster_id=name, brokers=[], topics=[], throttle_time_ms=throttle_time_ms)


def produce(size_bytes: int = 100) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(size_bytes))
    return ProduceRequest(
        transactional_id=None, acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )


async def echo(peer: Peer) -> None:
    await peer.greet()
    while True:
        request = await peer.receive()
        await peer.answer(request, reply(request))


class Outcomes:
    """What became of requests, in the order in which they ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[object, Any]] = []
        self._change = asyncio.Event()

    def of(self, name: object) -> Callable[[Any], None]:
        def done(result: Any) -> None:
            self.ended.append((name, result))
            self._change.set()

        return done

    async def after(self, count: int) -> list[tuple[object, Any]]:
        async with asyncio.timeout(5):
            while len(self.ended) < count:
                self._change.clear()
                await self._change.wait()
        return self.ended


def send_all(connection: Connection, count: int, **more: Any) -> Outcomes:
    outcomes = Outcomes()
    for number in range(count):
        connection.send(question(number), VERSION, outcomes.of(number), **more)
    return outcomes


async def ended(connection: Connection) -> None:
    """The connection is closed, by itself."""
    await asyncio.wait_for(connection.closed(), 5)
    assert not connection.is_open
    assert connection.in_flight == 0


async def silent(peer: Peer) -> None:
    await peer.greet()
    await peer.gone()
