"""Which role a partition gets by what the metadata says: leader, follower, or neither, each in its epoch."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import NO_LEADER, PartitionState
from odradek.broker.replica.partition import Partition
from odradek.broker.replication.roles import Key, Roles
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replication.isr_world import TOPIC_ID, IsrWorld, settle

pytestmark = pytest.mark.virtual_time

LED = PartitionState(TOPIC_ID, (0, 1, 2), (0, 1, 2), 0, leader_epoch=4, revision=50)
FOLLOWED = replace(LED, leader=1)


@asynccontextmanager
async def world(epochs_at_start: Mapping[Key, int]) -> AsyncGenerator[IsrWorld]:
    """A partition of which nobody has said anything yet."""
    made = IsrWorld()
    try:
        await made.begin(replace(LED, leader_epoch=0))
        made.roles = Roles(0, made.environment, made.writer, made.fetchers, epochs_at_start)
        yield made
    finally:
        await made.close()


def later(state: PartitionState, leader: int | None = None) -> PartitionState:
    return replace(
        state,
        leader=state.leader if leader is None else leader,
        leader_epoch=state.leader_epoch + 1,
        revision=state.revision + 1,
    )


async def test_who_is_named_leads_in_the_epoch_that_is_stored() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        assert here.partition.is_leader
        assert here.partition.leader_epoch == 4
        assert here.partition.replicas.isr == (0, 1, 2)
        assert here.partition.state == LED
        assert not here.fetchers.followed


async def test_others_follow_the_one_who_is() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, FOLLOWED)
        assert here.fetchers.followed == {here.partition: 1}
        with pytest.raises(KafkaError) as raised:
            here.partition.role.require_leader()
        assert raised.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_who_becomes_leader_has_stopped_to_fetch_before() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, FOLLOWED)
        was_led: list[bool] = []
        stop = here.fetchers.stop

        def stopping(partition: object) -> None:
            was_led.append(here.partition.is_leader)
            stop(here.partition)

        here.fetchers.stop = stopping  # type: ignore[method-assign]
        here.roles.apply(here.partition, later(FOLLOWED, leader=0))
        assert here.partition.is_leader
        assert was_led == [False]
        assert not here.fetchers.followed


async def test_when_nobody_leads_nobody_is_followed() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        here.roles.apply(here.partition, later(LED, leader=NO_LEADER))
        assert not here.partition.is_leader
        assert not here.fetchers.followed


async def test_a_new_epoch_of_the_same_leader_begins_with_followers_that_have_not_fetched() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        here.partition.replicas.followers[1].fetched(0, 1.0, 0)
        here.roles.apply(here.partition, later(LED))
        assert here.partition.is_leader
        assert here.partition.leader_epoch == 5
        assert here.partition.replicas.followers[1].log_end_offset == -1


async def test_the_same_epoch_again_is_news_of_the_in_sync_set_only() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        kept = here.partition.replicas
        here.roles.apply(here.partition, replace(LED, isr=(0, 1), revision=51))
        assert here.partition.replicas is kept
        assert kept.isr == (0, 1)
        here.roles.apply(here.partition, LED)
        assert kept.isr == (0, 1), "what is older than known is no news"


async def test_an_older_epoch_changes_nothing() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        here.roles.apply(here.partition, replace(FOLLOWED, leader_epoch=3, revision=49))
        assert here.partition.is_leader
        assert not here.fetchers.followed


async def test_an_epoch_of_a_former_life_is_not_led_nor_followed_and_the_next_one_is_led() -> None:
    async with world({(TOPIC_ID, 0): 4}) as here:
        here.roles.apply(here.partition, LED)
        assert not here.partition.is_leader
        assert not here.fetchers.followed
        here.roles.apply(here.partition, later(LED))
        assert here.partition.is_leader


async def test_a_topic_that_is_created_again_under_its_name_has_had_no_former_life() -> None:
    former_id = b"f" * 16
    async with world({(former_id, 0): 4}) as here:
        here.roles.apply(here.partition, replace(LED, leader_epoch=0))
        assert here.partition.is_leader


async def test_a_partition_that_goes_follows_nobody_any_more() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, FOLLOWED)
        here.roles.remove(here.partition)
        assert not here.fetchers.followed


async def test_only_leaders_with_followers_are_looked_at() -> None:
    async with world({}) as here:
        here.roles.apply(here.partition, FOLLOWED)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert not here.store.commits


async def test_where_all_are_in_step_nothing_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of quiet partitions that would be much of what an idle broker does."""
    async with world({}) as here:
        here.roles.apply(here.partition, LED)
        looked: list[Partition] = []
        monkeypatch.setattr(here.writer, "wake", looked.append)
        here.append()
        here.roles.check_in_sync(here.partition)
        assert looked == [here.partition], "somebody has to fetch that yet"
        for broker_id in (1, 2):
            here.fetch(broker_id)
        looked.clear()
        here.roles.check_in_sync(here.partition)
        assert not looked
