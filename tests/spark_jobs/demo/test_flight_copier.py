"""The demo's copier, on a broker in this process; how it is killed stands in `test_exactly_once.py`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Literal

import pytest

from odradek import Admin, ClientError, Consumer, NewTopic, Producer, TopicPartition, serving
from odradek.spark_jobs.demo import flight_copier
from odradek.spark_jobs.demo.flight_copier import copy

CARRIERS: Final = (b"AA", b"DL", b"UA")
Isolation = Literal["read_committed", "read_uncommitted"]
COPIES: Final = [TopicPartition("copies", partition) for partition in range(4)]


@asynccontextmanager
async def flights(count: int) -> AsyncGenerator[str]:
    async with serving(memory=True, config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("flights", 1, 1), NewTopic("copies", 4, 1)])
        await send(broker.bootstrap_servers, range(count))
        yield broker.bootstrap_servers


async def send(bootstrap: str, numbers: range) -> None:
    async with Producer(bootstrap) as producer:
        values = [b"%d" % number for number in numbers]
        await producer.send_batch("flights", values, [CARRIERS[number % 3] for number in numbers])


def expected(count: int) -> dict[bytes, list[bytes]]:
    return {carrier: [b"%d" % number for number in range(at, count, 3)] for at, carrier in enumerate(CARRIERS)}


async def copies(bootstrap: str, count: int, isolation_level: Isolation = "read_committed") -> dict[bytes, list[bytes]]:
    """Each carrier's, in the order of reading, as soon as there are `count` of them."""
    found: dict[bytes, list[bytes]] = {carrier: [] for carrier in CARRIERS}
    async with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level=isolation_level) as reader:
        reader.assign(COPIES)
        async with asyncio.timeout(60):
            while sum(map(len, found.values())) < count:
                for record in (await reader.get_batch()).records:
                    found[record.key or b""].append(record.value)
    return found


async def test_copies_are_committed_by_carrier_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """In transactions of 7, and a last one that ends since no more flights come; the group's offset goes with them."""
    monkeypatch.setattr(flight_copier, "FLIGHTS_IN_TRANSACTION", 7)
    async with flights(60) as bootstrap:
        copying = asyncio.create_task(copy(bootstrap, "flights", "copies", "copier"))
        assert await copies(bootstrap, 60) == expected(60)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        async with Admin(bootstrap) as admin:
            offsets = (await admin.list_group_offsets(["copier"]))["copier"]
            ends = await admin.list_offsets(dict.fromkeys(COPIES, -1))
        assert {place: each.offset for place, each in offsets.items()} == {TopicPartition("flights", 0): 60}
        markers = sum(each.offset for each in ends.values()) - 60
        assert markers >= 60 / 7, "one at least of each transaction"


async def test_what_was_open_when_a_copier_ended_is_copied_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that waits for more flights ends with its copier: neither copies nor offsets of it count."""
    async with flights(60) as bootstrap:
        with monkeypatch.context() as patch:
            patch.setattr(flight_copier, "POLL_TIMEOUT_MS", 600_000.0)
            copying = asyncio.create_task(copy(bootstrap, "flights", "copies", "copier"))
            assert await copies(bootstrap, 60, "read_uncommitted") == expected(60)
            copying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await copying
        copying = asyncio.create_task(copy(bootstrap, "flights", "copies", "copier"))
        assert await copies(bootstrap, 60) == expected(60)
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying


async def test_the_next_copier_of_a_name_goes_on_and_fences_the_one_before() -> None:
    """At once, though that one has not left the group; each flight is copied once."""
    async with flights(60) as bootstrap:
        first = asyncio.create_task(copy(bootstrap, "flights", "copies", "copier"))
        await copies(bootstrap, 60)
        second = asyncio.create_task(copy(bootstrap, "flights", "copies", "copier"))
        with pytest.raises(ClientError) as fenced:
            await asyncio.wait_for(first, 60)
        assert fenced.value.fatal
        await send(bootstrap, range(60, 120))
        assert await copies(bootstrap, 120) == expected(120)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
