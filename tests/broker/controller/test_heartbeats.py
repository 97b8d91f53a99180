"""A broker's heartbeats to its controller, and what it does when that is gone; over sockets in memory."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.acls import acl_key, encode_acl
from odradek.broker.cluster.image import NO_CONTROLLER
from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    BrokerState,
    broker_key,
    encode_controller,
    encode_stopping,
    stopping_key,
)
from odradek.broker.cluster.store import Txn
from odradek.broker.controller.heartbeats import CLOCK_INTERVAL_MS, RETRY_MS, Heartbeats
from odradek.broker.membership.peers import Peers
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)
from tests.broker.access.rules import acl
from tests.broker.cluster.faulty_store import Fate
from tests.broker.controller.brokers import Brokers, Member, brokers, sleep_ms
from tests.client.broker_handlers import Call
from tests.client.memory_network import MemoryNetwork, Reach
from tests.client.scripted_broker import ScriptedBroker, ScriptedCluster

pytestmark = pytest.mark.virtual_time

INTERVAL_MS, SESSION_MS = 200, 1_500
CONTROLLER, SECOND = 1, 2
HERE = 3


class World:
    """Broker 3 sends heartbeats to brokers 1 and 2, which are scripted, whichever of them is the controller."""

    def __init__(self, cluster: Brokers) -> None:
        self.cluster = cluster
        self.network = MemoryNetwork()
        self.scripted = ScriptedCluster(self.network, brokers=2)
        self.scripted.serve(BrokerHeartbeatRequest, self.answer)
        self.scripted.serve(DescribeQuorumRequest, self.quorum)
        self.ahead_ms = 0
        """By how much the controller's clock is ahead."""
        self.code = ErrorCode.NONE
        self.heard: list[tuple[int, int, float]] = []
        """By whom, of which epoch, and when."""
        self.revisions: list[int] = []
        """Up to where it has applied the metadata."""
        member = self.member
        member.is_heard = False
        environment = self.scripted.environment
        self.peers = Peers(environment, HERE, "PLAINTEXT")
        self.heartbeats = Heartbeats(member.metadata, member.config, member.registration, environment, self.peers)

    @property
    def member(self) -> Member:
        return self.cluster[HERE]

    @property
    def now_ms(self) -> float:
        return self.scripted.now_ms()

    def broker(self, node_id: int) -> ScriptedBroker:
        return self.scripted.brokers[node_id - 1]

    def answer(self, call: Call) -> BrokerHeartbeatResponse:
        request = call.exchange.request
        assert isinstance(request, BrokerHeartbeatRequest)
        assert request.broker_id == HERE
        self.heard.append((call.broker.node_id + 1, request.broker_epoch, self.now_ms))
        self.revisions.append(request.current_metadata_offset)
        return BrokerHeartbeatResponse(error_code=self.code)

    def quorum(self, call: Call) -> DescribeQuorumResponse:
        node_id = call.broker.node_id + 1
        told_ms = self.scripted.environment.now_ms() + self.ahead_ms
        voter = ReplicaState(replica_id=node_id, log_end_offset=0, last_fetch_timestamp=told_ms)
        partition = QuorumPartition(
            partition_index=0, leader_id=node_id, leader_epoch=0, high_watermark=0, current_voters=[voter], observers=[]
        )
        return DescribeQuorumResponse(topics=[QuorumTopic(topic_name="__cluster_metadata", partitions=[partition])])

    async def elect(self, node_id: int) -> None:
        await self.cluster.store.commit(Txn(put={CONTROLLER_KEY: encode_controller(node_id)}))

    async def controller(self) -> int:
        return (await self.cluster.image()).controller_id


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    async with brokers(joining=()) as cluster:
        here = World(cluster)
        await here.elect(CONTROLLER)
        for node_id in (CONTROLLER, SECOND):
            state = BrokerState(node_id, {"PLAINTEXT": (here.broker(node_id).address, here.broker(node_id).port)})
            await cluster.store.commit(Txn(put={broker_key(node_id): state.encode()}))
        await here.member.join(runs=False)
        here.member.tasks.start(here.heartbeats.run(), "send heartbeats")
        await sleep_ms(10)
        try:
            yield here
        finally:
            await here.member.tasks.close()
            here.network.stop()


