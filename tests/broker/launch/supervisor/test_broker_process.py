"""A broker's process, within a test: its start waits for a store that takes no change, as long as that is wanted."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.state import Prepared
from odradek.broker.launch.supervisor import broker_process
from odradek.broker.launch.supervisor.broker_process import BrokerProcess
from odradek.broker.launch.supervisor.control import STOP, Control, Message, control_of
from odradek.runtime.environment import Environment
from tests.broker.cluster.socket_store.served import served_at, until


class SmallStore(MemoryStore):
    """On a device that may be full."""

    has_room = False
    refused_count = 0

    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        if not self.has_room:
            self.refused_count += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return await super()._change(prepare)


class Running:
    """The process, its supervisor's end of the lifeline, and what it has told there."""

    def __init__(self, told: list[Message], control: Control, ends: asyncio.Task[int]) -> None:
        self.told = told
        self.control = control
        self.ends = ends


@asynccontextmanager
async def process_on(directory: Path, store: SmallStore, timeout_ms: int = 60_000) -> AsyncGenerator[Running]:
    """Not waited for. `timeout_ms`: how long its start waits for the store."""
    async with served_at(directory, store) as served:
        ours, theirs = socket.socketpair()
        for each in (ours, theirs):
            each.setblocking(False)
        told: list[Message] = []
        control = await control_of(ours, told.append, lambda: None)
        static = {
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "metadata.store": f"unix:{served.path}",
            "initial.broker.registration.timeout.ms": str(timeout_ms),
        }
        begin: Message = {"static": static, "by_reference": [], "memory": True, "metrics": None}
        process = BrokerProcess(begin, Environment())
        ends = asyncio.create_task(process.run(theirs, []))
        try:
            yield Running(told, control, ends)
        finally:
            control.tell({"do": STOP})
            async with asyncio.timeout(10):
                await ends
            control.close()


async def test_a_start_goes_on_when_the_store_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_process, "START_RETRY_S", 0.01)
    store = SmallStore()
    async with process_on(tmp_path, store) as process:
        await until(lambda: store.refused_count >= 2)
        assert process.told == []
        assert caplog.text.count("the start waits for the metadata store to take a change, 60 s at most") == 1
        assert os.strerror(errno.ENOSPC) in caplog.text
        store.has_room = True
        await until(lambda: bool(process.told))
        assert list(process.told[0]) == ["ready"]


async def test_an_order_to_stop_ends_the_wait(tmp_path: Path) -> None:
    store = SmallStore()
    async with process_on(tmp_path, store) as process:
        await until(lambda: store.refused_count >= 1)
        process.control.tell({"do": STOP})
        async with asyncio.timeout(5):
            assert await process.ends == 0
        assert process.told == []


async def test_a_start_gives_up_when_that_takes_too_long(tmp_path: Path) -> None:
    async with process_on(tmp_path, SmallStore(), timeout_ms=0) as process:
        assert await process.ends == 1
        await until(lambda: bool(process.told))
        assert os.strerror(errno.ENOSPC) in process.told[0]["failed"]
