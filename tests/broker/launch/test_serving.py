"""A broker within another program: it serves, nothing is left when it is closed, and the process stays as it is."""

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from odradek import Producer, ServedBroker, serving, serving_in_thread
from odradek.broker.config.broker_config import ConfigError
from odradek.broker.startup_errors import StartRefused

ROUNDS = 12
GROWTH_BYTES = 3 * 1024 * 1024
"""Of `ROUNDS` starts and stops, after a few: what allocators keep. One broker takes more than that."""


async def sent(broker: ServedBroker, topic: str, *values: bytes) -> list[int]:
    """Offsets of the records."""
    async with Producer(broker.bootstrap_servers) as producer:
        deliveries = [await producer.send(topic, value, partition=0) for value in values]
        return [(await delivery).offset for delivery in deliveries]


async def test_a_program_sends_to_its_own_broker() -> None:
    async with serving(memory=True) as broker:
        assert await sent(broker, "orders", b"a", b"b") == [0, 1]
        assert broker.failure is None


async def test_several_stand_side_by_side_and_know_nothing_of_one_another() -> None:
    async with serving(memory=True) as one, serving(memory=True, node_id=7) as other:
        assert one.bootstrap_servers != other.bootstrap_servers
        assert (one.node_id, other.node_id) == (0, 7)
        assert await sent(one, "orders", b"a", b"b") == [0, 1]
        assert await sent(other, "orders", b"c") == [0]


async def test_what_was_sent_is_there_when_it_is_served_again(tmp_path: Path) -> None:
    for expected in ([0, 1], [2, 3]):
        async with serving(tmp_path / "data") as broker:
            assert await sent(broker, "orders", b"a", b"b") == expected


def test_in_a_thread_it_serves_a_program_without_a_loop() -> None:
    with serving_in_thread(memory=True, config={"num.partitions": "3"}) as broker:
        assert asyncio.run(sent(broker, "orders", b"a")) == [0]
        names = [thread.name for thread in threading.enumerate()]
        assert "odradek broker" in names
    assert "odradek broker" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("is_threaded", [False, True])
async def test_what_cannot_start_says_why_and_leaves_nothing(is_threaded: bool) -> None:
    async with serving(memory=True) as first:
        for listen, data, error, reason in (
            (first.bootstrap_servers, {"memory": True}, StartRefused, "cannot listen on"),
            ("127.0.0.1:0", {}, ConfigError, "either data_dir"),
            ("127.0.0.1:0", {"memory": True, "config": {"no.such.option": "1"}}, ConfigError, "no.such.option"),
        ):
            with pytest.raises(error, match=reason):
                if is_threaded:
                    with serving_in_thread(listen=listen, **data):  # pyright: ignore
                        pass
                else:
                    async with serving(listen=listen, **data):  # pyright: ignore
                        pass


async def test_an_error_in_the_block_closes_it_and_goes_on() -> None:
    kept: list[ServedBroker] = []
    with pytest.raises(LookupError):
        async with serving(memory=True) as broker:
            kept.append(broker)
            raise LookupError
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*kept[0].bootstrap_servers.split(":"))


async def test_closing_leaves_no_task_no_socket_no_thread_and_no_file(tmp_path: Path) -> None:
    tasks, threads, files = len(asyncio.all_tasks()), threading.active_count(), open_files()
    for number in range(ROUNDS):
        async with serving(tmp_path / f"{number % 2}", metrics="127.0.0.1:0") as broker:
            await sent(broker, "orders", b"x" * 1000)
    await asyncio.sleep(0)  # transports that are closed are let go in the loop's next turn
    assert (len(asyncio.all_tasks()), threading.active_count()) == (tasks, threads)
    assert open_files() == files


async def test_many_starts_and_stops_take_no_more_memory() -> None:
    async def round_of(count: int) -> int:
        for _ in range(count):
            async with serving(memory=True) as broker:
                await sent(broker, "orders", b"x" * 1000)
        gc.collect()
        return resident_bytes()

    before = await round_of(ROUNDS)
    assert await round_of(ROUNDS) - before < GROWTH_BYTES


async def test_the_process_stays_the_programs(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("by the broker"))

    def seen() -> tuple[object, ...]:
        handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            kind = type(loop)
        return *handlers, kind, sys.getswitchinterval(), gc.get_threshold(), gc.isenabled(), *frozen

    before = seen()
    async with serving(memory=True) as broker:
        await sent(broker, "orders", b"a")
        assert seen() == before
    with serving_in_thread(memory=True):
        assert seen() == before
    assert seen() == before
    assert capfd.readouterr().out == ""


def open_files() -> list[str]:
    """What this process has open, by name; sockets and pipes by their kinds, since their numbers differ."""
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if not target.startswith("/proc/"):
                found.append(target.partition(":[")[0])
    return sorted(found)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
