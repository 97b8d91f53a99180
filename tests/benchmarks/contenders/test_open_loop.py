"""Sends begin when they are due, wait for nothing, and their latency counts from there: with senders of a few lines."""

import asyncio
import time

import pytest

from benchmarks.contenders.open_loop import drive, dues_of


def test_dues_lie_at_even_distances() -> None:
    assert dues_of(4, 2.0, 10.0) == [10.0, 10.5, 11.0, 11.5]


async def test_latency_is_that_of_the_send_and_the_sends_overlap() -> None:
    sent: list[bytes] = []
    under_way = most_under_way = 0

    async def send(value: bytes) -> None:
        nonlocal under_way, most_under_way
        sent.append(value)
        under_way += 1
        most_under_way = max(most_under_way, under_way)
        await asyncio.sleep(0.2)  # the broker's time
        under_way -= 1

    values = [bytes((number,)) for number in range(20)]
    started = time.monotonic()
    latencies = await drive(send, values, dues_of(20, 200.0, started + 0.05))
    assert sent == values
    assert len(latencies) == 20
    assert min(latencies) >= 0.19
    assert most_under_way > 10
    assert time.monotonic() - started < 2.0


async def test_what_falls_due_in_a_pause_waits_from_then_on() -> None:
    """The first send holds the whole loop up for 300 ms; the others were due meanwhile, 20 ms apart."""

    async def send(value: bytes) -> None:
        if value == b"first":
            time.sleep(0.3)  # the pause

    begin = time.monotonic() + 0.05
    latencies = await drive(send, [b"first", *[b""] * 10], dues_of(11, 50.0, begin))
    for number, latency in enumerate(latencies):
        assert latency >= 0.3 - 0.02 * number - 0.001, number


async def test_a_send_that_fails_ends_the_run() -> None:
    async def send(value: bytes) -> None:
        raise ConnectionError(value.decode())

    with pytest.raises(ConnectionError, match="no"):
        await drive(send, [b"no"], dues_of(1, 100.0, time.monotonic()))
