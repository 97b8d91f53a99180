"""In-sync sets written to the store: what a write names, and what counts while there is no answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import NO_LEADER, PartitionState, broker_key, stopping_key
from odradek.broker.cluster.store import Txn, check_size
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.replication.isr_writer import RETRY_MS
from tests.broker.cluster.faulty_store import Fate
from tests.broker.replication.isr_world import LAG_MS_MAX, TOPIC_ID, IsrWorld, settle

pytestmark = pytest.mark.virtual_time

ALONE = PartitionState(TOPIC_ID, (0, 1, 2), (0,), 0)
TRIO = replace(ALONE, isr=(0, 1, 2))


@asynccontextmanager
async def world(*states: PartitionState, min_insync: int = 1) -> AsyncGenerator[IsrWorld]:
    made = IsrWorld(min_insync)
    try:
        await made.begin(*states)
        yield made
    finally:
        await made.close()


async def sleep_ms(delay_ms: float) -> None:
    await asyncio.sleep(delay_ms / 1000)


# -- what is written ---------------------------------------------------------------------------------------------------


async def test_a_follower_that_has_caught_up_is_added() -> None:
    async with world(ALONE) as here:
        here.append()
        here.fetch(1)
        await settle()
        state = await here.stored()
        assert (state.isr, state.leader_epoch, state.partition_epoch) == ((0, 1), 0, 1)
        assert here.partition.replicas.isr == (0, 1)
        assert here.partition.replicas.pending_isr == ()
        (txn,) = here.store.commits
        assert txn.expect[broker_key(1)] == here.epochs[1]
        assert txn.expect[stopping_key(1)] == 0
        assert txn.expect[broker_key(0)] == here.epochs[0]


async def test_a_follower_that_lags_is_taken_out_when_somebody_looks() -> None:
    async with world(TRIO) as here:
        here.append()
        here.fetch(1)
        await sleep_ms(LAG_MS_MAX)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert not here.store.commits, "not a moment before"
        await sleep_ms(1)
        here.fetch(1)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert (await here.stored()).isr == (0, 1)
        assert here.partition.high_watermark.value == 1


async def test_an_in_sync_follower_that_lost_data_leaves_the_isr_until_it_catches_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its device has lied, or an older copy of its data directory was put back: it must not be elected meanwhile."""
    async with world(TRIO) as here:
        for _ in range(3):
            here.append()
        here.fetch(1)
        here.fetch(2)
        assert here.partition.high_watermark.value == 3
        here.fetch(2, offset=1)
        await settle()
        assert (await here.stored()).isr == (0, 1)
        assert "broker 2, which is in sync, asks for offset 1, and had all up to 3: it has lost data" in caplog.text
        assert here.partition.high_watermark.value == 3
        here.fetch(2)
        await settle()
        assert (await here.stored()).isr == (0, 1, 2)


async def test_who_has_not_fetched_yet_in_an_epoch_has_lost_nothing() -> None:
    async with world(TRIO) as here:
        here.append()
        here.fetch(1)
        here.fetch(2)
        stored = await here.stored()
        await here.write(replace(stored, leader_epoch=1, partition_epoch=stored.partition_epoch + 1))
        await here.see()
        assert here.partition.high_watermark.value == 1
        here.fetch(1)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert (await here.stored()).isr == (0, 1, 2)


async def test_who_is_removed_with_too_few_left_is_eligible_and_holds_the_high_watermark() -> None:
    async with world(TRIO, min_insync=2) as here:
        here.append()
        await sleep_ms(LAG_MS_MAX + 1)
        here.roles.check_in_sync(here.partition)
        await settle()
        state = await here.stored()
        assert (state.isr, state.elr) == ((0,), (1, 2))
        assert here.partition.high_watermark.value == 0
        here.fetch(1)
        await settle()
        state = await here.stored()
        assert (state.isr, state.elr) == ((0, 1), ())
        assert here.partition.high_watermark.value == 1


