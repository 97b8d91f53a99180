"""How a broker becomes the controller, what it writes then, and what it cannot write any more when another one is."""

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from odradek.broker.cluster.features import ENVELOPE, SUPPORTED, TRANSACTION_VERSION
from odradek.broker.cluster.image import NO_CONTROLLER
from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    FEATURES_KEY,
    NO_LEADER,
    NodeState,
    PartitionState,
    broker_config_key,
    broker_key,
    changing_key,
    encode_changing,
    encode_configs,
    encode_features,
    encode_stopping,
    node_key,
    partition_key,
    stopping_key,
)
from odradek.broker.cluster.partition_writes import PartitionWrite
from odradek.broker.cluster.store import OPERATIONS_MAX, Conflict, MetadataStore, Txn
from odradek.broker.controller.controller import LOOKED_AT_TOGETHER
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.cluster.faulty_store import Fate
from tests.broker.controller.brokers import LEASE_MS, TOPIC_ID, Brokers, brokers, settle, sleep_ms

pytestmark = pytest.mark.virtual_time

TRIO = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 1)


async def depose(cluster: Brokers) -> None:
    """As another broker does that finds nobody at the controller's address."""
    image = await cluster.image()
    await cluster.store.commit(Txn(expect={CONTROLLER_KEY: image.controller_revision}, delete=(CONTROLLER_KEY,)))


async def fence(cluster: Brokers, node_id: int) -> None:
    await cluster.store.commit(Txn(delete=(broker_key(node_id), stopping_key(node_id))))


# -- who ---------------------------------------------------------------------------------------------------------------


async def test_the_first_that_is_there_is_elected_and_stays() -> None:
    async with brokers() as cluster:
        assert cluster.active() == [1]
        await sleep_ms(10 * LEASE_MS)
        assert cluster.active() == [1]
        assert (await cluster.image()).controller_id == 1


async def test_when_it_is_gone_another_one_is_elected_with_the_end_of_its_lease() -> None:
    async with brokers() as cluster:
        await cluster[1].crash()
        await sleep_ms(LEASE_MS + 100)
        image = await cluster.image()
        assert image.controller_id in (2, 3)
        assert image.controller_id in cluster.active()


async def test_a_deposed_controller_that_lives_knows_it_and_one_broker_is_elected_again() -> None:
    async with brokers() as cluster:
        before = (await cluster.image()).controller_revision
        await depose(cluster)
        await settle()
        image = await cluster.image()
        assert image.controller_revision > before
        assert cluster.active() == [image.controller_id]


async def test_two_that_depose_the_same_one_do_not_depose_its_successor() -> None:
    async with brokers() as cluster:
        image = await cluster.image()
        txn = Txn(expect={CONTROLLER_KEY: image.controller_revision}, delete=(CONTROLLER_KEY,))
        await cluster.store.commit(txn)
        await settle()
        successor = await cluster.image()
        with pytest.raises(Conflict):
            await cluster.store.commit(txn)
        assert cluster.active() == [successor.controller_id]


async def test_who_stops_does_not_stand_for_election() -> None:
    async with brokers() as cluster:
        cluster[2].controller.may_lead = False
        await cluster[1].crash()
        await sleep_ms(LEASE_MS + 100)
        assert cluster.active() == [1, 3], "1 is dead and cannot know"


async def test_an_election_whose_answer_was_lost_is_won_all_the_same() -> None:
    async with brokers(2, joining=()) as cluster:
        member = cluster[1]
        await member.join(runs=False)
        member.store.fates.append(Fate.LOST)
        member.tasks.start(member.controller.run(), "control")
        await sleep_ms(1_000)
        assert cluster.active() == [1]
        assert (await cluster.image()).controller_id == 1


async def test_an_election_that_arrives_late_leaves_nobody_without_a_controller() -> None:
    """The commit of a campaign is applied when its sender has long given up, and the one elected meanwhile is gone."""
    async with brokers(2, joining=()) as cluster:
        late, other = cluster[1], cluster[2]
        await late.join(runs=False)
        late.store.fates.append(Fate.LATE)
        late.tasks.start(late.controller.run(), "control")
        await settle()
        await other.join()
        await settle()
        assert cluster.active() == [2]
        other.controller.may_lead = False
        late.controller.may_lead = False
        await depose(cluster)
        await settle()
        late.controller.may_lead = True
        assert await late.store.deliver() == [None], "it was applied"
        await sleep_ms(1_000)
        assert cluster.active() == [1]


async def test_a_controller_that_returns_before_its_lease_ends_is_controller_again_at_once() -> None:
    async with brokers() as cluster:
        reborn = await cluster.reborn(1)
        await settle()
        assert reborn.controller.is_active
        await sleep_ms(2 * LEASE_MS)
        assert (await cluster.image()).controller_id == 1, "its key does not go with the former lease"
        assert cluster.active() == [1]


