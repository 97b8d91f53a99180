"""A broker goes: it gives up what it leads first, waits no longer than it may, and a whole cluster gives up nothing.

Brokers of one process over sockets where they come and go; where time matters, members without logs in virtual time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    BrokerState,
    PartitionState,
    broker_key,
    decode_partition,
    partition_key,
    stopping_key,
)
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import StoreClosed, StoreWentBack, Txn
from odradek.broker.cluster.topics import create_topic
from odradek.broker.cluster_member import ClusterMember
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.launch.cluster_settings import cluster_settings
from odradek.broker.launch.stopping import stop_all
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.membership.peers import PeerLost
from odradek.broker.membership.registration import Identity, Registration
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.network.test_connection import until
from tests.broker.wire import batch, connected, produce
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork, Reach
from tests.client.virtual_time import VirtualEnvironment, virtual_loop

FREE = Listener("PLAINTEXT", "127.0.0.1", 0)
TOPIC_ID = bytes(range(16))
TRIO = PartitionState(TOPIC_ID, (1, 2, 3), (1, 2, 3), 2)
LEASE_MS = 2_000
PATIENCE_S = 10.0


# -- whole brokers -----------------------------------------------------------------------------------------------------


async def three(store: MemoryStore) -> list[Broker]:
    """Running, with three partitions that broker 2 leads."""
    environment = Environment()
    brokers = [Broker(each, environment, MemoryDisk(), store=store) for each in cluster_settings(3, FREE, None, {})]
    for broker in brokers:
        await broker.start()
    revision = await create_topic(store, "orders", TOPIC_ID, [TRIO] * 3, {})
    for broker in brokers:
        await asyncio.wait_for(broker.context.metadata.applied(revision), PATIENCE_S)
    return brokers


async def states(store: MemoryStore) -> list[PartitionState]:
    entries = (await store.read("/partitions/orders/")).entries
    return [
        decode_partition(entries[key].value, "orders", index, entries[key].revision)
        for index, key in enumerate(partition_key("orders", index) for index in range(3))
    ]


async def test_who_stops_leads_nothing_and_is_in_no_in_sync_set_when_it_goes() -> None:
    store = MemoryStore()
    brokers = await three(store)
    before = (await store.read("/")).revision
    await brokers[1].stop()
    images: list[ClusterImage] = []
    image = brokers[0].context.metadata.image
    async for change in store.watch("/", before):
        gone = [event.key for event in change.events if event.value is None]
        if broker_key(2) in gone:
            assert stopping_key(2) in gone, "both stand under its lease"
            break
        image = ClusterImage.from_snapshot(await store.read("/"))
        images.append(image)
    assert images, "something happened before it went"
    assert all(state.leader in (1, 3) and state.isr == (1, 3) for state in await states(store))
    await stop_all([brokers[0], brokers[2]])
    await store.close()


async def test_a_whole_cluster_that_stops_changes_nothing_so_all_are_in_sync_afterwards() -> None:
    store = MemoryStore()
    brokers = await three(store)
    before = await states(store)
    await stop_all(brokers)
    assert await states(store) == before
    assert [state.revision for state in await states(store)] == [state.revision for state in before]
    await store.close()


async def test_what_was_written_when_all_stop_is_replicated_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    brokers = await three(store)
    partition = brokers[1].context.partitions.leader("orders", 0)
    logs = [broker.context.partitions.find("orders", 0).log for broker in brokers]
    async with connected(brokers[1]) as client:
        for _ in range(20):
            client.send(produce("orders", batch(b"x"), acks=-1), 9)
        await until(lambda: partition.high_watermark.waiting > 0)
        stopping = asyncio.ensure_future(stop_all(brokers))
        answered = await client.receive(produce("orders", None), 9)
        assert answered[1].responses[0].partition_responses[0].error_code == ErrorCode.NONE
        await stopping
    assert {log.log_end_offset for log in logs} == {partition.high_watermark.value}
    assert "still running" not in caplog.text
    await store.close()


# -- members in virtual time -------------------------------------------------------------------------------------------


class One:
    """One member, which follows the metadata, stays registered, and decides if it may."""

    def __init__(self, store: MemoryStore, node_id: int, network: MemoryNetwork | None = None) -> None:
        self.store = FaultyStore(store)
        self.environment = VirtualEnvironment(seed=node_id) if network is None else MemoryEnvironment(network)
        self.tasks = Tasks(self.environment.loop)
        self.metadata = ImageFollower(self.store, ClusterImage())
        identity = Identity(node_id, {"PLAINTEXT": (f"10.0.0.{node_id}", 9092)}, (bytes([node_id]) * 16,))
        registration = Registration(self.store, self.environment, identity, LEASE_MS)
        config = BrokerConfig({"min.insync.replicas": "1"})
        self.member = ClusterMember(self.metadata, config, registration, self.environment, self.tasks, "PLAINTEXT", {})

    async def join(self, *, decides: bool) -> None:
        registration = self.member.registration
        await registration.register()
        self.tasks.start(self.metadata.follow(self.environment), "follow the metadata")
        await self.metadata.applied(registration.epoch)
        self.tasks.start(registration.keep(), "stay registered")
        if decides:
            self.tasks.start(self.member.controller.run(), "control")
        await virtual_loop().settle()

    async def close(self) -> None:
        await self.member.fetchers.close()
        await self.tasks.close()
        await self.store.close()


def gauge(member: ClusterMember, name: str) -> float:
    [value] = [value for row, _, value in member.samples() if row.name == f"kafka_controller_kafkacontroller_{name}"]
    assert isinstance(value, int)
    return value


@asynccontextmanager
async def members(*, decides: bool) -> AsyncGenerator[list[One]]:
    store = MemoryStore()
    joined = [One(store, node_id) for node_id in (1, 2, 3)]
    try:
        for each in joined:
            await each.join(decides=decides)
        await create_topic(store, "orders", TOPIC_ID, [TRIO], {})
        await virtual_loop().settle()
        yield joined
    finally:
        for each in joined:
            await each.close()


def led_by(each: One) -> int:
    return each.metadata.image.topics["orders"].partitions[0].leader


@pytest.mark.virtual_time
async def test_it_returns_when_another_one_leads_and_is_still_there() -> None:
    async with members(decides=True) as (_, second, _):
        began_ms = second.environment.monotonic_ms()
        await second.member.give_up_leadership(3_000)
        assert led_by(second) == 1
        assert second.environment.monotonic_ms() - began_ms < 100
        assert 2 in second.metadata.image.brokers
        assert 2 in second.metadata.image.stopping


@pytest.mark.virtual_time
async def test_a_stopping_controller_gives_up_its_leaderships_before_another_is_elected() -> None:
    async with members(decides=True) as (first, _, _):
        await first.store.commit(Txn(put={partition_key("orders", 0): replace_leader(TRIO, 1).encode()}))
        await virtual_loop().settle()
        await first.member.give_up_leadership(3_000)
        assert led_by(first) == 2
        assert not first.member.controller.may_lead


@pytest.mark.virtual_time
async def test_where_nobody_decides_it_waits_no_longer_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    async with members(decides=False) as (_, second, _):
        began_ms = second.environment.monotonic_ms()
        await second.member.give_up_leadership(700)
        assert second.environment.monotonic_ms() - began_ms == pytest.approx(700, abs=5)
        assert "1 partitions could not be given to others in time" in caplog.text


@pytest.mark.virtual_time
@pytest.mark.parametrize("others", ["gone", "stopping"])
async def test_where_nobody_could_take_over_it_gives_up_nothing(others: str) -> None:
    async with members(decides=True) as (first, second, third):
        for each in (first, third):
            if others == "gone":
                await each.member.registration.leave()
                await each.tasks.close()
            else:
                await each.member.registration.announce_stop()
        await virtual_loop().settle()
        await second.member.give_up_leadership(3_000)
        assert not (await second.store.read(stopping_key(2))).entries


@pytest.mark.virtual_time
async def test_it_waits_no_longer_when_whoever_could_take_over_stops_too(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers that are stopped at the same time: none of them decides any more."""
    async with members(decides=False) as (first, second, third):
        giving_up = asyncio.ensure_future(second.member.give_up_leadership(60_000))
        for each in (first, third):
            await virtual_loop().settle()
            assert not giving_up.done()
            await each.member.registration.announce_stop()
        await virtual_loop().settle()
        assert giving_up.done()
        assert "in time" not in caplog.text


