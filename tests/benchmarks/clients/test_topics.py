"""Topics of the client runs, on a real Odradek: created empty, counted, read in full, and damage noticed."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clients import topics
from benchmarks.clients.topics import create_topic, record_count, records_of
from benchmarks.contenders.client_load import PARTITION_COUNT
from benchmarks.load.wire import Wire
from benchmarks.produce import LogDiffers
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from processes.odradek_broker import OdradekBroker

FETCH_BYTES = 2000
"""So little that a partition takes several fetches."""


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    with OdradekBroker(tmp_path / "data") as broker, Wire(broker.host, broker.port) as wire:
        create_topic(wire, "t")
        yield wire


def produce(wire: Wire, partition: int, values: list[bytes]) -> None:
    batch = build_batch([Record(offset, 1000, None, value) for offset, value in enumerate(values)])
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=partition, records=batch)])
    response = wire.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    assert response.responses[0].partition_responses[0].error_code == 0


def test_all_records_of_every_partition_are_read(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "FETCH_BYTES", FETCH_BYTES)
    rng = random.Random(1)
    sent = {partition: [rng.randbytes(300) for _ in range(5 + partition)] for partition in range(PARTITION_COUNT)}
    for partition, values in sent.items():
        produce(wire, partition, values[:4])
        produce(wire, partition, values[4:])
    for partition, values in sent.items():
        read = list(records_of(wire, "t", partition))
        assert [record.value for record in read] == values
        assert [record.offset for record in read] == list(range(len(values)))
    assert record_count(wire, "t") == sum(map(len, sent.values()))


def test_a_new_topic_is_empty(wire: Wire) -> None:
    assert record_count(wire, "t") == 0
    assert list(records_of(wire, "t", PARTITION_COUNT - 1)) == []


def test_damage_and_gaps_are_noticed(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    produce(wire, 0, [b"a" * 100])
    produce(wire, 0, [b"b" * 100])
    whole = bytes(topics.fetch(wire, "t", 0, 0))
    second = len(whole) // 2

    def fetched(data: bytes) -> None:
        def fetch(wire: Wire, topic: str, partition: int, offset: int) -> bytes:
            del wire, topic, partition, offset
            return data

        monkeypatch.setattr(topics, "fetch", fetch)

    fetched(whole)
    assert len(list(records_of(wire, "t", 0))) == 2
    fetched(whole[: second - 10] + b"\xff" + whole[second - 9 :])
    with pytest.raises(LogDiffers, match="checksum of the batch at offset 0 is wrong"):
        list(records_of(wire, "t", 0))
    fetched(whole[second:])
    with pytest.raises(LogDiffers, match="offset 1 is read instead of 0"):
        list(records_of(wire, "t", 0))
    fetched(b"")
    with pytest.raises(LogDiffers, match="nothing is read at offset 0 of 2"):
        list(records_of(wire, "t", 0))
