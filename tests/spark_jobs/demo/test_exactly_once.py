"""The demo's copy by carrier: with some records on a real broker, and what it makes of what it finds."""

import asyncio
import io
from collections.abc import Generator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from rich.console import Console

from odradek import Producer
from odradek.spark_jobs.demo.broker_process import BrokerProcess, odradek_command
from odradek.spark_jobs.demo.exactly_once import (
    COPIER,
    PARTITIONS,
    TOPIC,
    Watch,
    aborted_count,
    compare,
    copy_exactly_once,
    kill_in_a_transaction,
    print_copied,
    start_copier,
    wait_until_committed,
)
from odradek.spark_jobs.demo.flight_copier import FLIGHTS_IN_TRANSACTION
from odradek.spark_jobs.demo.load import create_topics
from odradek.spark_jobs.demo.steps import DemoFailed, Steps

CARRIERS = (b"AA", b"DL", b"HA", b"UA", b"WN")
FLIGHTS = [(CARRIERS[number % 5], b"flight %d %300d" % (number, number % 7)) for number in range(80_000)]
FEW = [(b"AA", b"1"), (b"UA", b"2"), (b"AA", b"3"), (b"UA", b"4")]


def told_nothing(_count: int) -> None:
    """How far it is."""


# -- on a broker -----------------------------------------------------------------------------------------------------


def broker_command(listen: str, data_directory: Path) -> list[str]:
    """One that does not wait for further members before it lets the first one read."""
    return [*odradek_command(listen, data_directory), "--set", "group.initial.rebalance.delay.ms=0"]


@pytest.fixture
def broker(tmp_path: Path) -> Generator[BrokerProcess]:
    with BrokerProcess(broker_command, tmp_path / "data", tmp_path / "broker.log") as process:
        process.start()
        create_topics(process.address, "flights")
        yield process


async def load(bootstrap: str) -> None:
    async with Producer(bootstrap) as producer:
        carriers, flights = zip(*FLIGHTS, strict=True)
        await producer.send_batch("flights", flights, carriers)


@pytest.mark.compat
@pytest.mark.slow
def test_each_flight_is_copied_once_though_a_copier_is_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    """The kill has left a part of a transaction, which is aborted; what is committed has each carrier's flights."""
    asyncio.run(load(broker.address))
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    with Steps(console) as steps:
        copied = copy_exactly_once(broker, "flights", FLIGHTS, tmp_path, steps)
    assert (copied.flights, copied.carriers) == (len(FLIGHTS), len(CARRIERS))
    assert len(FLIGHTS) // 2 <= copied.at_kill < len(FLIGHTS)
    assert copied.at_kill % FLIGHTS_IN_TRANSACTION == 0
    assert 0 < copied.aborted < FLIGHTS_IN_TRANSACTION
    print_copied(copied, console)
    assert f"killed with {copied.at_kill:,} flights committed, and {copied.aborted:,} in an open" in shown.getvalue()


@pytest.mark.compat
def test_a_kill_that_found_nothing_open_is_a_failure(broker: BrokerProcess) -> None:
    """And so is one whose transaction was committed all the same."""
    create_topics(broker.address, TOPIC, partitions=PARTITIONS)
    with Watch(broker.address, "flights") as watch:
        nothing = watch.open_offsets()
        ranges = asyncio.run(end_and_look(broker.address, watch))
    assert aborted_count(broker.address, ranges["abort"]) == 1
    with pytest.raises(DemoFailed, match=r"^0 copies were left open .* and 0 of them are committed"):
        aborted_count(broker.address, nothing)
    with pytest.raises(DemoFailed, match=r"^2 copies were left open .* and 2 of them are committed"):
        aborted_count(broker.address, ranges["commit"])


