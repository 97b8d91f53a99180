"""What a real Odradek holds is compared with what was sent, in every form of load; what differs is noticed."""

import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.harness.readback import LogDiffers, compare_log
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import Wire, create_topic, new_producer
from processes.odradek_broker import OdradekBroker

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    directory: Path = tmp_path_factory.mktemp("readback")
    with OdradekBroker(directory / "data") as broker:
        yield broker


@pytest.fixture
def wire(broker: OdradekBroker) -> Iterator[Wire]:
    with Wire(broker.host, broker.port) as wire:
        yield wire


def produced(broker: OdradekBroker, wire: Wire, load: Load) -> Load:
    create_topic(wire, load.topic, load.partitions)
    run_load(broker.host, broker.port, load)
    compare_log(wire, load)
    return load


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_fewer_other_or_more_batches_than_sent_are_noticed(broker: OdradekBroker, wire: Wire) -> None:
    load = produced(broker, wire, Load("plain", MEBIBYTE, now_ms()))
    with pytest.raises(LogDiffers, match="from 0 to 1024, sent were 1040"):
        compare_log(wire, dataclasses.replace(load, total_bytes=load.total_bytes + load.batch_bytes))
    with pytest.raises(LogDiffers, match="from 0 to 1024, sent were 1008"):
        compare_log(wire, dataclasses.replace(load, total_bytes=load.total_bytes - load.batch_bytes))
    with pytest.raises(LogDiffers, match="batch 0 at offset 0 is not the one"):
        compare_log(wire, dataclasses.replace(load, timestamp_ms=load.timestamp_ms + 1))


def test_the_sequences_of_an_idempotent_producer_count(broker: OdradekBroker, wire: Wire) -> None:
    producer_id, producer_epoch = new_producer(wire)
    load = Load("idempotent", MEBIBYTE, now_ms(), producer_id=producer_id, producer_epoch=producer_epoch)
    produced(broker, wire, load)
    for other in (producer_id + 1, -1):
        with pytest.raises(LogDiffers, match="batch 0 at offset 0 is not the one"):
            compare_log(wire, dataclasses.replace(load, producer_id=other))


def test_keys_count(broker: OdradekBroker, wire: Wire) -> None:
    load = produced(broker, wire, Load("keyed", MEBIBYTE, now_ms(), keys=100))
    with pytest.raises(LogDiffers, match="batch 6 at offset 96 is not the one"):
        compare_log(wire, dataclasses.replace(load, keys=101))


def test_each_partition_counts(broker: OdradekBroker, wire: Wire) -> None:
    load = produced(broker, wire, Load("many", MEBIBYTE, now_ms(), connections=4, partitions=4))
    with pytest.raises(LogDiffers, match="many-0 reaches from 0 to 256, sent were 512"):
        compare_log(wire, dataclasses.replace(load, partitions=2))


def test_a_connection_may_spread_over_partitions(broker: OdradekBroker, wire: Wire) -> None:
    load = produced(broker, wire, Load("spread", MEBIBYTE, now_ms(), partitions=10, spread=10))
    with pytest.raises(LogDiffers, match="spread-0: batch 1 at offset 16 is not the one"):
        compare_log(wire, dataclasses.replace(load, partitions=6, spread=6, total_bytes=6 * 6 * 16 * 1024))


def test_in_a_shared_partition_each_batch_must_be_there_as_often_as_it_was_sent(
    broker: OdradekBroker, wire: Wire
) -> None:
    load = produced(broker, wire, Load("shared", MEBIBYTE, now_ms(), in_flight=1, connections=4, partitions=2))
    with pytest.raises(LogDiffers, match="does not hold each batch as often"):
        compare_log(wire, dataclasses.replace(load, timestamp_ms=load.timestamp_ms + 1))


def test_as_often_is_not_only_at_all(broker: OdradekBroker, wire: Wire) -> None:
    """Three times 16 batches and twice 24 are the same ones, and equally many."""
    load = produced(broker, wire, Load("often", 48 * 16 * 1024, now_ms(), in_flight=1, connections=3))
    with pytest.raises(LogDiffers, match="does not hold each batch as often"):
        compare_log(wire, dataclasses.replace(load, connections=2))
