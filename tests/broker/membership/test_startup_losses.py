"""The in-sync places that a start gives up for what it has found, before it registers.

The store may be changed by others at every step: a leader whose addition of this broker is under way, above all.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    NO_LEADER,
    BrokerState,
    PartitionState,
    broker_key,
    partition_key,
    stopping_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, Txn
from odradek.broker.cluster.topics import create_topic
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.controller.decisions import decided
from odradek.broker.membership.registration import Identity, RegistrationRefused
from odradek.broker.membership.startup_losses import Findings, Found, give_up_in_sync_places
from tests.broker.cluster.faulty_store import Fate, FaultyStore
from tests.broker.support import stored_partition

OURS, OTHER = b"1" * 16, b"2" * 16
TOPIC_ID = bytes(range(16))
HERE, LEADER = 2, 1
STATE = PartitionState(TOPIC_ID, (LEADER, HERE, 3), (LEADER, HERE, 3), LEADER, leader_epoch=4)
CONFIG = BrokerConfig({"min.insync.replicas": "2"})


def identity(node_id: int = HERE, directory_id: bytes = OURS) -> Identity:
    return Identity(node_id, {}, (directory_id,))


class Scene:
    """A store with brokers 1 to 3 registered, and the partitions of one topic."""

    def __init__(self) -> None:
        self.store = FaultyStore()

    async def begin(self, *states: PartitionState) -> None:
        for broker_id in (1, 2, 3):
            await self.register(broker_id)
        await create_topic(self.store.store, "orders", TOPIC_ID, list(states), {})

    async def register(self, broker_id: int) -> int:
        state = BrokerState(broker_id, {"PLAINTEXT": (f"10.0.0.{broker_id}", 9092)}, directory_id=OURS)
        return await self.store.store.commit(Txn(put={broker_key(broker_id): state.encode()}))

    async def image(self) -> ClusterImage:
        return ClusterImage.from_snapshot(await self.store.store.read("/"))

    async def state(self, index: int = 0) -> PartitionState:
        return await stored_partition(self.store.store, index=index)

    async def write(self, state: PartitionState, index: int = 0, expect: Mapping[str, int] | None = None) -> None:
        await self.store.store.commit(Txn(expect=expect or {}, put={partition_key("orders", index): state.encode()}))

    async def give_up(self, found: Found, **places: Found) -> None:
        """`places`: what was found of single partitions of the topic, by `p0` and so on; `found` of all others."""
        by_key = {("orders", int(name[1:])): each for name, each in places.items()}
        await give_up_in_sync_places(self.store, identity(), Findings(by_key, found), CONFIG)


@pytest.mark.parametrize("found", [Found.FIRST, Found.ALL])
async def test_who_has_everything_keeps_its_in_sync_places(found: Found) -> None:
    scene = Scene()
    await scene.begin(STATE)
    await scene.give_up(found)
    assert not scene.store.commits
    assert (await scene.state()).isr == (1, 2, 3)


@pytest.mark.parametrize("found", [Found.NOT_THE_NEWEST, Found.OLDER, Found.NOTHING])
async def test_who_lost_something_leaves_and_is_registered_no_more(found: Found) -> None:
    scene = Scene()
    await scene.begin(STATE, replace(STATE, replicas=(1, 3), isr=(1, 3)))
    await scene.store.store.commit(Txn(put={stopping_key(HERE): b"{}"}))
    await scene.give_up(found)
    left, untouched = await scene.state(0), await scene.state(1)
    assert (left.isr, left.elr, left.leader, left.leader_epoch) == ((1, 3), (), 1, 4)
    assert left.partition_epoch == 1
    assert untouched.partition_epoch == 0
    image = await scene.image()
    assert HERE not in image.brokers
    assert HERE not in image.stopping


async def test_what_it_led_nobody_leads_then_in_an_epoch_of_its_own() -> None:
    scene = Scene()
    await scene.begin(replace(STATE, leader=HERE))
    await scene.give_up(Found.NOT_THE_NEWEST)
    state = await scene.state()
    assert (state.leader, state.leader_epoch, state.isr) == (NO_LEADER, 5, (1, 3))


async def test_eligible_is_a_seat_too() -> None:
    scene = Scene()
    await scene.begin(replace(STATE, isr=(1,), elr=(HERE, 3)))
    await scene.give_up(Found.NOT_THE_NEWEST)
    assert (await scene.state()).elr == (3,)


async def test_the_last_one_stays_if_it_has_its_directory_and_says_what_may_be_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    last = replace(STATE, isr=(HERE,), leader=HERE)
    await scene.begin(*[last] * 7)
    with caplog.at_level(logging.WARNING):
        await scene.give_up(Found.NOT_THE_NEWEST)
    state = await scene.state()
    assert (state.isr, state.leader, state.leader_epoch) == ((HERE,), NO_LEADER, 5)
    assert "7 partitions were in sync on broker 2 only" in caplog.text
    assert "orders-0, orders-1, orders-2, orders-3, orders-4, …" in caplog.text


async def test_the_last_one_that_is_an_older_copy_says_so_whatever_was_flushed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    await scene.begin(replace(STATE, isr=(HERE,), leader=HERE))
    config = BrokerConfig({"min.insync.replicas": "2", "log.flush.interval.messages": "1"})
    with caplog.at_level(logging.WARNING):
        await give_up_in_sync_places(scene.store, identity(), Findings(elsewhere=Found.OLDER), config)
    assert ((await scene.state()).isr, (await scene.state()).leader) == ((HERE,), NO_LEADER)
    assert "1 partitions were in sync on broker 2 only, in a data directory that is an older copy" in caplog.text


async def test_without_its_directory_the_last_one_goes_and_the_partition_is_offline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    await scene.begin(replace(STATE, isr=(HERE,), leader=HERE))
    await scene.give_up(Found.NOTHING)
    state = await scene.state()
    assert (state.isr, state.elr, state.leader, state.last_known_leader) == ((), (), NO_LEADER, 1)
    assert "odradek partitions elect --unclean" in caplog.text
    later = ClusterImage.from_snapshot(await scene.store.read("/"))
    assert decided(state, later, 2, unclean=False).leader == NO_LEADER
    assert decided(state, later, 2, unclean=True).leader != HERE


async def test_two_that_lost_something_at_once_do_not_both_leave() -> None:
    scene = Scene()
    await scene.begin(replace(STATE, isr=(1, 2)))
    await give_up_in_sync_places(scene.store, identity(1), Findings(elsewhere=Found.NOT_THE_NEWEST), CONFIG)
    await scene.give_up(Found.NOT_THE_NEWEST)
    assert (await scene.state()).isr == (2,)


async def test_an_addition_that_a_leader_has_under_way_does_not_seat_it_again() -> None:
    """The addition names this broker's former registration. It may be applied until that is gone, so what is in sync
    is looked at when it is gone, and not before."""
    scene = Scene()
    await scene.begin(replace(STATE, isr=(1, 3)))
    former = (await scene.image()).brokers[HERE].epoch
    addition = replace(STATE, partition_epoch=1)
    taken_away = scene.store.store.commit

    async def commit(txn: Txn) -> int:
        if broker_key(HERE) in txn.delete:
            # It arrives just before the registration is taken away.
            await scene.write(addition, expect={broker_key(HERE): former})
        return await taken_away(txn)

    scene.store.commit = commit  # type: ignore[method-assign]
    await scene.give_up(Found.NOT_THE_NEWEST)
    assert HERE not in (await scene.state()).isr
    with pytest.raises(Conflict):
        await scene.write(addition, expect={broker_key(HERE): former})


async def test_what_others_decide_meanwhile_is_looked_at_again() -> None:
    scene = Scene()
    await scene.begin(STATE)
    scene.store.fates.extend([Fate.ANSWERED])
    commit = scene.store.commit
    is_first = True

    async def interrupted(txn: Txn) -> int:
        nonlocal is_first
        if is_first and txn.put:
            is_first = False
            await scene.write(replace(STATE, leader=3, leader_epoch=5, partition_epoch=1))
        return await commit(txn)

    scene.store.commit = interrupted  # type: ignore[method-assign]
    await scene.give_up(Found.NOT_THE_NEWEST)
    state = await scene.state()
    assert (state.isr, state.leader, state.leader_epoch) == ((1, 3), 3, 5)


async def test_an_answer_that_is_lost_fails_the_start_and_the_next_one_finishes_it() -> None:
    scene = Scene()
    await scene.begin(*[STATE] * (OPERATIONS_MAX + 5))
    scene.store.fates.extend([Fate.ANSWERED, Fate.LOST])
    with pytest.raises(OSError, match="lost"):
        await scene.give_up(Found.NOT_THE_NEWEST)
    await scene.give_up(Found.NOT_THE_NEWEST)
    states = [await scene.state(index) for index in range(OPERATIONS_MAX + 5)]
    assert {state.isr for state in states} == {(1, 3)}
    assert {state.partition_epoch for state in states} == {1}


async def test_a_leader_that_was_restarted_meanwhile_still_gets_its_new_epoch() -> None:
    """The controller sees a restart by revisions: whoever writes the partition after it must not hide it."""
    scene = Scene()
    await scene.begin(STATE)
    reborn = await scene.register(LEADER)
    await scene.give_up(Found.NOT_THE_NEWEST)
    state, image = await scene.state(), await scene.image()
    assert state.isr == (1, 3)
    assert state.revision > reborn
    assert decided(state, image, 2, unclean=False).leader_epoch == 5


async def test_a_leader_restarted_between_read_and_write_still_gets_its_new_epoch() -> None:
    scene = Scene()
    await scene.begin(STATE)
    commit = scene.store.commit
    is_first = True

    async def interrupted(txn: Txn) -> int:
        nonlocal is_first
        if is_first and txn.put:
            is_first = False
            await scene.register(LEADER)
        return await commit(txn)

    scene.store.commit = interrupted  # type: ignore[method-assign]
    await scene.give_up(Found.NOT_THE_NEWEST)
    state, image = await scene.state(), await scene.image()
    assert state.isr == (1, 3)
    assert decided(state, image, 2, unclean=False).leader_epoch == 5


@pytest.mark.parametrize("found", [Found.NOTHING, Found.NOT_THE_NEWEST, Found.OFFLINE])
async def test_the_in_sync_places_of_another_broker_with_the_same_id_are_left_alone(found: Found) -> None:
    """By mistake it was started with an id that somebody has, whose directory is another one."""
    scene = Scene()
    await scene.begin(STATE)
    before = (await scene.store.store.read("/")).revision
    with pytest.raises(RegistrationRefused, match="is registered already, from another data directory"):
        await give_up_in_sync_places(scene.store, identity(directory_id=OTHER), Findings(elsewhere=found), CONFIG)
    assert (await scene.store.store.read("/")).revision == before


async def test_a_store_without_anything_is_left_alone() -> None:
    store = MemoryStore()
    await give_up_in_sync_places(store, identity(), Findings(elsewhere=Found.NOTHING), CONFIG)
    assert (await store.read("/")).revision == 0


# -- several directories -----------------------------------------------------------------------------------------------


async def test_only_what_lay_in_a_lost_directory_is_given_up() -> None:
    scene = Scene()
    await scene.begin(STATE, STATE, STATE, STATE)
    await scene.give_up(Found.NOTHING, p0=Found.ALL, p1=Found.NOT_THE_NEWEST, p2=Found.OFFLINE)
    assert (await scene.state(0)).isr == (1, 2, 3)
    for index, offline in ((1, ()), (2, (HERE,)), (3, ())):
        state = await scene.state(index)
        assert (state.isr, state.elr, state.offline) == ((1, 3), (), offline)


async def test_where_nobody_else_is_left_a_directory_that_cannot_be_used_keeps_its_seat() -> None:
    alone = replace(STATE, isr=(HERE,), leader=HERE)
    scene = Scene()
    await scene.begin(alone, alone)
    await scene.give_up(Found.OFFLINE, p1=Found.NOTHING)
    state = await scene.state(0)
    assert (state.isr, state.leader, state.offline) == ((HERE,), NO_LEADER, (HERE,))
    state = await scene.state(1)
    assert (state.isr, state.leader, state.offline, state.last_known_leader) == ((), NO_LEADER, (), 1)


@pytest.mark.parametrize(
    ("found", "isr", "offline"),
    [
        (Found.ALL, (HERE,), ()),
        (Found.NOT_THE_NEWEST, (HERE,), ()),
        (Found.OLDER, (HERE,), ()),
        (Found.OFFLINE, (HERE,), (HERE,)),
        (Found.NOTHING, (), ()),
    ],
)
async def test_what_was_offline_and_is_found_again_is_offline_no_more(
    found: Found, isr: tuple[int, ...], offline: tuple[int, ...]
) -> None:
    scene = Scene()
    await scene.begin(replace(STATE, isr=(HERE,), leader=NO_LEADER, offline=(HERE,)))
    assert await give_up_in_sync_places(scene.store, identity(), Findings(elsewhere=found), CONFIG, is_marked=True)
    state = await scene.state()
    assert (state.isr, state.leader, state.offline) == (isr, NO_LEADER, offline)
