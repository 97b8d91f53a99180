"""`Deletions`: when a DeleteRecords may be answered, by injected in-sync sets, live brokers and followers' log starts.

Broker 0 leads, and its log starts at 0 before anything is deleted.
"""

import asyncio
from collections.abc import Collection

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.replica.deletions import Deletions
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment

pytestmark = pytest.mark.virtual_time

ALL = (0, 1, 2)
LONG_MS = 10_000.0
DEPOSED = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another one leads")


class World:
    """A leader whose log was deleted up to 5, and what it knows."""

    def __init__(
        self, isr: tuple[int, ...] = ALL, elr: tuple[int, ...] = (), live: Collection[int] = ALL, start: int = 0
    ) -> None:
        self.environment = Environment()
        self.log = Log.open(MemoryDisk(), "data/orders-0", LogConfig(), 0, log_start_offset=start)
        self.replicas = Replicas(0, ALL, isr, elr)
        self.deletions = Deletions(self.log, self.environment)
        self.deletions.live_replicas = lambda: self.live
        self.live = live
        self.deletions.begin(self.replicas)
        self.log.end.log_start_offset = max(start, 5)

    def ask(self, offset: int = 5, timeout_ms: float = LONG_MS) -> asyncio.Task[int]:
        return asyncio.ensure_future(self.deletions.held_by_all(offset, self.environment.monotonic_ms() + timeout_ms))

    def says(self, broker_id: int, log_start_offset: int) -> None:
        self.replicas.followers[broker_id].log_start_offset = log_start_offset
        self.deletions.replicas_changed()

    def may_join(self, broker_id: int) -> bool:
        self.replicas.followers[broker_id].log_end_offset = 100
        return self.replicas.may_join(broker_id, 0, 0)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def code_of(waiting: asyncio.Task[int]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await waiting
    return raised.value.code


async def test_it_is_answered_with_the_last_replica_and_the_lowest_start() -> None:
    world = World()
    asked = world.ask()
    for broker_id, start in ((1, 4), (2, 9), (1, 5)):
        await settle()
        assert not asked.done()
        world.says(broker_id, start)
    assert await asked == 5
    world.says(1, 7)
    world.log.end.log_start_offset = 8
    assert await world.ask() == 7, "of what more was deleted meanwhile"


@pytest.mark.parametrize(
    ("isr", "elr", "live", "counts"),
    [
        ((0, 1, 2), (), (0, 1, 2), True),
        ((0, 1), (), (0, 1, 2), True),  # a replica on a live broker, in sync or not
        ((0, 1, 2), (), (0, 1), True),  # in sync, and not there: it may come back and be elected
        ((0, 1), (2,), (0, 1), True),  # so may one that is eligible
        ((0, 1), (), (0, 1), False),  # it has to join first
    ],
)
async def test_who_has_to_have_deleted(
    isr: tuple[int, ...], elr: tuple[int, ...], live: tuple[int, ...], counts: bool
) -> None:
    world = World(isr, elr, live)
    world.says(1, 5)
    world.says(2, 4)
    asked = world.ask()
    await settle()
    assert asked.done() is not counts
    world.says(2, 5)
    assert await asked == 5


async def test_one_whose_addition_is_proposed_counts() -> None:
    world = World(isr=(0, 1), live=(0, 1))
    world.says(1, 5)
    world.says(2, 0)
    world.replicas.pending_isr = (2,)
    asked = world.ask()
    await settle()
    assert not asked.done()
    world.says(2, 5)
    assert await asked == 5


async def test_members_that_leave_and_brokers_that_go_are_waited_for_no_more() -> None:
    world = World()
    world.says(1, 5)
    asked = world.ask()
    world.live = (0, 1)
    world.deletions.replicas_changed()
    await settle()
    assert not asked.done(), "it is in sync"
    world.replicas.update(ALL, (0, 1), (2,), 0.0)
    world.deletions.replicas_changed()
    await settle()
    assert not asked.done(), "it is eligible"
    world.replicas.update(ALL, (0, 1), (), 0.0)
    world.deletions.replicas_changed()
    assert await asked == 5


async def test_one_that_comes_between_the_wake_up_and_the_look_is_waited_for() -> None:
    """The low watermark has been reached, and goes back before anybody has looked."""
    world = World(isr=(0, 1), live=(0, 1))
    asked = world.ask()
    await settle()
    world.says(1, 5)
    world.live = ALL
    await settle()
    assert not asked.done()
    world.says(2, 5)
    assert await asked == 5


async def test_only_an_acknowledged_deletion_keeps_followers_below_it_out_of_the_isr() -> None:
    world = World(isr=(0, 1), live=(0, 1))
    world.says(2, 3)
    asked = world.ask()
    await settle()
    assert world.may_join(2)
    world.says(1, 5)
    await asked
    assert not world.may_join(2)
    world.says(2, 5)
    assert world.may_join(2)


async def test_a_log_start_found_by_a_new_leader_bars_lower_followers_retention_does_not() -> None:
    """A new leader does not know what was acknowledged before."""
    world = World(isr=(0,), live=(0,), start=3)
    world.log.end.log_start_offset = 50  # retention
    world.says(1, 2)
    assert not world.may_join(1)
    world.says(1, 3)
    assert world.may_join(1)


async def test_a_later_life_of_a_replica_has_to_say_its_start_anew() -> None:
    """It may have lost its disk."""
    world = World(isr=(0, 1), live=(0, 1, 2))
    world.replicas.followers[2].identify(7)
    world.says(1, 5)
    world.says(2, 5)
    world.replicas.followers[2].identify(8)
    asked = world.ask()
    await settle()
    assert not asked.done()
    world.says(2, 5)
    await asked


async def test_each_of_several_has_its_own_offset() -> None:
    world = World()
    world.log.end.log_start_offset = 9
    asked = [world.ask(offset) for offset in (9, 0, 4, 7)]
    for start, done in ((4, 1), (7, 2), (8, 3), (9, 4)):
        world.says(1, start)
        world.says(2, 9)
        await settle()
        assert sum(each.done() for each in asked) >= done
        assert asked[0].done() is (start == 9)
    assert await asyncio.gather(*asked) == [9, 4, 4, 7]


async def test_offset_0_waits_for_nobody_who_has_said_where_it_starts() -> None:
    world = World()
    for broker_id in (1, 2):
        world.says(broker_id, 0)
    assert await world.ask(0, timeout_ms=0) == 0


@pytest.mark.parametrize("timeout_ms", [1000.0, 0.0, -1.0])
async def test_without_all_of_them_the_time_is_up(timeout_ms: float) -> None:
    world = World()
    world.says(1, 5)
    before_ms = world.environment.monotonic_ms()
    asked = world.ask(timeout_ms=timeout_ms)
    assert await code_of(asked) == ErrorCode.REQUEST_TIMED_OUT
    assert world.environment.monotonic_ms() - before_ms == pytest.approx(max(0.0, timeout_ms))
    world.says(2, 5)
    assert await world.ask(timeout_ms=0) == 5, "where all have it no time is needed"


async def test_a_leader_that_is_replaced_answers_none_of_those_that_wait() -> None:
    """Not even one that was woken before it was replaced, nor when this broker leads again."""
    world = World()
    world.says(1, 5)
    asked = world.ask()
    late = world.ask()
    await settle()
    world.says(2, 5)
    world.deletions.fail(DEPOSED)
    assert await code_of(asked) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await code_of(late) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.replicas.promised_log_start == 0
    assert await code_of(world.ask()) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    again = Replicas(0, ALL, ALL)
    world.deletions.begin(again)
    assert again.promised_log_start == 5
    waiting = world.ask()
    await settle()
    assert not waiting.done(), "it does not know yet where the others start"
    waiting.cancel()
