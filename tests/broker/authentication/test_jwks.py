"""The issuer's keys, kept up to date: how often they are asked for, at most, and that nothing ends that."""

import logging
from collections.abc import Callable
from itertools import pairwise

import pytest

from odradek.broker.authentication.jwks import ASKED_EARLY_MS, Jwks, JwksTimes, reader_of
from odradek.broker.authentication.token_signatures import MalformedJwks
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.runtime.tasks import Tasks
from tests.broker.authentication.tokens import Key, jwks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time(seconds_max=100_000)

URL = "https://idp.example/keys"
TIMES = JwksTimes(refresh_ms=3_600_000, retry_ms=100, retry_max_ms=10_000)
OLD, NEW = (jwks(Key("ES256", kid).described()) for kid in ("old", "new"))


class Issuer:
    """What stands behind the URL, and when it was asked."""

    def __init__(self, data: bytes = OLD, url: str = URL) -> None:
        self.environment = VirtualEnvironment()
        self.tasks = Tasks(self.environment.loop)
        self.data: bytes | Exception = data
        self.asked_ms: list[float] = []
        self.jwks = Jwks(url, self.read, TIMES, self.environment)
        self.began_ms = self.environment.monotonic_ms()

    def read(self) -> bytes:
        self.asked_ms.append(self.environment.monotonic_ms() - self.began_ms)
        if isinstance(self.data, Exception):
            raise self.data
        return self.data

    @property
    def kids(self) -> list[str | None]:
        return [key.kid for key in self.jwks.keys]

    async def started(self) -> None:
        await self.jwks.load()
        self.tasks.start(self.jwks.keep(), "keep")


async def test_keys_are_read_at_the_start_and_every_so_often() -> None:
    issuer = Issuer()
    await issuer.started()
    assert issuer.kids == ["old"]
    issuer.data = NEW
    await issuer.environment.sleep(TIMES.refresh_ms - 10)
    assert issuer.kids == ["old"]
    await issuer.environment.sleep(20)
    assert issuer.kids == ["new"], "a key that was rotated away is gone"
    await issuer.environment.sleep(TIMES.refresh_ms)
    assert len(issuer.asked_ms) == 3
    await issuer.tasks.close()


async def test_an_unknown_key_has_them_read_early_once_a_minute_at_most() -> None:
    """Whatever the kid: anybody can make one up."""
    issuer = Issuer()
    await issuer.started()
    issuer.data = NEW
    issuer.jwks.want()
    await issuer.environment.sleep(10)
    assert issuer.kids == ["new"]
    for _ in range(2 * int(ASKED_EARLY_MS) // 100 - 10):
        issuer.jwks.want()
        await issuer.environment.sleep(100)
    assert len(issuer.asked_ms) == 3
    await issuer.tasks.close()


async def test_after_a_failure_it_is_tried_again_with_pauses_that_double(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()
    await issuer.started()
    issuer.data = OSError("no route")
    with caplog.at_level(logging.ERROR):
        await issuer.environment.sleep(TIMES.refresh_ms + 60_000)
        failed = issuer.asked_ms[1:]
        pauses = [round(after - before, -2) for before, after in pairwise(failed)]
        assert pauses[:9] == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        assert issuer.kids == ["old"], "those known before stay"
        issuer.data = NEW
        await issuer.environment.sleep(11_000)
    assert issuer.kids == ["new"]
    lines = [record.getMessage() for record in caplog.records]
    assert 3 <= len(lines) <= 5, "the 1st, 2nd, 4th and 8th"
    assert all("no route" in line and URL in line for line in lines)
    await issuer.tasks.close()


@pytest.mark.parametrize(
    "failure",
    [
        OSError("x"),
        ValueError("x"),
        KeyError("x"),
        RecursionError(),
        MemoryError(),
        AssertionError("nobody foresaw it"),
    ],
)
async def test_no_failure_ends_the_upkeep(failure: Exception) -> None:
    issuer = Issuer()
    await issuer.started()
    for data in (failure, b"<html>", failure):
        issuer.data = data
        await issuer.environment.sleep(TIMES.refresh_ms)
    issuer.data = NEW
    await issuer.environment.sleep(TIMES.refresh_ms)
    assert issuer.kids == ["new"]
    await issuer.tasks.close()


async def test_an_issuer_that_is_away_at_the_start_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()
    issuer.data = OSError("no route")
    with caplog.at_level(logging.ERROR):
        await issuer.started()
    assert "no token is taken yet" in caplog.text
    assert issuer.kids == []
    issuer.data = OLD
    await issuer.environment.sleep(200)
    assert issuer.kids == ["old"]
    await issuer.tasks.close()


@pytest.mark.parametrize(("data", "error"), [(OSError("gone"), OSError), (b"{}", MalformedJwks)])
async def test_a_file_that_cannot_be_used_at_the_start_is_an_error(
    data: bytes | Exception, error: type[Exception]
) -> None:
    issuer = Issuer(url="file:///keys.json")
    issuer.data = data
    with pytest.raises(error):
        await issuer.jwks.load()


@pytest.mark.parametrize(
    "url", ["file:/etc/my%20keys.json", "file:///etc/my%20keys.json", "file://localhost/etc/my%20keys.json"]
)
async def test_a_file_is_read_from_the_disk(url: str) -> None:
    disk = MemoryDisk()
    disk.make_dir("/etc")
    disk.write_whole("/etc/my keys.json", OLD)
    read: Callable[[], bytes] = reader_of(url, disk, VirtualEnvironment())
    assert read() == OLD


@pytest.mark.parametrize("url", ["file:keys.json", "file://other/keys.json", "file:"])
async def test_what_is_no_file_of_this_machine(url: str) -> None:
    with pytest.raises(ValueError, match="is no file of this machine"):
        reader_of(url, MemoryDisk(), VirtualEnvironment())
