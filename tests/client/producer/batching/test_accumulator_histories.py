"""No record is lost, doubled or reordered, memory ends where it began, and every delivery ends once, whatever happens.

Hypothesis writes histories of single steps for two topics and two brokers: records of all sizes come at once, in bulk,
or wait for memory; leaders move and vanish; requests and answers are lost; brokers refuse batches or find them too
large; batches expire in their queues, in threads and in flight. The world (`accumulator_world.py`) checks every step.
At the end the brokers behave, and what they have is compared with what was said of each record.
"""

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.producer.idempotence.idempotence import Key
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode
from tests.client.accumulator_world import KEYS, Start, World
from tests.client.model_broker import Fault, is_ascending

SIZES: Final = [0, 1, 10, 50, 100, 150, 200, 400, 700, 890]
"""Of values, in bytes: a batch has 400, a request 1000."""
RETRIED: Final = [
    Fault(ErrorCode.NOT_ENOUGH_REPLICAS, False),
    Fault(ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
    Fault(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
    Fault(ErrorCode.REQUEST_TIMED_OUT, True),
]
FAILED: Final = [
    Fault(ErrorCode.INVALID_RECORD, False),
    Fault(ErrorCode.UNKNOWN_SERVER_ERROR, True),
    Fault(ErrorCode.MESSAGE_TOO_LARGE, False),
]
FAULTS: Final = RETRIED + FAILED
USUAL: Final = [
    "send", "send", "many", "many", "wait", "resume", "run", "run", "exchange", "exchange", "linger", "linger",
    "retried",
]  # fmt: skip
RARE: Final = [
    "nowait", "cancel", "handle", "receive", "disconnect", "move", "refresh", "vanish", "fault", "fault", "limit",
    "limit", "limit", "forget", "flush", "backoff", "backoff", "expire", "compressed", "fill",
]  # fmt: skip
Step = tuple[str, Key, int]
"""What is done, to which partition, and a number that chooses among more."""

STARTS = st.builds(
    Start,
    is_idempotent=st.booleans(),
    in_flight_max=st.sampled_from([5, 5, 2, 1]),
    codec=st.sampled_from([Codec.NONE, Codec.NONE, Codec.ZSTD]),
    retries=st.sampled_from([10**9, 10**9, 2]),
    is_compressible=st.booleans(),
    memory_batches=st.sampled_from([6, 30, 30]),
)


def histories() -> st.SearchStrategy[list[Step]]:
    """In each history, some of the rare steps are frequent, and the others do not happen."""

    def history(chosen: list[str]) -> st.SearchStrategy[list[Step]]:
        # Hypothesis shrinks to the first of each.
        actions = ["nothing", *USUAL, *chosen]
        step = st.tuples(st.sampled_from(actions), st.sampled_from([*KEYS, KEYS[0]]), st.integers(0, 59))
        return st.lists(step, min_size=60, max_size=110)

    return st.lists(st.sampled_from(RARE), max_size=6).flatmap(history)


def exchange(world: World, number: int) -> None:
    world.compressed(number % 2)
    for _ in range(number % 4 + 1):
        world.handle(number % 2)
    for _ in range(number % 5 + 1):
        world.receive(number % 2)


def sent_to(key: Key, number: int) -> int | None:
    """Each third record has no partition of its own."""
    return key[1] if number % 3 else None


def fill(world: World, key: Key, number: int) -> None:
    for _ in range(20):
        if not world.send(key[0], sent_to(key, number), SIZES[number % len(SIZES)], may_wait=False):
            return


def pass_time(world: World, time_ms: float) -> None:
    world.now_ms += time_ms
    world.run()


def flush(world: World) -> None:
    world.accumulator.flushing = 1 - world.accumulator.flushing


DEEDS: dict[str, Callable[[World, Key, int], object]] = {
    "nothing": lambda world, key, number: None,
    "send": lambda world, key, number: world.send(
        key[0], sent_to(key, number), SIZES[number % len(SIZES)], may_wait=False
    ),
    "wait": lambda world, key, number: world.send(
        key[0], sent_to(key, number), SIZES[number % len(SIZES)], may_wait=True
    ),
    "nowait": lambda world, key, number: world.send(key[0], key[1], number, may_wait=False),
    "many": lambda world, key, number: world.send_many(
        key[0], sent_to(key, number), SIZES[number % 5], number % 40 + 1
    ),
    "fill": fill,
    "resume": lambda world, key, number: world.resume(),
    "cancel": lambda world, key, number: world.cancel(number),
    "run": lambda world, key, number: world.run(),
    "compressed": lambda world, key, number: world.compressed(number % 2),
    "handle": lambda world, key, number: world.handle(number % 2),
    "receive": lambda world, key, number: world.receive(number % 2),
    "exchange": lambda world, key, number: exchange(world, number),
    "disconnect": lambda world, key, number: world.disconnect(number % 2),
    "move": lambda world, key, number: world.brokers[key].move(),
    "refresh": lambda world, key, number: world.refresh(key),
    "vanish": lambda world, key, number: world.vanish(key),
    "fault": lambda world, key, number: world.brokers[key].faults.append(FAULTS[number % len(FAULTS)]),
    "retried": lambda world, key, number: world.brokers[key].faults.append(RETRIED[number % len(RETRIED)]),
    "limit": lambda world, key, number: world.limits.update({key[0]: 75 + 5 * number}),
    "forget": lambda world, key, number: world.accumulator.forget_limits(key[0]),
    "flush": lambda world, key, number: flush(world),
    "linger": lambda world, key, number: pass_time(world, number % 12),
    "backoff": lambda world, key, number: pass_time(world, 20.0 * number),
    "expire": lambda world, key, number: pass_time(world, 100.0 * number),
}


def settle(world: World) -> None:
    """The brokers make no more trouble, and the producer knows them: it goes on until it has nothing left."""
    for key in KEYS:
        world.brokers[key].faults.clear()
        world.refresh(key)
    for _ in range(len(world.accumulator.incomplete) * 20 + 200):
        world.obtain_id()
        world.resume()
        pass_time(world, 20)
        for node in (0, 1):
            world.compressed(node)
            world.handle(node)
            world.receive(node)
        world.check()
        if not world.accumulator.incomplete and not world.in_flight() and not world.waiters:
            return
    raise AssertionError(f"it does not come to an end: {world.accumulator.incomplete}")


def check_end(world: World) -> None:
    """Of every record one end was told, and the truth."""
    assert world.memory.free_bytes == world.memory.limit_bytes
    assert world.memory.waiting == 0
    assert world.accumulator.ready(world.leader_of, world.now_ms) == ({}, float("inf"), set())
    for record in world.records.values():
        assert len(record.outcomes) == 1
    for key in KEYS:
        mine = [number for number, record in world.records.items() if record.key == key]
        broker = world.brokers[key]
        units = broker.units
        assert set(units) <= set(mine)
        for number in mine:
            offset = world.records[number].outcomes[0]
            if offset is not None:
                assert number in units
                assert offset < 0 or units[offset] == number
        if world.start.is_idempotent:
            assert is_ascending(units), units
        elif world.start.in_flight_max == 1:
            # Sent again it may be there twice, but not before those that it came after.
            assert is_ascending(list(dict.fromkeys(units))), units


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(STARTS, histories())
def test_each_record_ends_once_and_nothing_is_left(start: Start, history: list[Step]) -> None:
    world = World(start)
    world.obtain_id()
    for action, key, number in history:
        DEEDS[action](world, key, number)
        world.check()
    settle(world)
    check_end(world)


@pytest.mark.parametrize("in_flight_max", [1, 5])
@pytest.mark.parametrize("is_idempotent", [True, False])
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(sizes=st.lists(st.sampled_from(SIZES), min_size=1, max_size=60))
def test_without_any_fault_all_is_acknowledged_in_order(
    is_idempotent: bool, in_flight_max: int, sizes: list[int]
) -> None:
    """With as little memory as there is, so that most of them wait for it."""
    world = World(Start(is_idempotent, in_flight_max))
    world.obtain_id()
    for size in sizes:
        if not world.send("one", 0, size, may_wait=True):
            world.run()
            exchange(world, 4)
            world.resume()
        world.check()
    settle(world)
    check_end(world)
    assert world.brokers["one", 0].units == list(world.records)
    assert [record.outcomes for record in world.records.values()] == [[number] for number in world.records]
