"""Certificates are read again while a broker runs; what is refused is told once, and what ends is told each day."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from odradek.broker.tls.listener_tls import ListenerTls, load
from odradek.broker.tls.tls_settings import TlsSettings
from odradek.broker.tls.upkeep import DAY_MS, TlsUpkeep
from odradek.runtime.environment import Environment
from tests.broker.tls.authority import Authority, Issued, tls_settings
from tests.broker.until import until

FILE: dict[str, Any] = {"ssl_keystore_type": "PEM", "ssl_keystore_location": "own"}


class Clock(Environment):
    """Whose clocks the test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_ms = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + int(self.passed_ms)

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() + self.passed_ms


class Kept:
    """A listener whose file the test writes, and its upkeep."""

    def __init__(self, issued: Issued) -> None:
        self.content = issued.pem.encode()
        self.settings = tls_settings(**FILE)
        self.environment = Clock()
        self.listener: ListenerTls = load(self.settings, lambda _: self.content, is_inter_broker=False)
        self.upkeep = TlsUpkeep([self.listener], self._settings_of, self.environment)

    def _settings_of(self, name: str) -> TlsSettings:
        assert name == "OUTSIDE"
        return self.settings

    async def look(self) -> bool:
        return await self.upkeep.reload(self.listener)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("authority")


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


async def test_what_is_broken_is_told_once_and_the_old_stays(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(authority.issue("broker"))
    before, good = kept.listener.context, kept.content
    kept.content = good[:-200]
    for _ in range(3):
        assert not await kept.look()
    assert kept.listener.context is before
    assert kept.listener.refused is not None
    (line,) = lines(caplog, logging.ERROR)
    assert line.startswith("listener OUTSIDE: its new certificates are refused, and the old ones stay: ")
    kept.content = good
    assert not await kept.look()
    assert kept.listener.refused is None, "nothing is newer than what counts"
    kept.content = authority.issue("broker").pem.encode()
    assert await kept.look()
    assert kept.listener.context is not before


async def test_nothing_unforeseen_ends_it(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept(authority.issue("broker"))

    def fail(name: str) -> TlsSettings:
        raise RuntimeError(name)

    upkeep = TlsUpkeep([kept.listener], fail, kept.environment)
    async with running(upkeep):
        await until(lambda: lines(caplog, logging.ERROR))
    assert kept.listener.refused == "RuntimeError while they were read"
    assert "could not be read again" in lines(caplog, logging.ERROR)[1]


@asynccontextmanager
async def running(upkeep: TlsUpkeep) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(upkeep.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_altered_option_is_looked_at_at_once(authority: Authority) -> None:
    kept = Kept(authority.issue("broker"))
    before = kept.listener.context
    async with running(kept.upkeep):
        await asyncio.sleep(0.05)
        assert kept.listener.context is before
        kept.settings = tls_settings(**authority.issue("broker").as_values())
        kept.upkeep.wake()
        await until(lambda: kept.listener.context is not before)


@pytest.mark.parametrize(
    ("days", "line"),
    [
        (40.5, None),
        (29.5, "listener OUTSIDE: its certificate ends in 29 days"),
        (-0.5, "listener OUTSIDE: its certificate has ended, and clients refuse it"),
    ],
)
async def test_a_certificate_that_ends_is_told_once_a_day(
    days: float, line: str | None, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(authority.issue("broker", days=(-1, days)))
    expected = [] if line is None else [line]
    async with running(kept.upkeep):
        await asyncio.sleep(0.05)
        assert lines(caplog, logging.WARNING) == expected
        kept.upkeep.wake()
        await asyncio.sleep(0.05)
        assert lines(caplog, logging.WARNING) == expected
        kept.environment.passed_ms += DAY_MS
        kept.upkeep.wake()
        await asyncio.sleep(0.05)
        assert len(lines(caplog, logging.WARNING)) == 2 * len(expected)