async def test_who_was_removed_for_its_silence_comes_back_when_it_fetches_and_not_before() -> None:
    """The high watermark stands still with too few in sync, and so everybody has come as far as that."""
    async with world(TRIO, min_insync=2) as here:
        here.fetch(1)
        here.fetch(2)
        here.append()
        await sleep_ms(LAG_MS_MAX + 1)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert (await here.stored()).isr == (0,)
        await here.see()
        await settle()
        assert ((await here.stored()).isr, len(here.store.commits)) == ((0,), 1)
        here.fetch(1, 0)
        await settle()
        assert (await here.stored()).isr == (0, 1)


async def test_eligible_replicas_are_let_go_when_the_minimum_is_lowered() -> None:
    async with world(replace(ALONE, elr=(1, 2)), min_insync=2) as here:
        here.append()
        assert here.partition.high_watermark.value == 0
        here.partition.configure(BrokerConfig({"min.insync.replicas": "1"}).topic({}))
        await settle()
        assert (await here.stored()).elr == ()
        assert here.partition.high_watermark.value == 1


async def test_eligible_replicas_that_nobody_needs_are_let_go_by_who_begins_to_lead() -> None:
    async with world(replace(ALONE, elr=(1, 2))) as here:
        await settle()
        assert (await here.stored()).elr == ()


async def test_what_comes_together_is_written_together() -> None:
    async with world(*[ALONE] * 120) as here:
        for index in range(120):
            here.fetch(1, index=index)
        await settle()
        assert {(await here.stored(index)).isr for index in range(120)} == {(0, 1)}
        assert len(here.store.commits) == 2
        for txn in here.store.commits:
            check_size(txn)


# -- who may not join --------------------------------------------------------------------------------------------------


async def test_who_is_about_to_stop_is_not_added() -> None:
    async with world(ALONE) as here:
        await here.stop(1)
        await here.see()
        here.fetch(1)
        await settle()
        assert not here.store.commits


async def test_whose_data_directory_has_failed_is_not_added_whatever_it_fetched_before() -> None:
    async with world(replace(ALONE, offline=(1,))) as here:
        here.append()
        here.fetch(1)
        here.fetch(2)
        await settle()
        assert (await here.stored()).isr == (0, 2)


async def test_who_stops_while_our_image_is_behind_is_refused_by_the_store() -> None:
    async with world(ALONE) as here:
        await here.stop(1)
        here.fetch(1)
        await settle()
        assert (await here.stored()).isr == (0,)
        assert here.partition.replicas.pending_isr == ()


async def test_who_may_join_is_there_in_the_life_that_fetches() -> None:
    async with world(ALONE) as here:
        former = here.epochs[1]
        assert here.writer.may_join(1, former)
        assert not here.writer.may_join(9, former)
        await here.register(1)
        await here.see()
        assert not here.writer.may_join(1, former)
        assert here.writer.may_join(1, here.epochs[1])


async def test_delete_records_awaits_live_replicas_but_not_those_in_a_failed_directory() -> None:
    """Broker 2 is not in sync, and counts while it is there."""
    async with world(PartitionState(TOPIC_ID, (0, 1, 2, 3), (0, 1), 0, offline=(3,))) as here:
        partition = here.partition
        assert sorted(here.writer.live_replicas(partition)) == [0, 1, 2]
        here.append()
        here.fetch(1)
        partition.log.advance_log_start(1)
        asked = asyncio.ensure_future(partition.acknowledgements.deletions.held_by_all(1, LAG_MS_MAX))
        await settle()
        await here.unregister(2)
        await here.see()
        await settle()
        assert not asked.done()
        partition.follower_fetched(1, here.epochs[1], 1, 1)
        assert await asked == 1


async def test_who_has_not_deleted_what_was_acknowledged_joins_when_it_says_that_it_has() -> None:
    async with world(PartitionState(TOPIC_ID, (0, 1), (0,), 0)) as here:
        partition = here.partition
        end = here.append()
        await here.unregister(1)
        await here.see()
        partition.log.advance_log_start(end)
        assert await partition.acknowledgements.deletions.held_by_all(end, 0.0) == end
        await here.register(1)
        await here.see()
        here.fetch(1)
        await sleep_ms(1000)
        assert (await here.stored()).isr == (0,)
        partition.follower_fetched(1, here.epochs[1], end, end)
        await settle()
        assert (await here.stored()).isr == (0, 1)