async def test_nobody_is_elected_under_a_registration_that_is_gone() -> None:
    async with brokers(1, joining=()) as cluster:
        member = cluster[1]
        await member.registration.register()
        await fence(cluster, 1)
        with pytest.raises(KafkaError) as raised:
            member.controller.require_active()
        assert raised.value.code == ErrorCode.NOT_CONTROLLER
        await member.controller.work()
        assert not member.controller.is_active
        assert (await cluster.image()).controller_id == NO_CONTROLLER


# -- what --------------------------------------------------------------------------------------------------------------


async def test_it_gives_what_the_dead_led_to_others() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2), TRIO)
        await fence(cluster, 2)
        cluster[2].store.is_cut = True
        await settle()
        first, second = await cluster.state(0), await cluster.state(1)
        assert (first.leader, first.isr, first.leader_epoch) == (1, (1, 3), 1)
        assert (second.leader, second.isr, second.leader_epoch) == (1, (1, 3), 0)


async def test_a_fenced_broker_that_returns_leads_in_a_new_epoch_what_only_it_can_lead() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, replicas=(2,), isr=(2,), leader=2))
        await fence(cluster, 2)
        await settle()
        state = await cluster.state()
        assert (state.leader, state.isr) == (2, (2,))
        assert state.leader_epoch > 0


async def test_many_partitions_are_written_in_few_commits_and_all_of_them() -> None:
    async with brokers() as cluster:
        await cluster.create(*[replace(TRIO, leader=2)] * 1_234)
        cluster[1].store.commits.clear()
        cluster[2].store.is_cut = True
        await fence(cluster, 2)
        await settle()
        assert {state.leader for state in (await cluster.states()).values()} == {1}
        assert len(cluster[1].store.commits) <= 14


async def test_a_leader_that_writes_its_in_sync_set_meanwhile_does_not_stop_the_controller() -> None:
    """The decision rests on a state that is not the stored one any more: it is made again."""
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2), replace(TRIO, leader=3))
        cluster[1].store.fates.append(Fate.HELD)
        cluster[2].store.is_cut = True
        await fence(cluster, 2)
        await settle()
        assert cluster[1].store.under_way_count == 1
        await cluster.write(replace(await cluster.state(1), isr=(1, 3), partition_epoch=1), 1)
        await cluster[1].store.deliver()
        await sleep_ms(500)
        first, second = await cluster.state(0), await cluster.state(1)
        assert (first.leader, first.isr) == (1, (1, 3))
        assert (second.leader, second.isr, second.partition_epoch) == (3, (1, 3), 1)


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.REFUSED, Fate.LATE])
async def test_without_an_answer_it_decides_again_and_once(fate: Fate) -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2))
        cluster[1].store.fates.append(fate)
        cluster[2].store.is_cut = True
        await fence(cluster, 2)
        await sleep_ms(1_000)
        await cluster[1].store.deliver()
        await sleep_ms(1_000)
        state = await cluster.state()
        assert (state.leader, state.leader_epoch, state.partition_epoch) == (1, 1, 1)


async def test_it_survives_a_store_that_is_away_and_decides_when_it_is_back() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2))
        cluster[1].store.fates.extend([Fate.REFUSED] * 20)
        cluster[2].store.is_cut = True
        await fence(cluster, 2)
        await sleep_ms(30_000)
        assert not cluster[1].store.fates
        assert (await cluster.state()).leader == 1


async def test_a_controller_paused_before_its_commit_changes_nothing_if_another_is_elected() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2))
        paused = cluster[1]
        paused.store.fates.append(Fate.HELD)
        paused.store.blind()
        paused.controller.may_lead = False
        cluster[2].store.is_cut = True
        # It has decided that broker 1 shall lead, and its commit is under way.
        paused.store.see()
        await fence(cluster, 2)
        await settle()
        assert paused.store.under_way_count == 1
        paused.store.blind()
        await depose(cluster)
        await settle()
        assert (await cluster.image()).controller_id == 3
        decided = await cluster.state()
        assert decided.leader == 1, "the new controller decides the same, by itself"
        await cluster.write(replace(decided, isr=(1,), partition_epoch=9))
        await paused.store.deliver()
        await settle()
        assert (await cluster.state()).partition_epoch == 9
        paused.store.see()
        await sleep_ms(1_000)
        assert cluster.active() == [3]