@pytest.mark.virtual_time
async def test_who_was_fenced_meanwhile_and_who_is_cut_off_wait_for_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with members(decides=False) as (first, second, third):
        epoch = second.member.registration.epoch
        giving_up = asyncio.ensure_future(second.member.give_up_leadership(60_000))
        await virtual_loop().settle()
        assert not giving_up.done()
        await first.store.commit(Txn(expect={broker_key(2): epoch}, delete=(broker_key(2),)))
        await virtual_loop().settle()
        assert giving_up.done()
        third.store.is_cut = True
        await third.member.give_up_leadership(60_000)
        assert "leadership could not be given up in order: the store does not answer" in caplog.text


@pytest.mark.virtual_time
@pytest.mark.parametrize("fails", ["the metadata", "the store"])
async def test_who_does_not_follow_the_metadata_any_more_says_so_and_waits_for_nobody(
    fails: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def went_back(txn: Txn) -> int:
        raise StoreWentBack("it was restored")

    async with members(decides=False) as (_, second, _):
        if fails == "the store":
            monkeypatch.setattr(second.store, "commit", went_back)
        else:
            second.metadata.revision.fail(StoreClosed("it cannot be followed"))
        await second.member.give_up_leadership(60_000)
        assert "leadership could not be given up in order: it " in caplog.text


@pytest.mark.virtual_time
async def test_a_connection_that_is_not_made_in_time_is_given_up() -> None:
    """The kernel tries again after ever longer pauses; whoever begins anew is there sooner."""
    store, network = MemoryStore(), MemoryNetwork()
    first, second = One(store, 1, network), One(store, 2)
    try:
        await second.join(decides=False)
        await first.join(decides=False)
        network.path("10.0.0.2", 9092).reach = Reach.BLACK_HOLE
        began_ms = first.environment.monotonic_ms()
        with pytest.raises(PeerLost):
            async with first.member.connect(2):  # pyright: ignore
                raise AssertionError("nobody answers")
        assert first.environment.monotonic_ms() - began_ms == pytest.approx(10_000, abs=5)
    finally:
        await first.close()
        await second.close()


@pytest.mark.virtual_time
async def test_a_broker_whose_listeners_have_other_names_is_told_of_with_what_to_do() -> None:
    store = MemoryStore()
    first = One(store, 1)
    try:
        await first.join(decides=False)
        elsewhere = BrokerState(2, {"INSIDE": ("10.0.0.2", 9092), "CLIENTS": ("10.0.0.2", 9093)})
        revision = await store.commit(Txn(put={broker_key(2): elsewhere.encode()}))
        await first.member.metadata.applied(revision)
        for broker_id, said in (
            (2, "broker 2 has no listener PLAINTEXT, by which this broker reaches others, but CLIENTS, INSIDE: "),
            (3, "broker 3 is not there"),
        ):
            with pytest.raises(PeerLost, match=said):
                async with first.member.connect(broker_id):  # pyright: ignore
                    raise AssertionError("it is nowhere")
    finally:
        await first.close()


def replace_leader(state: PartitionState, leader: int) -> PartitionState:
    return PartitionState(state.topic_id, state.replicas, state.isr, leader, state.leader_epoch + 1)


@pytest.mark.virtual_time
async def test_metrics_count_active_brokers_and_those_registered_but_gone_as_fenced() -> None:
    async with members(decides=False) as (first, second, third):
        assert (gauge(first.member, "activebrokercount"), gauge(first.member, "fencedbrokercount")) == (3, 0)
        await second.member.registration.leave()
        await virtual_loop().settle()
        assert (gauge(third.member, "activebrokercount"), gauge(third.member, "fencedbrokercount")) == (2, 1)
