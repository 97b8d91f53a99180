"""What keeps the TLS of all listeners up to date while the broker runs: files that change, options that are altered,
and certificates that come to their end.

Files are looked at every ten seconds, outside of the loop, by their content: a link that points elsewhere is a change,
too. What is refused is told once as an ERROR, and stays in the metrics until something that can be used comes. That a
certificate ends is a WARNING from thirty days before, once a day.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from odradek.broker.tls.listener_tls import ListenerTls, Loaded
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import TlsSettings
from odradek.runtime.environment import Environment

logger = logging.getLogger(__name__)

CHECK_MS: Final = 10_000.0
WARN_DAYS: Final = 30
DAY_MS: Final = 24 * 60 * 60 * 1000.0


class TlsUpkeep:
    """See the module."""

    def __init__(
        self, listeners: Sequence[ListenerTls], settings_of: Callable[[str], TlsSettings], environment: Environment
    ) -> None:
        """`settings_of`: what the options say now of the listener of this name."""
        self._listeners = listeners
        self._settings_of = settings_of
        self._environment = environment
        self._altered = asyncio.Event()
        self._warned_ms: float | None = None

    def wake(self) -> None:
        """Options may have been altered."""
        self._altered.set()

    async def run(self) -> None:
        """Goes on until it is cancelled, whatever goes wrong."""
        while True:
            self._altered.clear()
            for listener in self._listeners:
                await self.reload(listener)
            self._warn_of_expiry()
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_MS / 1000.0):
                    await self._altered.wait()

    async def reload(self, listener: ListenerTls) -> bool:
        """Takes what is newer, if there is anything; whether it did. What may not be taken is told."""
        try:
            settings = self._settings_of(listener.name)
            newer = await self._environment.run_blocking(listener.renewed, settings)
        except TlsError as error:
            self._refused(listener, str(error))
            return False
        except Exception as error:  # the old certificates count, and the next look comes
            self._refused(listener, f"{type(error).__name__} while they were read")
            logger.error("listener %s: its certificates could not be read again", listener.name, exc_info=error)
            return False
        if newer is None:
            listener.refused = None
            return False
        self._take(listener, newer)
        return True

    def _take(self, listener: ListenerTls, newer: Loaded) -> None:
        listener.take(newer)
        days = listener.days_left(self._environment.now_ms())
        logger.info(
            "listener %s: new connections get the certificate of %r, which ends in %d days",
            listener.name,
            newer.material.own.chain[0].name,
            days,
        )
        self._warned_ms = None

    def _refused(self, listener: ListenerTls, why: str) -> None:
        if listener.refused != why:
            logger.error("listener %s: its new certificates are refused, and the old ones stay: %s", listener.name, why)
        listener.refused = why

    def _warn_of_expiry(self) -> None:
        now_ms = self._environment.monotonic_ms()
        if self._warned_ms is not None and now_ms - self._warned_ms < DAY_MS:
            return
        self._warned_ms = now_ms
        for listener in self._listeners:
            days = listener.days_left(self._environment.now_ms())
            if days <= 0:
                logger.warning("listener %s: its certificate has ended, and clients refuse it", listener.name)
            elif days <= WARN_DAYS:
                logger.warning("listener %s: its certificate ends in %d days", listener.name, days)