async def test_it_says_in_time_that_it_is_there_with_its_epoch() -> None:
    async with world() as here:
        began_ms = here.now_ms
        await sleep_ms(10 * INTERVAL_MS)
        assert 9 <= len(here.heard) <= 12
        assert {(by, epoch) for by, epoch, _ in here.heard} == {(CONTROLLER, here.member.registration.epoch)}
        assert max(at for _, _, at in here.heard) > began_ms + 8 * INTERVAL_MS
        assert len(here.network.links) == 1, "all over one connection"


async def test_that_acls_have_changed_is_said_at_once_with_the_revision() -> None:
    """Whoever changed them waits for that."""
    async with world() as here:
        await sleep_ms(INTERVAL_MS / 2)
        for txn in (Txn(put={acl_key(acl()): encode_acl(acl())}), Txn(delete=(acl_key(acl()),))):
            count = len(here.heard)
            revision = await here.cluster.store.commit(txn)
            await sleep_ms(5)
            assert len(here.heard) == count + 1
            assert here.revisions[-1] == revision
        count = len(here.heard)
        await here.cluster.store.commit(Txn(put={"/something/else": b""}))
        await sleep_ms(5)
        assert len(here.heard) == count


async def test_it_goes_on_with_its_new_epoch_when_it_was_registered_anew() -> None:
    async with world() as here:
        former = here.member.registration.epoch
        await here.cluster.store.commit(Txn(delete=(broker_key(HERE),)))
        await sleep_ms(3 * INTERVAL_MS)
        assert here.heard[-1][1] == here.member.registration.epoch > former


async def test_a_broker_cut_off_from_the_controller_reregisters_once_then_awaits_an_answer() -> None:
    async with world() as here:
        registration = here.member.registration
        path = here.network.path(here.broker(CONTROLLER).address, here.broker(CONTROLLER).port)
        path.reach = Reach.BLACK_HOLE
        for link in here.network.links:
            link.lose_server()
        epochs = [registration.epoch]
        for _ in range(4):  # as the controller does it, which hears nothing
            await here.cluster.store.commit(Txn(delete=(broker_key(HERE),)))
            await sleep_ms(SESSION_MS)
            if registration.epoch != epochs[-1]:
                epochs.append(registration.epoch)
        assert len(epochs) == 2
        path.reach = Reach.OPEN
        await sleep_ms(SESSION_MS + INTERVAL_MS)
        assert registration.epoch > epochs[-1]
        assert here.heard[-1][1] == registration.epoch


async def test_elected_itself_it_waits_for_nobody() -> None:
    async with world() as here:
        registration = here.member.registration
        here.code = ErrorCode.NOT_CONTROLLER
        former = registration.epoch
        await here.cluster.store.commit(Txn(delete=(broker_key(HERE),)))
        await sleep_ms(100)
        second = registration.epoch
        assert second > former
        await here.cluster.store.commit(Txn(delete=(broker_key(HERE),)))
        await sleep_ms(SESSION_MS)
        assert registration.epoch == second, "nobody who is the controller has answered"
        await here.elect(HERE)
        await sleep_ms(100)
        assert registration.epoch > second


async def test_it_turns_to_the_next_controller() -> None:
    async with world() as here:
        await here.elect(SECOND)
        await sleep_ms(2 * INTERVAL_MS)
        assert here.heard[-1][0] == SECOND
        assert len(here.network.links) == 1
        assert await here.controller() == SECOND


async def test_a_controller_whose_process_is_gone_is_taken_away_at_once() -> None:
    async with world() as here:
        await sleep_ms(INTERVAL_MS)
        here.broker(CONTROLLER).stop()
        await sleep_ms(20)
        assert await here.controller() == NO_CONTROLLER