async def test_a_follower_gone_just_after_catching_up_does_not_hold_the_high_watermark() -> None:
    async with world(ALONE) as here:
        here.append()
        here.fetch(1)
        await settle()
        here.append()
        assert here.partition.high_watermark.value == 1
        state = await here.stored()
        del here.epochs[1]
        await here.store.store.commit(Txn(delete=(broker_key(1),)))
        await here.write(replace(state, isr=(0,), partition_epoch=2))
        await here.see()
        assert here.partition.high_watermark.value == 2


async def test_a_follower_restarted_during_its_isr_addition_is_not_added_for_its_old_epoch() -> None:
    async with world(ALONE) as here:
        here.append()
        here.store.fates.append(Fate.HELD)
        here.fetch(1)
        await settle()
        await here.register(1)
        await here.store.deliver()
        await settle()
        assert (await here.stored()).isr == (0,)
        await here.see()
        await sleep_ms(2 * RETRY_MS)
        assert (await here.stored()).isr == (0,), "its later life has not fetched"
        here.fetch(1)
        await settle()
        assert (await here.stored()).isr == (0, 1)


async def test_a_leader_that_is_fenced_writes_nothing() -> None:
    async with world(ALONE) as here:
        await here.register(0)
        here.fetch(1)
        await settle()
        assert (await here.stored()).isr == (0,)
        here.own_epoch = here.epochs[0]
        await sleep_ms(RETRY_MS)
        await settle()
        assert (await here.stored()).isr == (0, 1), "registered again, it goes on"


async def test_a_proposal_of_a_former_epoch_is_refused() -> None:
    async with world(ALONE) as here:
        here.store.fates.append(Fate.HELD)
        here.fetch(1)
        await settle()
        state = await here.stored()
        await here.write(replace(state, leader_epoch=1, partition_epoch=1))
        await here.see()
        assert here.partition.leader_epoch == 1
        await here.store.deliver()
        await sleep_ms(1_000)
        assert (await here.stored()).isr == (0,)
        assert here.partition.replicas.pending_isr == ()
        here.fetch(1)
        await settle()
        assert (await here.stored()).isr == (0, 1)


async def test_who_leads_no_more_writes_no_more() -> None:
    async with world(ALONE) as here:
        await here.write(replace(await here.stored(), leader=NO_LEADER, leader_epoch=1, partition_epoch=1))
        await here.see()
        here.writer.wake(here.partition)
        await settle()
        assert not here.store.commits


# -- without an answer -------------------------------------------------------------------------------------------------


async def test_an_addition_counts_until_it_is_known_not_to_be_stored() -> None:
    async with world(ALONE) as here:
        here.store.fates.append(Fate.HELD)
        here.fetch(1)
        await settle()
        here.append()
        pending = here.partition.replicas.maximal_isr
        assert pending == (0, 1)
        await sleep_ms(LAG_MS_MAX + 1)
        here.append()
        assert here.partition.high_watermark.value == 0, "however long it does not fetch"
        await here.stop(1)
        await here.store.deliver()
        await here.see()
        await settle()
        assert here.partition.replicas.maximal_isr == (0,)
        assert here.partition.high_watermark.value == 2


async def test_a_stored_isr_addition_counts_even_if_its_leader_was_replaced_since() -> None:
    """It was cut off when its addition was stored, and who was added leads now. That the store says so is no reason to
    forget the new leader: what only the other follower has must not be acknowledged."""
    async with world(replace(ALONE, isr=(0, 1))) as here:
        here.append()
        here.fetch(1)
        here.store.fates.append(Fate.LOST)
        here.fetch(2)
        await settle()
        here.store.is_cut = True
        here.append()
        here.fetch(1)
        await sleep_ms(LAG_MS_MAX + 1)  # broker 2 follows nobody here any more
        stored = await here.stored()
        assert stored.isr == (0, 1, 2)
        await here.write(replace(stored, leader=2, leader_epoch=1, partition_epoch=stored.partition_epoch + 1))
        here.store.is_cut = False
        await sleep_ms(LAG_MS_MAX)
        here.roles.check_in_sync(here.partition)
        assert here.partition.high_watermark.value == 1
        assert not here.partition.is_leader
        await here.see()
        assert here.fetchers.followed[here.partition] == 2


