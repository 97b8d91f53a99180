"""`Delivery`: the promise that an accepted record ends, which its sender may await, watch, or drop.

It is no more than the result of a batch and an index in it: it holds no future, costs nothing while nobody waits, and
when nobody keeps it, it is gone. An await that has to wait brings a future of its own. So cancelling one wait touches
neither the record nor other waits, and a delivery can be awaited any number of times, from several tasks, before and
after its end. (Source: Java's FutureRecordMetadata.)
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from contextvars import Context, copy_context
from typing import NoReturn

from odradek.client.arguments import require_callback
from odradek.client.errors.client_errors import ClientError, DeliveryPending
from odradek.client.producer.results.produce_results import Ack, ProduceResult, Results, all_ended

__all__ = ["Ack", "Callback", "Delivery", "Results", "wait_for_all"]

Callback = Callable[["Delivery"], object]


class Delivery:
    """The promise that one accepted record ends: by an acknowledgement, an error, or `delivery_timeout_ms`.

    Awaiting it gives the `Ack` or raises a ClientError. It belongs to the event loop of its producer.
    """

    __slots__ = ("batch_index", "batch_result")

    def __init__(self, batch_result: ProduceResult, batch_index: int) -> None:
        self.batch_result = batch_result
        self.batch_index = batch_index

    @property
    def topic(self) -> str:
        return self.batch_result.topic

    @property
    def partition(self) -> int:
        return self.batch_result.partition

    def done(self) -> bool:
        """Whether the record has ended."""
        result = self.batch_result
        if result.parts is not None:
            self._locate()
        return self.batch_result.is_done

    def cancelled(self) -> bool:
        """Never: an accepted record cannot be taken back. Here because `asyncio.wait` asks."""
        return False

    def result(self) -> Ack:
        """The Ack. Raises the record's error, and DeliveryPending when it has not ended."""
        if not self.done():
            raise DeliveryPending(self.batch_result.topic, self.batch_result.partition)
        return self.batch_result.ack(self.batch_index)

    def exception(self) -> ClientError | None:
        """The record's error, None when it is acknowledged. Raises DeliveryPending when it has not ended."""
        if not self.done():
            raise DeliveryPending(self.batch_result.topic, self.batch_result.partition)
        error = self.batch_result.error_of(self.batch_index)
        return None if error is None else error.fresh()

    def add_done_callback(self, function: Callback, *, context: Context | None = None) -> None:
        """Calls `function(delivery)` when the record ends, soon if it has ended already; in the caller's context.

        Raises TypeError for what is no callable, or a coroutine function, which nobody would await.
        """
        require_callback("the callback", function, "delivery")
        context = copy_context() if context is None else context
        loop = self.batch_result.owner.running_loop()
        if self.done():
            self.batch_result.observe((self.batch_index,))
            loop.call_soon(function, self, context=context)
        else:
            self.batch_result.add_callback(self.batch_index, function, self, context, True)

    def add_watcher(self, function: Callback) -> None:
        """A callback that is called before others, of a record just accepted. What it sees does not count as seen."""
        self.batch_result.add_callback(self.batch_index, function, self, copy_context(), False)

    def peek(self) -> ClientError | None:
        """The error of a record that has ended, without a look that counts."""
        if self.batch_result.parts is not None:
            self._locate()
        return self.batch_result.peek(self.batch_index)

    def remove_done_callback(self, function: Callback) -> int:
        """Removes what equals `function` from the record's callbacks, and returns how many."""
        return 0 if self.done() else self.batch_result.remove_callback(self.batch_index, function)

    def __await__(self) -> Generator[asyncio.Future[None], None, Ack]:
        while not self.batch_result.is_done:
            if self.batch_result.parts is not None:
                self._locate()
                continue
            result = self.batch_result
            waiter = result.waiter(self.batch_index)
            try:
                yield from waiter
            finally:
                result.forget(waiter)
        return self.batch_result.ack(self.batch_index)

    def __repr__(self) -> str:
        if not self.done():
            state = "pending"
        elif self.batch_result.error is None:
            offset = self.batch_result.ack(self.batch_index).offset
            state = f"offset {offset}" if offset >= 0 else "offset unknown"
        else:
            state = "failed"  # without a look at the error, which would count as one
        return f"<Delivery to {self.batch_result.topic}-{self.batch_result.partition}: {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Delivery belongs to its producer and cannot be pickled; await it and send its Ack")

    def _locate(self) -> None:
        self.batch_result, self.batch_index = self.batch_result.locate(self.batch_index)


async def wait_for_all(deliveries: Iterable[Delivery]) -> None:
    """Returns when all of them have ended. The caller looks at each then."""
    found: dict[ProduceResult, list[int]] = {}
    for delivery in deliveries:
        found.setdefault(delivery.batch_result, []).append(delivery.batch_index)
    if found:
        await all_ended(next(iter(found)).owner, found.items())
