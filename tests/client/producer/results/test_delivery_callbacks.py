"""What is called when a record ends, in whose context, and what counts as a look at a record that failed.

On virtual time, which also shows that no task, timer or unhandled error is left behind.
"""

import asyncio
import copy
import pickle
from collections.abc import Callable
from contextvars import ContextVar, copy_context

import pytest

from odradek.client.errors.client_errors import (
    ClientError,
    ConnectionFailed,
    DeliveryPending,
    UndeliveredRecords,
    WrongLoop,
)
from odradek.client.producer.results.delivery import Delivery, wait_for_all
from tests.client.deliveries import Batch, ack, turns
from tests.client.virtual_time import run_virtual

pytestmark = pytest.mark.virtual_time

USER: ContextVar[str] = ContextVar("USER", default="nobody")


# --------------------------------------------------------------------------------------------------------- callbacks
async def test_a_callback_gets_the_delivery_itself_in_the_context_of_who_registered_it() -> None:
    batch = Batch(2)
    called: list[tuple[Delivery, str]] = []

    def note(delivery: Delivery) -> None:
        called.append((delivery, USER.get()))

    async def sender(name: str, delivery: Delivery) -> None:
        USER.set(name)
        delivery.add_done_callback(note)
        USER.set("changed afterwards")

    USER.set("main")
    await asyncio.gather(*(sender(name, each) for name, each in zip("ab", batch.deliveries, strict=True)))
    batch.complete()
    assert called == [(batch.deliveries[0], "a"), (batch.deliveries[1], "b")]
    assert called[0][0] is batch.deliveries[0]
    # One that comes late is called soon, not within the call, and in its context too.
    await sender("late", batch.deliveries[1])
    assert len(called) == 2
    await turns()
    assert called[2] == (batch.deliveries[1], "late")


async def test_a_callback_may_be_given_a_context() -> None:
    """Before the end and after it."""
    batch = Batch(1)
    called: list[str] = []
    context = copy_context()
    context.run(USER.set, "given")
    for _ in range(2):
        batch.deliveries[0].add_done_callback(lambda _: called.append(USER.get()), context=context)
        if not batch.deliveries[0].done():
            batch.complete()
    await turns()
    assert called == ["given", "given"]


async def test_a_callback_is_a_witness_whether_it_looks_or_not() -> None:
    batch = Batch(2)
    called: list[Delivery] = []
    batch.deliveries[1].add_done_callback(called.append)
    batch.fail()
    assert called == [batch.deliveries[1]]
    assert batch.owner.lost_count == 1


async def test_a_callback_may_send_and_fail_and_wait_no_more(caplog: pytest.LogCaptureFixture) -> None:
    """One that raises is logged; the others are called, and the waits go on."""
    batch = Batch(1)
    called: list[Delivery] = []

    def broken(delivery: Delivery) -> None:
        raise ValueError(f"of {delivery}")

    batch.deliveries[0].add_done_callback(broken)
    batch.deliveries[0].add_done_callback(called.append)
    batch.later(batch.complete)
    assert await batch.deliveries[0] == ack(0)
    assert called == batch.deliveries
    assert "test_a_callback_may_send" in caplog.text
    caplog.clear()


async def test_a_watcher_comes_before_callbacks_and_is_no_witness() -> None:
    batch = Batch(2)
    seen: list[tuple[str, ClientError | None]] = []
    for delivery in batch.deliveries:
        delivery.add_watcher(lambda delivery: seen.append(("watcher", delivery.peek())))
    batch.deliveries[0].add_done_callback(lambda delivery: seen.append(("callback", delivery.exception())))
    batch.fail()
    assert [who for who, _ in seen] == ["watcher", "watcher", "callback"]
    assert all(isinstance(error, ConnectionFailed) for _, error in seen)
    with pytest.raises(UndeliveredRecords) as caught:
        batch.owner.report()
    assert caught.value.count == 1


async def test_a_callback_that_comes_after_the_failure_is_a_look() -> None:
    batch = Batch(2)
    batch.fail()
    seen: list[Delivery] = []
    batch.deliveries[1].add_done_callback(seen.append)
    with pytest.raises(UndeliveredRecords) as caught:
        batch.owner.report()
    assert caught.value.count == 1
    await turns()
    assert seen == [batch.deliveries[1]]
    assert batch.deliveries[1].remove_done_callback(seen.append) == 0


# ------------------------------------------------------------------------------------------------- looking at it
async def test_there_is_nothing_to_see_before_the_end() -> None:
    delivery = Batch(1).deliveries[0]
    assert not delivery.done()
    assert not delivery.cancelled()
    for look in (delivery.result, delivery.exception):
        with pytest.raises(DeliveryPending, match="orders-3"):
            look()


async def test_it_says_what_became_of_the_record_and_that_is_no_look() -> None:
    batch, failing, split = Batch(2), Batch(1), Batch(2)
    assert repr(batch.deliveries[1]) == "<Delivery to orders-3: pending>"
    batch.complete()
    assert repr(batch.deliveries[1]) == "<Delivery to orders-3: offset 101>"
    failing.fail()
    assert repr(failing.deliveries[0]) == "<Delivery to orders-3: failed>"
    with pytest.raises(UndeliveredRecords):
        failing.owner.report()
    parts = split.split(1, 1)
    assert repr(split.deliveries[1]) == "<Delivery to orders-3: pending>"
    parts[1].complete(5, -1)
    assert repr(split.deliveries[1]) == "<Delivery to orders-3: offset 5>"
    parts[0].complete(-1, -1)
    assert repr(split.deliveries[0]) == "<Delivery to orders-3: offset unknown>"


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
async def test_it_does_not_travel(attempt: Callable[[Delivery], object]) -> None:
    batch = Batch(1)
    with pytest.raises(TypeError, match="cannot be pickled"):
        attempt(batch.deliveries[0])
    batch.complete()
    with pytest.raises(TypeError, match="cannot be pickled"):
        attempt(batch.deliveries[0])
    assert pickle.loads(pickle.dumps(batch.deliveries[0].result())) == ack(0)  # noqa: S301 (our own)


async def test_another_loop_may_look_but_not_wait() -> None:
    """In the thread of another loop, and in one without any."""
    batch = Batch(2)

    async def wait() -> None:
        with pytest.raises(WrongLoop, match="in another event loop"):
            await batch.deliveries[0]
        with pytest.raises(WrongLoop):
            batch.deliveries[0].add_done_callback(print)
        with pytest.raises(WrongLoop):
            await wait_for_all(batch.deliveries)

    def outside() -> None:
        with pytest.raises(WrongLoop, match="without an event loop"):
            batch.deliveries[0].add_done_callback(print)
        run_virtual(wait())

    loop = asyncio.get_running_loop()
    asyncio.events._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
    try:
        outside()
        batch.complete()
        assert batch.deliveries[0].result() == ack(0)
    finally:
        asyncio.events._set_running_loop(loop)  # pyright: ignore[reportPrivateUsage]