async def test_a_removal_does_not_count_before_it_is_stored() -> None:
    async with world(TRIO) as here:
        here.append()
        await sleep_ms(LAG_MS_MAX + 1)
        here.store.fates.append(Fate.HELD)
        here.roles.check_in_sync(here.partition)
        await settle()
        assert here.partition.replicas.maximal_isr == (0, 1, 2)
        assert here.partition.high_watermark.value == 0
        await here.store.deliver()
        await settle()
        assert (await here.stored()).isr == (0,)
        assert here.partition.high_watermark.value == 1


async def test_an_answer_that_is_lost_is_asked_for_by_writing_again() -> None:
    async with world(ALONE) as here:
        here.store.fates.append(Fate.LOST)
        here.fetch(1)
        await settle()
        here.append()
        assert here.partition.replicas.maximal_isr == (0, 1)
        assert here.writer.is_waiting_for_store
        await sleep_ms(2 * RETRY_MS)
        state = await here.stored()
        assert (state.isr, state.partition_epoch) == ((0, 1), 1), "written once"
        assert here.partition.state == state
        assert not here.writer.is_waiting_for_store


async def test_a_write_that_arrives_late_is_the_one_or_none() -> None:
    async with world(ALONE) as here:
        here.store.fates.extend([Fate.LATE, Fate.REFUSED])
        here.fetch(1)
        await sleep_ms(10 * RETRY_MS)
        assert (await here.stored()).isr == (0, 1)
        (result,) = await here.store.deliver()
        assert result is not None, "a conflict"
        assert (await here.stored()).partition_epoch == 1


async def test_without_a_store_a_leader_goes_on_with_the_set_that_is_stored() -> None:
    async with world(TRIO) as here:
        here.store.is_cut = True
        here.append()
        here.fetch(1)
        here.fetch(2)
        assert here.partition.high_watermark.value == 1
        here.append()
        here.fetch(1)
        for _ in range(10):
            await sleep_ms(LAG_MS_MAX / 5)
            here.fetch(1)
            here.roles.check_in_sync(here.partition)
        assert here.writer.is_waiting_for_store
        assert here.partition.high_watermark.value == 1, "broker 2 is in sync until the store says otherwise"
        here.store.is_cut = False
        await sleep_ms(2_000)
        assert (await here.stored()).isr == (0, 1)
        assert here.partition.high_watermark.value == 2


async def test_one_that_is_refused_does_not_hold_the_others_up() -> None:
    async with world(ALONE, ALONE, ALONE) as here:
        await here.write(replace(await here.stored(1), elr=(2,), partition_epoch=1), 1)
        for index in range(3):
            here.fetch(1, index=index)
        await settle()
        assert [(await here.stored(index)).isr for index in (0, 2)] == [(0, 1), (0, 1)]
        await sleep_ms(2 * RETRY_MS)
        state = await here.stored(1)
        assert (state.isr, state.elr) == ((0, 1), ()), "looked at again, although the follower has nothing to say"


async def test_two_lives_of_one_follower_are_not_added_together() -> None:
    async with world(ALONE, ALONE) as here:
        here.store.fates.append(Fate.REFUSED)
        here.partitions[1].follower_fetched(1, here.epochs[1], 0)
        await here.register(1)
        here.image = await _image(here)
        here.fetch(1, index=0)
        await sleep_ms(5 * RETRY_MS)
        assert (await here.stored(0)).isr == (0, 1)
        assert (await here.stored(1)).isr == (0,)


async def test_when_the_store_is_closed_the_writer_ends() -> None:
    async with world(ALONE) as here:
        await here.store.store.close()
        here.fetch(1)
        await settle()
        assert not len(here.tasks)


async def test_who_stops_with_all_others_writes_nothing_more() -> None:
    async with world(ALONE) as here:
        here.writer.stop()
        here.fetch(1)
        await settle()
        assert not here.store.commits


async def _image(here: IsrWorld) -> ClusterImage:
    return ClusterImage.from_snapshot(await here.store.store.read("/"))