async def test_one_that_is_deposed_in_the_middle_of_its_work_can_be_elected_again() -> None:
    """Between two topics it learns that it is not the controller any more. It gives up that work, not all work."""
    async with brokers() as cluster:
        led_by_2 = [replace(TRIO, leader=2)] * LOOKED_AT_TOGETHER
        await cluster.create(*led_by_2)
        await cluster.create(
            *[replace(state, topic_id=b"b" * 16) for state in led_by_2], topic="bills", topic_id=b"b" * 16
        )
        for other in (2, 3):
            cluster[other].controller.may_lead = False
        cluster[2].store.is_cut = True
        commit = cluster.store.commit

        async def deposing(txn: Txn) -> int:
            revision = await commit(txn)
            if 2 < len(txn.put) < OPERATIONS_MAX / 2:  # the last ones of a topic
                cluster.store.commit = commit  # type: ignore[method-assign]
                await depose(cluster)
            return revision

        cluster.store.commit = deposing  # type: ignore[method-assign]
        await fence(cluster, 2)
        await sleep_ms(1_000)
        assert cluster.store.commit == commit, "it was deposed"
        assert cluster.active() == [1]
        assert {state.leader for state in (await cluster.states()).values()} == {1}


async def test_what_an_operator_wants_is_guarded_too() -> None:
    async with brokers() as cluster:
        await cluster.create(TRIO)
        member = cluster[1]
        member.store.blind()
        before = await cluster.state()
        wanted = [PartitionWrite(partition_key("orders", 0), before, replace(before, leader=2, leader_epoch=1))]
        await depose(cluster)
        await settle()
        assert member.controller.is_active, "it cannot know"
        with pytest.raises(Conflict):
            await member.controller.change(wanted)
        assert (await cluster.state()) == before
        member.store.see()
        await settle()
        with pytest.raises(KafkaError) as raised:
            await member.controller.change(wanted)
        assert raised.value.code == ErrorCode.NOT_CONTROLLER


async def test_a_follower_that_goes_does_not_hide_that_the_leader_was_restarted() -> None:
    """The leader's registration changes between the decision about its follower and the commit: were the write to pass,
    it would be younger than the registration, and the leader would wait for its new epoch for ever."""
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2))
        controller = cluster[1]
        controller.store.fates.append(Fate.HELD)
        cluster[3].store.is_cut = True
        await fence(cluster, 3)
        await settle()
        assert controller.store.under_way_count == 1
        await cluster.reborn(2)
        await controller.store.deliver()
        await sleep_ms(1_000)
        state = await cluster.state()
        assert (state.leader, state.isr, state.leader_epoch) == (2, (1, 2), 1)


async def test_a_broker_that_is_fenced_by_its_epoch_only() -> None:
    async with brokers() as cluster:
        controller = cluster[1].controller
        former = cluster[2].registration.epoch
        reborn = await cluster.reborn(2)
        await settle()
        with pytest.raises(Conflict):
            await controller.fence(2, former, "it was silent")
        assert 2 in (await cluster.image()).brokers
        cluster[2].store.is_cut = True
        await cluster.store.commit(Txn(put={stopping_key(2): encode_stopping(1)}))
        await controller.fence(2, reborn.registration.epoch, "it was silent")
        image = await cluster.image()
        assert 2 not in image.brokers
        assert 2 not in image.stopping


async def test_an_unclean_election_is_made_only_where_it_is_allowed_and_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with brokers(2) as cluster:
        await cluster.create(replace(TRIO, replicas=(1, 2), isr=(2,), leader=2))
        await cluster[2].crash()
        await sleep_ms(LEASE_MS + 100)
        state = await cluster.state()
        assert (state.leader, state.elr) == (NO_LEADER, (2,))
        with caplog.at_level(logging.WARNING, "odradek.broker.controller.controller"):
            allowed = encode_configs({"unclean.leader.election.enable": "true"})
            await cluster.store.commit(Txn(put={broker_config_key(None): allowed}))
            await settle()
        state = await cluster.state()
        assert (state.leader, state.isr, state.elr) == (1, (1,), ())
        assert "may lack what was acknowledged" in caplog.text


async def test_an_unclean_election_is_said_though_the_answer_to_its_commit_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with brokers(2) as cluster:
        await cluster.create(replace(TRIO, replicas=(1, 2), isr=(2,), leader=2))
        await cluster[2].crash()
        await sleep_ms(LEASE_MS + 100)
        with caplog.at_level(logging.WARNING, "odradek.broker.controller.controller"):
            cluster[1].store.fates.append(Fate.LOST)
            allowed = encode_configs({"unclean.leader.election.enable": "true"})
            await cluster.store.commit(Txn(put={broker_config_key(None): allowed}))
            await sleep_ms(1_000)
        assert (await cluster.state()).leader == 1
        assert "may lack what was acknowledged" in caplog.text


async def test_a_clean_election_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2))
        with caplog.at_level(logging.WARNING, "odradek.broker.controller.controller"):
            cluster[2].store.is_cut = True
            await fence(cluster, 2)
            await settle()
        assert (await cluster.state()).leader == 1
        assert "may lack" not in caplog.text


