"""Giving up and taking partitions, step by step, with a core that writes down what it is told."""

import asyncio
from typing import cast

import pytest

from odradek.client.consumer.config import RebalanceCallback
from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.group.partition_changes import Callbacks, PartitionChanges
from odradek.client.consumer.membership.actions import Assigned, Lost, Revoke
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = frozenset({P0, P1})


class World:
    """The core, and all that a change calls, written down in `log`."""

    def __init__(
        self,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        self.log: list[tuple[str, frozenset[TopicPartition]]] = []
        self.in_work: dict[TopicPartition, int] = {}
        self.failures: list[BaseException] = []
        self.environment = VirtualEnvironment()
        self.tasks = Tasks(self.environment.loop)
        self.changes = PartitionChanges(
            "c",
            cast(ConsumerCore, self),
            Callbacks(on_assigned, on_revoked, on_lost),
            self.environment,
            self.tasks,
            place=lambda partitions: self.note("place", partitions),
            commit=self.commit,
            given_up=lambda partitions: self.note("given up", partitions),
            failed=self.failures.append,
        )

    def note(self, what: str, partitions: frozenset[TopicPartition]) -> None:
        self.log.append((what, frozenset(partitions)))

    async def commit(self, partitions: frozenset[TopicPartition], deadline_ms: float) -> None:
        self.note("commit", partitions)
        await asyncio.sleep(0.01)

    @property
    def said(self) -> list[str]:
        return [what for what, _ in self.log]

    def revoke(self, within_ms: float = 10_000) -> Revoke:
        return Revoke(BOTH, self.environment.monotonic_ms() + within_ms, "why")

    # -- the core
    def hold(self, partitions: frozenset[TopicPartition]) -> None:
        self.note("hold", partitions)

    def let_go(self, partitions: frozenset[TopicPartition]) -> None:
        self.note("let go", partitions)

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.note("dropped", partitions)

    def assigned_unplaced(self, partitions: frozenset[TopicPartition]) -> None:
        self.note("assigned", partitions)

    def in_work_count(self, partition: TopicPartition) -> int:
        return self.in_work.get(partition, 0)


async def slow(partitions: frozenset[TopicPartition]) -> None:
    await asyncio.sleep(3)


async def test_what_is_assigned_is_held_back_until_the_callback_has_ended() -> None:
    world = World(on_assigned=slow)
    world.changes.add(Assigned(BOTH, 1))
    await asyncio.sleep(2)
    assert world.said == ["assigned", "hold", "place"]
    await asyncio.sleep(2)
    assert world.said == ["assigned", "hold", "place", "let go"]


async def test_work_is_waited_for_then_committed_told_committed_and_given_up() -> None:
    world = World(on_revoked=slow)
    world.in_work = {P1: 2}
    world.changes.add(world.revoke())
    await asyncio.sleep(2)
    assert set(world.said) == {"hold"}
    world.in_work = {}
    world.changes.wake()
    await asyncio.sleep(4)
    assert world.said[2:] == ["commit", "commit", "dropped", "given up"]


async def test_at_the_deadline_work_and_callback_are_waited_for_no_longer(caplog: pytest.LogCaptureFixture) -> None:
    world = World(on_revoked=slow)
    world.in_work = {P0: 1}
    world.changes.add(world.revoke(2_000))
    await asyncio.sleep(2.1)
    assert world.said[2:] == ["commit", "commit", "dropped", "given up"]
    assert "is not done with records" in caplog.text
    assert "takes too long" in caplog.text
    await asyncio.sleep(3)


async def test_a_callback_that_waits_for_nothing_is_not_late_when_work_was(caplog: pytest.LogCaptureFixture) -> None:
    told: list[frozenset[TopicPartition]] = []
    world = World(on_revoked=told.append)
    world.in_work = {P0: 1}
    world.changes.add(world.revoke(2_000))
    await asyncio.sleep(2.1)
    assert told == [BOTH]
    assert "is not done with records" in caplog.text
    assert "takes too long" not in caplog.text


@pytest.mark.parametrize("in_callback", [False, True])
async def test_a_loss_cuts_a_revocation_short_and_nothing_is_committed_after_it(in_callback: bool) -> None:
    told: list[frozenset[TopicPartition]] = []
    world = World(on_revoked=slow, on_lost=told.append)
    if not in_callback:
        world.in_work = {P0: 1}
    world.changes.add(world.revoke())
    await asyncio.sleep(1)
    committed = world.said.count("commit")
    world.changes.add(Lost(BOTH, "why"))
    assert world.said[-1] == "dropped"
    await asyncio.sleep(0.1)
    assert world.said.count("commit") == committed
    assert world.said.count("given up") == 1
    assert told == ([] if in_callback else [BOTH])
    await asyncio.sleep(3)


async def test_what_is_lost_before_it_was_taken_is_never_taken() -> None:
    world = World()
    world.changes.add(Assigned(BOTH, 1))
    world.changes.add(Lost(BOTH, "why"))
    await asyncio.sleep(1)
    assert world.said == ["dropped", "given up"]


async def test_changes_come_one_after_the_other() -> None:
    world = World(on_assigned=slow)
    world.changes.add(Assigned(BOTH, 1))
    await asyncio.sleep(1)
    world.changes.add(world.revoke())
    await asyncio.sleep(3)
    assert world.log[-5:-3] == [("let go", frozenset()), ("hold", BOTH)]
    assert world.said[-3:] == ["commit", "dropped", "given up"]


async def test_closing_waits_for_no_work() -> None:
    world = World()
    world.in_work = {P0: 1}
    world.changes.add(world.revoke())
    await asyncio.sleep(0.1)
    world.changes.close(world.environment.monotonic_ms() + 1_000)
    await asyncio.sleep(0.1)
    assert world.said[-1] == "given up"


async def test_a_callback_that_fails_is_told_and_the_change_goes_on() -> None:
    def fails(partitions: frozenset[TopicPartition]) -> None:
        raise LookupError("no")

    world = World(on_revoked=fails)
    world.changes.add(world.revoke())
    await asyncio.sleep(1)
    assert world.said[-1] == "given up"
    assert [str(each) for each in world.failures] == ["no"]
    assert not world.changes.runs_in_callback()
