"""Follows what changes in etcd: one feed at a time, and another one, from where we are, when it breaks.

What etcd sends for one revision may come in several replies, and one reply may hold many revisions. So a feed collects
up to the last fragment, and here it is taken apart by revision. A feed that breaks between two fragments leaves nothing
half told, for the next one begins behind the last revision that was told whole.

What answers then may be another etcd, an older one whose revision others have moved beyond ours. So when the next feed
has begun (not before: it could break and begin elsewhere in between) a change without events tells whoever watches to
look whether it is the same store.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

from odradek.broker.cluster.etcd.client import Client
from odradek.broker.cluster.etcd.feed import Feed
from odradek.broker.cluster.etcd.member import CallFailed
from odradek.broker.cluster.etcd.messages import WATCH, WatchEvent, watch_request
from odradek.broker.cluster.store import Change, Event, StoreClosed
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

RETRY_MS: Final = 50.0
RETRY_MS_MAX: Final = 1000.0


class Watches:
    """The watches of one store, until it is closed."""

    def __init__(self, client: Client, tasks: Tasks, check_history: Callable[[int], Awaitable[None]]) -> None:
        """`check_history` raises StoreWentBack where etcd never was at a revision, in its present life."""
        self._client = client
        self._check_history = check_history
        self._tasks = tasks
        self._feeds: dict[Feed, None] = {}
        self._closed = asyncio.Event()

    async def changes(
        self, start: bytes, end: bytes, after: int, to_event: Callable[[WatchEvent], Event]
    ) -> AsyncGenerator[Change, None]:
        """Every change to keys from `start` up to `end` after a revision, and one without events whenever a feed has
        taken the place of one that broke. Ends with the store.

        Raises Compacted, StoreWentBack.
        """
        trouble = _Trouble()
        is_first = True
        while not self._closed.is_set():
            feed: Feed | None = None
            try:
                await self._check_history(after)  # which also brings a valid token
                feed = await self._open(watch_request(start, end, after + 1))
                is_told = is_first
                while (events := await feed.take()) is not None:
                    trouble.is_over(after)
                    if not is_told:
                        is_told = True
                        yield Change(after, ())
                    is_first = False
                    for change in _by_revision(events, to_event):
                        yield change
                        after = change.revision
                        if self._has_ended():
                            return
                return
            except StoreClosed:
                return
            except (CallFailed, OSError) as error:
                if self._has_ended():
                    return
                trouble.tell(error, after)
                if feed is not None:
                    self._client.members.failed(feed.member)
            finally:
                self._drop(feed)
            await self._pause(trouble.next_retry_ms())

    def close(self) -> None:
        """Ends every one."""
        self._closed.set()
        for feed in self._feeds:
            feed.end()
            feed.close()

    async def _open(self, request: bytes) -> Feed:
        """Raises CallFailed, OSError, StoreClosed."""
        client = self._client
        client.check_open()
        deadline_ms = client.environment.monotonic_ms() + client.request_timeout_ms
        member = await client.members.connected(deadline_ms)
        stream = member.stream(WATCH, await client.metadata(member, deadline_ms))
        stream.send(request)
        if self._has_ended():
            stream.cancel()
            raise StoreClosed("the metadata store is closed")
        feed = Feed(member, stream, client.environment, client.request_timeout_ms)
        self._feeds[feed] = None
        feed.start(self._tasks)
        return feed

    def _drop(self, feed: Feed | None) -> None:
        if feed is not None:
            self._feeds.pop(feed, None)
            feed.close()

    def _has_ended(self) -> bool:
        return self._closed.is_set()

    async def _pause(self, pause_ms: float) -> None:
        try:
            async with asyncio.timeout(pause_ms / 1000.0):
                await self._closed.wait()
        except TimeoutError:
            return


class _Trouble:
    """Says once that changes do not come, and once that they come again. Feeds are tried at growing distances."""

    def __init__(self) -> None:
        self._retry_ms = 0.0

    def tell(self, error: Exception, after: int) -> None:
        if not self._retry_ms:
            logger.warning("etcd's changes after revision %d do not come, and are asked for again: %s", after, error)

    def next_retry_ms(self) -> float:
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX) or RETRY_MS
        return self._retry_ms

    def is_over(self, after: int) -> None:
        if self._retry_ms:
            logger.info("etcd's changes after revision %d come again", after)
        self._retry_ms = 0.0


def _by_revision(events: Iterable[WatchEvent], to_event: Callable[[WatchEvent], Event]) -> Iterator[Change]:
    for revision, group in groupby(events, lambda event: event.entry.revision):
        yield Change(revision, tuple(to_event(event) for event in group))
