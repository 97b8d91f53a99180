"""Histories of three brokers over one store: whoever takes itself for the controller, one at a time decides.

Brokers are killed and come back, are fenced though they live, are cut off from the store or blind for what happens
there, lose answers, and depose one another. Operators give partitions other replicas, cancel that, elect, and
unregister brokers. At every change of a partition:

- it was made by the one who was the controller in the store at that moment, or by a broker that starts;
- a new leader was in sync or eligible, and registered; each leader epoch has one leader;
- somebody who was in sync or eligible is so still, and of those whose replicas are taken away, so many others are as
  `min.insync.replicas` asks for, or as there were before.

When all is well again there is one controller, every partition is led by somebody who is there, nothing is left to
decide, and a leader that was restarted has a leader epoch that is younger than its registration.
"""

import random

import pytest

from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    NO_LEADER,
    PartitionState,
    broker_key,
    decode_controller,
    stopping_key,
)
from odradek.broker.cluster.partition_changes import changed, with_isr
from odradek.broker.cluster.partition_writes import PartitionWrite
from odradek.broker.cluster.store import Conflict, LeaseLost, StoreClosed, Txn
from odradek.broker.controller.decisions import decided
from odradek.broker.handling.partition_plans import ElectionType, find, with_elected_leader, with_replicas
from odradek.protocol.errors import KafkaError
from tests.broker.cluster.faulty_store import Fate, FaultyStore
from tests.broker.controller.brokers import LEASE_MS, TOPIC_ID, Brokers, Member, settle, sleep_ms

pytestmark = pytest.mark.virtual_time(seconds_max=1e9)

HISTORIES = 40
STEPS = 40
NODES = (1, 2, 3)
STATES = tuple(PartitionState(TOPIC_ID, (*NODES[at:], *NODES[:at]), NODES, NODES[at]) for at in range(3))
ACTIONS = (
    *("kill", "return", "return", "fence", "depose", "depose", "stop"),
    *("cut", "heal", "heal", "blind", "see", "see", "fate", "deliver"),
    *("isr", "isr", "wait", "wait", "operator", "operator", "operator"),
)
WISHES = ("reassign", "reassign", "reassign", "cancel", "prefer", "unregister")
FATES = (Fate.LOST, Fate.REFUSED, Fate.LATE, Fate.HELD)


