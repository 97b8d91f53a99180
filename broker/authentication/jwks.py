"""The keys of the issuer of tokens, kept up to date (`sasl.oauthbearer.jwks.endpoint.url`): a file, or by HTTPS.

They are read at the start, every `…refresh.ms`, and sooner for a token with an unknown `kid`: the issuer may have new
keys. But at most once in `ASKED_EARLY_MS`, whatever the `kid`, for anybody can make them up. The token itself is
refused meanwhile, and its client comes again. After a failure it is tried again, with a pause that doubles, and the
keys known before stay. (RefreshingHttpsJwks.java, which fetches once for each `kid`.)
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from odradek.broker.authentication.https_fetch import fetch
from odradek.broker.authentication.token_signatures import MalformedJwks, VerificationKey, read_jwks
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

ASKED_EARLY_MS: Final = 60_000.0
FILE_SCHEME: Final = "file:"

Read = Callable[[], bytes]
"""Reads what stands behind a URL, in a helper thread. Raises OSError."""


class JwksTimes(NamedTuple):
    """How often keys are asked for, in ms."""

    refresh_ms: int
    retry_ms: int
    retry_max_ms: int


def reader_of(url: str, disk: Disk, environment: Environment) -> Read:
    """How what stands behind this URL is read. Raises ValueError."""
    if url.startswith(FILE_SCHEME):
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ValueError(f"{url} is no file of this machine: write file:/PATH")
        return partial(disk.read_whole, unquote(parts.path))
    return partial(fetch, url, environment.precise_s)


class Jwks:
    """The newest keys behind one URL."""

    def __init__(self, url: str, read: Read, times: JwksTimes, environment: Environment) -> None:
        self._url = url
        self._read = read
        self._times = times
        self._environment = environment
        self._wanted = asyncio.Event()
        self._asked_early_ms = -ASKED_EARLY_MS
        self.keys: tuple[VerificationKey, ...] = ()
        """None before they could be read."""

    async def load(self) -> None:
        """Reads them for the first time. Raises OSError, MalformedJwks for a file: that is the operator's. Who is asked
        by HTTPS may be away for a while, and is asked again."""
        try:
            await self._refresh()
        except (OSError, MalformedJwks) as error:
            if self._url.startswith(FILE_SCHEME):
                raise
            logger.error("no token is taken yet, for the keys of %s cannot be read: %s", self._url, error)

    def want(self) -> None:
        """A token has named a key that is not there."""
        now_ms = self._environment.monotonic_ms()
        if now_ms - self._asked_early_ms >= ASKED_EARLY_MS:
            self._asked_early_ms = now_ms
            self._wanted.set()

    async def keep(self) -> None:
        """Reads them again and again, for as long as the broker runs."""
        failures = 0
        wait_ms = self._times.refresh_ms if self.keys else self._times.retry_ms
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._refresh()
            except Exception as error:  # noqa: BLE001 - whatever it is, without keys nobody comes in
                wait_ms = min(self._times.retry_ms * 2 ** min(failures, 32), self._times.retry_max_ms)
                failures += 1
                self._tell(failures, error)
            else:
                failures, wait_ms = 0, self._times.refresh_ms

    async def _refresh(self) -> None:
        """Raises OSError, MalformedJwks."""
        self.keys = read_jwks(await self._environment.run_blocking(self._read))

    def _tell(self, failures: int, error: Exception) -> None:
        """The 1st, 2nd, 4th, … failure in a row."""
        level = logging.DEBUG if failures & (failures - 1) else logging.ERROR
        logger.log(
            level, "the keys of %s could not be read, and those known before stay: %s: %s",
            self._url, type(error).__name__, error,
        )  # fmt: skip