async def test_preferred_leaders_lead_again_if_they_are_in_sync() -> None:
    async with brokers() as cluster:
        await cluster.create(replace(TRIO, leader=2), replace(TRIO, isr=(2, 3), leader=3))
        controller = cluster[1].controller
        await controller.prefer(cluster[1].metadata.image.topics.values())
        assert [(await cluster.state(index)).leader for index in (0, 1)] == [1, 3]


async def test_leadership_is_given_back_now_and_then() -> None:
    async with brokers(leader_imbalance_check_interval_seconds="5") as cluster:
        await cluster.create(replace(TRIO, leader=2))
        cluster[1].tasks.start(cluster[1].controller.rebalance(), "rebalance")
        await sleep_ms(4_900)
        assert (await cluster.state()).leader == 2
        cluster[1].store.fates.append(Fate.REFUSED)
        await sleep_ms(200)
        assert (await cluster.state()).leader == 2, "the store did not answer"
        await sleep_ms(5_000)
        assert (await cluster.state()).leader == 1


# -- what others have left ---------------------------------------------------------------------------------------------


async def leave_half_a_topic(cluster: Brokers) -> None:
    half = TRIO.encode()
    await cluster.store.commit(Txn(put={partition_key("half", index): half for index in range(90)}))
    await cluster.store.commit(Txn(put={changing_key("half"): encode_changing(TOPIC_ID)}))


async def left(cluster: Brokers) -> int:
    return len((await cluster.store.read("/partitions/half/")).entries) + len(
        (await cluster.store.read("/changing/")).entries
    )


async def test_who_is_elected_removes_what_others_have_left_once_and_guarded() -> None:
    async with brokers() as cluster:
        await leave_half_a_topic(cluster)
        await settle()
        assert await left(cluster) == 91, "somebody may be at work on it"
        cluster[1].store.is_cut = True
        await cluster.store.commit(Txn(delete=(CONTROLLER_KEY,)))
        await settle()
        (elected,) = set(cluster.active()) - {1}
        assert await left(cluster) == 0
        sweeps = [txn for txn in cluster[elected].store.commits if txn.delete and not txn.put]
        assert sweeps
        assert all(CONTROLLER_KEY in txn.expect for txn in sweeps)


async def test_what_cannot_be_removed_does_not_stop_the_controller(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    async def refused(store: MetadataStore, guard: Mapping[str, int]) -> int:
        nonlocal attempts
        attempts += 1
        raise Conflict("somebody is at work")

    monkeypatch.setattr("odradek.broker.controller.controller.sweep_leftovers", refused)
    async with brokers() as cluster:
        assert attempts == 1
        assert "stays until the next election: somebody is at work" in caplog.text
        await cluster.create(replace(TRIO, leader=2))
        await fence(cluster, 2)
        cluster[2].store.is_cut = True
        await settle()
        assert (await cluster.state()).leader == 1
        assert attempts == 1


async def test_a_store_that_is_away_while_it_removes_is_asked_again() -> None:
    async with brokers(1, joining=()) as cluster:
        await leave_half_a_topic(cluster)
        cluster[1].store.fates.extend([Fate.ANSWERED, Fate.ANSWERED, Fate.ANSWERED, Fate.REFUSED])
        await cluster[1].join()
        await sleep_ms(2_000)
        assert await left(cluster) == 0


async def test_what_all_registered_brokers_can_do_is_relied_on_and_not_before() -> None:
    """A broker of an earlier release, that is not there but may come back, keeps the others from it."""
    async with brokers() as cluster:
        await settle()
        assert (await cluster.image()).features == SUPPORTED
        older = NodeState((b"o" * 16,))
        await cluster.store.commit(Txn(put={node_key(9): older.encode()}, delete=(FEATURES_KEY,)))
        await settle()
        assert (await cluster.image()).features == {}
        await cluster.store.commit(Txn(put={node_key(9): replace(older, features=SUPPORTED).encode()}))
        await settle()
        assert (await cluster.image()).features == SUPPORTED
        await cluster.store.commit(Txn(put={node_key(9): older.encode()}))
        await settle()
        assert (await cluster.image()).features == SUPPORTED, "it is not taken back"


async def test_a_level_that_an_operator_has_set_stays_while_others_are_finalized() -> None:
    lowered = {TRANSACTION_VERSION: 1}
    async with brokers() as cluster:
        await settle()
        await cluster.store.commit(Txn(put={FEATURES_KEY: encode_features({**lowered, ENVELOPE: 1}, lowered)}))
        await settle()
        image = await cluster.image()
        assert image.features == {**SUPPORTED, **lowered}
        assert image.held_features == lowered
