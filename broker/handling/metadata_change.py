"""Changes of the cluster's metadata for a request: whole, true at once, and with Kafka's errors.

Whole: a change of several commits goes on when the client that asked for it is gone, or when the request's time is up:
the client is told REQUEST_TIMED_OUT then, and finds out later what became of it. A request without any time is the
same: librdkafka sends 0 to say that it does not want to wait, and takes that error for a change under way. True at
once: the answer waits until the image has followed, so that the next request sees the change.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.broker.cluster.store import Conflict, LeaseLost, StoreClosed, TooLarge
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError

Commit = Callable[[], Coroutine[Any, Any, int]]
"""Starts a change; its result is the revision at which all of it is visible."""


class MetadataChange:
    """The changes of one request, which share its deadline."""

    __slots__ = ("_call", "_context", "_deadline_ms")

    def __init__(self, context: Context, call: Call, timeout_ms: float) -> None:
        self._context = context
        self._call = call
        self._deadline_ms = context.environment.monotonic_ms() + timeout_ms

    async def apply(self, commit: Commit) -> None:
        """Returns once the change is stored and visible.

        Raises KafkaError: REQUEST_TIMED_OUT, and what the commit raises or stands for: NOT_CONTROLLER (others were
        faster: try again), INVALID_REQUEST (too large), KAFKA_STORAGE_ERROR, BROKER_NOT_AVAILABLE (the broker stops).
        """
        remaining_ms = max(0.0, self._deadline_ms - self._context.environment.monotonic_ms())
        try:
            with self._context.waiting(self._call):
                async with asyncio.timeout(remaining_ms / 1000):
                    error = await self._context.shielded(self._apply(commit))
        except TimeoutError:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT, "the change takes longer than the time given; it goes on"
            ) from None
        if error is not None:
            raise error

    async def _apply(self, commit: Commit) -> KafkaError | None:
        """The error is returned: raised in a task that nobody awaits any more, it would be logged as our failure."""
        try:
            await self._context.metadata.applied(await commit())
        except KafkaError as error:
            return error
        except (Conflict, LeaseLost) as error:
            return KafkaError(ErrorCode.NOT_CONTROLLER, f"the metadata was changed by others meanwhile: {error}")
        except TooLarge as error:
            return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
        except StoreClosed as error:
            return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
        except OSError as error:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata could not be stored: {error}")
        return None