async def end_and_look(bootstrap: str, watch: Watch) -> dict[str, dict[int, range]]:
    """Where two transactions are while they are open: one of a record, which is aborted, and one of two."""
    found: dict[str, dict[int, range]] = {}
    async with Producer(bootstrap, transactional_id="some") as producer:
        for end, values in (("abort", [b"1"]), ("commit", [b"2", b"3"])):
            txn = producer.transaction()
            await txn.begin()
            await txn.send_batch(TOPIC, values, [b"AA"] * len(values))
            found[end] = await asyncio.to_thread(watch.open_offsets)
            await (txn.abort() if end == "abort" else txn.commit())
    return found


@pytest.mark.compat
def test_a_copier_that_ends_is_told_with_what_it_said(broker: BrokerProcess, tmp_path: Path) -> None:
    create_topics(broker.address, TOPIC, partitions=PARTITIONS)
    with (
        start_copier("nonsense:-1", "flights", tmp_path / "log") as copier,
        Watch(broker.address, "flights") as watch,
    ):
        with pytest.raises(DemoFailed, match=r"has ended: (.|\n)*nonsense"):
            kill_in_a_transaction(copier, watch, 1, 2, told_nothing)
        with pytest.raises(DemoFailed, match=r"has ended: (.|\n)*nonsense"):
            wait_until_committed(copier, watch, 1, told_nothing)


@pytest.mark.compat
def test_a_copier_that_is_done_before_it_is_killed_is_a_failure(broker: BrokerProcess, tmp_path: Path) -> None:
    create_topics(broker.address, TOPIC, partitions=PARTITIONS)
    with KafkaConsumer(bootstrap_servers=broker.address, group_id=COPIER, enable_auto_commit=False) as consumer:
        consumer.commit({TopicPartition("flights", 0): OffsetAndMetadata(7, "", -1)})
    with start_copier(broker.address, "flights", tmp_path / "log") as copier:
        with (
            Watch(broker.address, "flights") as watch,
            pytest.raises(DemoFailed, match="had copied everything before it could be killed"),
        ):
            kill_in_a_transaction(copier, watch, 3, 7, told_nothing)
        assert copier.is_running


# -- what is compared ------------------------------------------------------------------------------------------------


def copies(*found: tuple[int, bytes, bytes]) -> list[ConsumerRecord]:
    """Partition, carrier and flight of each."""
    return [
        ConsumerRecord(TOPIC, partition, 0, offset, 0, 0, key, value, (), None, 0, 0, 0)
        for offset, (partition, key, value) in enumerate(found)
    ]


def test_copies_are_equal_whatever_the_order_of_carriers() -> None:
    found = copies((1, b"UA", b"2"), (0, b"AA", b"1"), (0, b"AA", b"3"), (1, b"UA", b"4"))
    assert compare(FEW, found, told_nothing) == 2


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ([(0, b"AA", b"1"), (0, b"AA", b"3"), (1, b"UA", b"2")], r"last flights of these carriers: \{b'UA': 1\}"),
        ([(0, b"AA", b"1"), (0, b"AA", b"3")], r"last flights of these carriers: \{b'UA': 2\}"),
        ([(0, b"AA", b"3")], "offset 0 is not the next flight of b'AA': b'3'"),
        ([(0, b"AA", b"1"), (0, b"AA", b"1")], "offset 1 is not the next flight of b'AA': b'1'"),
        ([(0, b"AA", b"1"), (0, b"AA", b"3"), (0, b"AA", b"3")], "offset 2 is not the next flight of b'AA': b'3'"),
        ([(0, b"AA", b"one")], "offset 0 is not the next flight of b'AA': b'one'"),
        ([(0, b"WN", b"5")], "offset 0 is not the next flight of b'WN': b'5'"),
        ([(0, b"AA", b"1"), (1, b"AA", b"3")], "partition 1, offset 1 is not the next flight of b'AA': b'3'"),
    ],
    ids=["the last", "all", "the first", "doubled", "the last doubled", "changed", "another carrier", "two partitions"],
)
def test_a_copy_that_is_missing_or_other_is_named(found: list[tuple[int, bytes, bytes]], what: str) -> None:
    with pytest.raises(DemoFailed, match=what):
        compare(FEW, copies(*found), told_nothing)
