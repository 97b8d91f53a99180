"""A transactional producer by raw messages: what it sends is left open.

    producer = RawProducer(client, "payments", *identity)     # whose identity `Admin.fence_producers` has told
    await producer.send("orders", 0, b"a")                    # included in its transaction by the coordinator
    await producer.send_unknown("orders", 1, b"b")            # no coordinator knows: it hangs there

The latter takes a broker that does not verify transactions (transaction.partition.verification.enable=false).
"""

from typing import Final

from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.wire import RawClient

INCLUDING: Final = 12
"""The version of Produce by which the broker has the coordinator include the partition (KIP-890)."""
NOT_INCLUDING: Final = 11
TIMESTAMP_MS: Final = 1_000
"""Long ago, as if the transaction had been open since."""


class RawProducer:
    """One producer, with one transaction after the other."""

    def __init__(self, client: RawClient, transactional_id: str, producer_id: int, producer_epoch: int) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self._sequences: dict[tuple[str, int], int] = {}

    async def send(self, topic: str, index: int, value: bytes) -> int:
        """Returns the record's offset."""
        return await self._send(topic, index, value, INCLUDING)

    async def send_unknown(self, topic: str, index: int, value: bytes) -> int:
        """The same, and its coordinator is not told."""
        return await self._send(topic, index, value, NOT_INCLUDING)

    async def _send(self, topic: str, index: int, value: bytes, version: int) -> int:
        sequence = self._sequences.get((topic, index), 0)
        self._sequences[topic, index] = sequence + 1
        records = build_batch(
            [Record(0, TIMESTAMP_MS, None, value, ())],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
        request = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=5_000, topic_data=[data])
        (answer,) = (await self.client.ask(request, version)).responses[0].partition_responses
        assert answer.error_code == 0, (answer.error_code, answer.error_message)
        return answer.base_offset