@pytest.mark.parametrize("has_said_so", [False, True])
async def test_a_controller_that_stops_in_order_is_no_warning(
    has_said_so: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with world() as here:
        if has_said_so:
            await here.cluster.store.commit(Txn(put={stopping_key(CONTROLLER): encode_stopping(1)}))
        await sleep_ms(INTERVAL_MS)
        with caplog.at_level(logging.INFO):
            here.broker(CONTROLLER).stop()
            await sleep_ms(20)
        (told,) = [record for record in caplog.records if "nobody listens" in record.getMessage()]
        assert told.levelno == (logging.INFO if has_said_so else logging.WARNING)
        assert await here.controller() == NO_CONTROLLER


async def test_a_reset_alone_means_nothing_and_is_followed_by_another_connection_at_once() -> None:
    async with world() as here:
        await sleep_ms(INTERVAL_MS)
        heard = len(here.heard)
        (link,) = here.network.links
        link.reset()
        await sleep_ms(20)
        assert len(here.heard) > heard
        assert await here.controller() == CONTROLLER


async def test_connections_that_break_again_and_again_are_not_opened_without_end() -> None:
    async with world() as here:
        attempts = len(here.network.attempts)
        for _ in range(200):
            for link in here.network.links:
                link.reset()
            await sleep_ms(5)
        assert len(here.network.attempts) - attempts <= 1_000 / RETRY_MS + 2


async def test_a_controller_that_is_silent_is_left_to_its_lease() -> None:
    async with world() as here:
        here.network.path(here.broker(CONTROLLER).address, here.broker(CONTROLLER).port).reach = Reach.BLACK_HOLE
        for link in here.network.links:
            link.lose_server()
        await sleep_ms(20 * SESSION_MS)
        assert await here.controller() == CONTROLLER
        assert not any(CONTROLLER_KEY in txn.delete for txn in here.member.store.commits)


@pytest.mark.parametrize("is_connected", [True, False])
async def test_it_turns_to_the_next_controller_at_once_though_the_last_one_is_silent(is_connected: bool) -> None:
    """The next one judges by what it hears, and gives nobody longer than a session."""
    async with world() as here:
        here.network.path(here.broker(CONTROLLER).address, here.broker(CONTROLLER).port).reach = Reach.BLACK_HOLE
        for link in here.network.links:
            link.lose_server()
        await sleep_ms((0.5 if is_connected else 1.5) * SESSION_MS)
        here.heard.clear()
        await here.elect(SECOND)
        await sleep_ms(INTERVAL_MS)
        assert here.heard
        assert here.heard[-1][0] == SECOND


async def test_only_the_controller_that_is_gone_is_taken_away_and_not_its_successor() -> None:
    """Its image is behind: another one has been elected meanwhile."""
    async with world() as here:
        here.member.store.blind()
        await here.elect(SECOND)
        here.broker(CONTROLLER).stop()
        await sleep_ms(500)
        assert await here.controller() == SECOND
        here.member.store.see()
        await sleep_ms(500)
        assert here.heard[-1][0] == SECOND


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST])
async def test_it_tries_again_to_take_it_away_when_the_store_does_not_answer(fate: Fate) -> None:
    async with world() as here:
        here.member.store.fates.append(fate)
        here.broker(CONTROLLER).stop()
        await sleep_ms(500)
        assert await here.controller() == NO_CONTROLLER


async def test_one_that_is_not_the_controller_is_asked_again_later() -> None:
    async with world() as here:
        here.code = ErrorCode.NOT_CONTROLLER
        await sleep_ms(1_000)
        assert await here.controller() == CONTROLLER
        heard, attempts = len(here.heard), len(here.network.attempts)
        await sleep_ms(1_000)
        assert len(here.network.attempts) > attempts + 2, "over a connection of its own each time"
        assert 1 < len(here.heard) - heard <= 1_000 / RETRY_MS
        here.code = ErrorCode.NONE
        await sleep_ms(1_000)
        assert len(here.network.links) == 1