class History:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cluster = Brokers(3, self.chance.choice((1, 2)), {})
        self.dead: set[int] = set()
        self.leaders: dict[tuple[int, int], int] = {}
        self.changes = 0
        self.controllers: set[int] = set()
        self.completions = 0
        self.broken: list[AssertionError] = []
        """What was found in commits, most of which nobody awaits here."""

    async def run(self) -> None:
        cluster = self.cluster
        try:
            self.watch()
            for node_id in NODES:
                await cluster[node_id].join()
            await cluster.create(*STATES)
            for _ in range(STEPS):
                await self.act(self.chance.choice(ACTIONS), self.chance.choice(NODES))
                await settle()
            await self.heal()
        finally:
            await cluster.close()
        if self.broken:
            raise self.broken[0]

    def watch(self) -> None:
        """Looks at each commit as it arrives."""
        store = self.cluster.store
        commit = store.commit

        async def watched(txn: Txn) -> int:
            before = await self.cluster.states()
            image = await self.cluster.image()
            revision = await commit(txn)
            after = await self.cluster.states()
            for key, state in after.items():
                if key in before and state != before[key]:
                    try:
                        self.check(txn, key[1], before[key], state, image.controller_revision)
                    except AssertionError as error:
                        self.broken.append(error)
                        raise
            if (elected := txn.put.get(CONTROLLER_KEY)) is not None:
                self.controllers.add(decode_controller(elected))
            return revision

        store.commit = watched  # type: ignore[method-assign]

    def check(
        self, txn: Txn, index: int, before: PartitionState, after: PartitionState, controller_revision: int
    ) -> None:
        self.changes += 1
        assert after.partition_epoch == before.partition_epoch + 1
        members, left = {*before.isr, *before.elr}, {*after.isr, *after.elr}
        assert left <= {*members, *after.isr}
        assert left or not members, "nobody is left who may lead without loss"
        if not set(before.replicas) <= set(after.replicas):
            self.completions += 1
            enough = min(self.cluster.min_insync, len(after.replicas))
            assert len(left) >= min(enough, len(members)), "copies were taken away"
        if after.leader_epoch == before.leader_epoch:
            assert after.leader == before.leader
            return
        assert txn.expect[CONTROLLER_KEY] == controller_revision
        if after.leader != NO_LEADER:
            assert after.leader in (*before.isr, *before.elr)
            assert txn.expect[broker_key(after.leader)] > 0
            assert self.leaders.setdefault((index, after.leader_epoch), after.leader) == after.leader

    async def act(self, action: str, node_id: int) -> None:
        cluster, chance = self.cluster, self.chance
        member = cluster[node_id]
        match action:
            case "kill" if node_id not in self.dead:
                self.dead.add(node_id)
                await member.crash()
            case "return":
                await self.bring_back(node_id)
            case "fence":
                await cluster.store.commit(Txn(delete=(broker_key(node_id), stopping_key(node_id))))
            case "stop" if node_id not in self.dead and chance.random() < 0.5:
                member.store.is_cut = False
                member.store.fates.clear()
                member.controller.may_lead = False
                if member.metadata.image.brokers.get(node_id) is not None:
                    await self.announce(node_id)
            case "depose":
                await cluster.store.commit(Txn(delete=(CONTROLLER_KEY,)))
            case "isr":
                await self.shrink(chance.randrange(len(STATES)))
            case "operator":
                for active in set(cluster.active()) - self.dead:
                    cluster[active].tasks.start(self.operate(cluster[active]), "do what an operator wants")
            case "wait":
                await sleep_ms(chance.choice((10, 200, LEASE_MS + 100)))
            case _:
                await self.trouble(action, member.store)

    async def operate(self, member: Member) -> None:
        """As the handlers do, with what this controller knows."""
        chance, image, controller = self.chance, member.metadata.image, member.controller
        index, node_id = chance.randrange(len(STATES)), chance.choice(NODES)
        try:
            wish = chance.choice(WISHES)
            if wish == "unregister":
                if node_id in image.nodes and node_id not in image.brokers:
                    await controller.unregister(node_id)
                return
            if wish == "prefer":
                after = with_elected_leader(image, "orders", index, ElectionType.PREFERRED)
            else:
                target = chance.sample(NODES, chance.randint(1, 3)) if wish == "reassign" else None
                after = with_replicas(image, "orders", index, target, self.cluster.min_insync, may_change_count=True)
            _, before = find(image, "orders", index)
            if after is not before:
                await controller.change([PartitionWrite(f"/partitions/orders/{index}", before, after)])
        except (Conflict, KafkaError, OSError, LeaseLost, StoreClosed):
            return  # it is told so

    async def trouble(self, action: str, way: FaultyStore) -> None:
        """On a broker's way to the store."""
        match action:
            case "cut" | "heal":
                way.is_cut = action == "cut"
            case "blind":
                way.blind()
            case "see":
                way.see()
            case "fate":
                way.fates.append(self.chance.choice(FATES))
            case _:
                await way.deliver()

    async def announce(self, node_id: int) -> None:
        try:
            await self.cluster[node_id].registration.announce_stop()
        except Conflict:
            return  # it was fenced

    async def bring_back(self, node_id: int) -> None:
        if node_id in self.dead or not self.cluster[node_id].controller.may_lead:
            self.dead.discard(node_id)
            await self.cluster.reborn(node_id)

    async def shrink(self, index: int) -> None:
        """As a leader does, or undoes."""
        state = await self.cluster.state(index)
        image = await self.cluster.image()
        if state.leader in image.brokers:
            usable = [each for each in state.replicas if each == state.leader or image.is_usable(each)]
            isr = [each for each in usable if each == state.leader or self.chance.random() < 0.7]
            after = changed(state, with_isr(state, isr, self.cluster.min_insync))
            key = f"/partitions/orders/{index}"
            epoch = image.brokers[state.leader].epoch
            if after is not state and epoch < state.revision:
                expect = {key: state.revision, broker_key(state.leader): epoch}
                await self.cluster.store.commit(Txn(expect=expect, put={key: after.encode()}))

    async def heal(self) -> None:
        cluster = self.cluster
        for node_id in NODES:
            member = cluster[node_id]
            member.store.is_cut = False
            member.store.fates.clear()
            member.store.see()
            await member.store.deliver()
            await self.bring_back(node_id)
        await sleep_ms(10 * LEASE_MS)
        image = await cluster.image()
        assert cluster.active() == [image.controller_id]
        assert sorted(image.brokers) == list(NODES)
        assert not image.stopping
        for state in (await cluster.states()).values():
            assert image.is_usable(state.leader)
            assert state.revision > image.brokers[state.leader].epoch
            assert decided(state, image, cluster.min_insync, unclean=False) is state


async def test_whatever_happens_one_decides_and_everything_is_led_at_last() -> None:
    changes = elections = completions = 0
    for seed in range(HISTORIES):
        history = History(seed)
        try:
            await history.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        changes += history.changes
        elections += len(history.controllers)
        completions += history.completions
    assert changes > 5 * HISTORIES
    assert elections > 1.5 * HISTORIES, "the controller changes, too"
    assert completions > HISTORIES / 2, "replicas are taken away"