async def test_without_a_controller_and_as_controller_it_sends_nothing() -> None:
    async with world() as here:
        await here.elect(HERE)
        await sleep_ms(INTERVAL_MS)
        here.heard.clear()
        await sleep_ms(5 * INTERVAL_MS)
        await here.cluster.store.commit(Txn(delete=(CONTROLLER_KEY,)))
        await sleep_ms(5 * INTERVAL_MS)
        assert not here.heard
        await here.elect(SECOND)
        await sleep_ms(INTERVAL_MS)
        assert here.heard


async def test_a_controller_without_an_address_for_brokers_is_waited_for() -> None:
    async with world() as here:
        nowhere = BrokerState(SECOND, {"PUBLIC": ("10.0.0.2", 1)})
        await here.cluster.store.commit(Txn(put={broker_key(SECOND): nowhere.encode()}))
        await here.elect(SECOND)
        await sleep_ms(1_000)
        await here.elect(CONTROLLER)
        here.heard.clear()
        await sleep_ms(2 * INTERVAL_MS)
        assert here.heard


async def test_clocks_are_compared_now_and_then_and_one_that_is_off_changes_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as here:
        assert abs(here.heartbeats.clock.offset_ms) < 10
        here.ahead_ms = 90_000
        await sleep_ms(CLOCK_INTERVAL_MS + 2 * INTERVAL_MS)
        assert here.heartbeats.clock.offset_ms == pytest.approx(-90_000, abs=10)
        assert "90.0 s behind that of the controller, broker 1" in caplog.text
        heard = len(here.heard)
        await sleep_ms(10 * INTERVAL_MS)
        assert len(here.heard) >= heard + 9
        await here.elect(HERE)
        await sleep_ms(INTERVAL_MS)
        assert here.heartbeats.clock.offset_ms == 0.0, "it is the controller itself"


def may_be_fenced(here: World) -> bool:
    here.member.registration.require_lease()
    try:
        here.member.registration.require_unfenced()
    except KafkaError as error:
        assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        return True
    return False


async def test_what_others_may_have_taken_over_is_refused_before_the_controller_fences_us() -> None:
    async with world() as here:
        await sleep_ms(10 * INTERVAL_MS)
        assert not may_be_fenced(here)
        path = here.network.path(here.broker(CONTROLLER).address, here.broker(CONTROLLER).port)
        path.reach = Reach.BLACK_HOLE
        for link in here.network.links:
            link.lose_server()
        last_heard_ms = here.heard[-1][2]
        while not may_be_fenced(here):
            await sleep_ms(10)
        assert here.heard[-1][2] == last_heard_ms
        assert SESSION_MS / 2 < here.now_ms - last_heard_ms < SESSION_MS
        path.reach = Reach.OPEN
        await sleep_ms(SESSION_MS + INTERVAL_MS)
        assert not may_be_fenced(here)


async def test_an_answer_that_refuses_the_heartbeat_keeps_nobody_from_fencing_us() -> None:
    async with world() as here:
        await sleep_ms(INTERVAL_MS)
        here.code = ErrorCode.STALE_BROKER_EPOCH
        await sleep_ms(SESSION_MS)
        assert may_be_fenced(here)


async def test_nobody_fences_the_controller_and_it_is_heard_anew_when_it_is_no_longer_that() -> None:
    async with world() as here:
        await here.elect(HERE)
        await sleep_ms(10 * SESSION_MS)
        assert not may_be_fenced(here)
        path = here.network.path(here.broker(SECOND).address, here.broker(SECOND).port)
        path.reach = Reach.BLACK_HOLE
        await here.elect(SECOND)
        await sleep_ms(INTERVAL_MS)
        assert may_be_fenced(here)
