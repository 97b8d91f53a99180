"""When metadata is asked for and of whom, on scripted brokers and virtual time; and that nothing spins without them."""

import asyncio
import logging

import pytest

from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.metrics.metrics import METADATA_AGE
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.runtime.metric import Metric
from tests.client.broker_faults import disconnect_before, edited, error, late, never, throttled
from tests.client.memory_network import Reach
from tests.client.metadata_answers import broker as named
from tests.client.running_cluster import INIT, Running, running
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


def questions_of(scripted: ScriptedCluster) -> list[tuple[float, tuple[str | None, ...]]]:
    """When Metadata was asked for, and about which topics."""
    found: list[tuple[float, tuple[str | None, ...]]] = []
    for each in scripted.exchanges_of(MetadataRequest):
        assert isinstance(each.request, MetadataRequest)
        assert each.request.topics is not None, "never about all topics there are"
        found.append((each.at_ms, tuple(topic.name for topic in each.request.topics)))
    return found


async def known(client: Running, *topics: str) -> None:
    for topic in topics:
        await client.cluster.wait_for_topic(topic, client.in_ms(10_000))


# ------------------------------------------------------------------------------------------------------ when, of what
async def test_metadata_is_refreshed_by_age_and_only_then() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("a")
        async with running(scripted) as client:
            await known(client, "a")
            began_ms = scripted.now_ms()
            await asyncio.sleep(299)
            assert len(questions_of(scripted)) == 2
            await asyncio.sleep(302)
            later = questions_of(scripted)[2:]
            assert [round((at_ms - began_ms) / 1_000) for at_ms, _ in later] == [300, 600]
            assert later[0][1] == ("a",)


async def test_a_request_for_news_is_met_at_the_pace_of_the_backoff() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            await asyncio.sleep(1)
            began_ms = scripted.now_ms()
            for _ in range(1_000):
                client.cluster.metadata.request_update()
                await asyncio.sleep(0.01)
            count = len([at_ms for at_ms, _ in questions_of(scripted) if at_ms >= began_ms])
            assert 5 < count < 20, "100, 200, 400, 800, 1000, 1000 … ms, as nothing changes"


async def test_one_question_is_under_way_at_a_time() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(MetadataRequest, late(2_000), times=None)
            client.cluster.metadata.request_update()
            await asyncio.sleep(0.1)
            for name in ("a", "b", "c"):
                client.cluster.metadata.use(name, client.now_ms())
                client.cluster.metadata.request_update()
                await asyncio.sleep(0.1)
            assert len(questions_of(scripted)) == 2
            await asyncio.sleep(2.5)
            assert questions_of(scripted)[2:][0][1] == ("a", "b", "c")
            assert len(questions_of(scripted)) == 3


async def test_a_new_topic_is_asked_for_at_once_and_alone() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("a")
        scripted.create_topic("b")
        async with running(scripted) as client:
            await known(client, "a")
            await asyncio.sleep(10)
            began_ms = scripted.now_ms()
            client.cluster.metadata.use("b", client.now_ms())
            await known(client, "b")
            at_ms, topics = questions_of(scripted)[-1]
            assert topics == ("b",)
            assert at_ms - began_ms < 10


async def test_a_topic_out_of_use_is_not_asked_for_any_more() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("a")
        async with running(scripted, metadata_max_idle_ms=20_000, metadata_max_age_ms=15_000) as client:
            await known(client, "a")
            await asyncio.sleep(70)
            assert [topics for _, topics in questions_of(scripted)] == [(), ("a",), ("a",), ("a",), (), ()]
            assert client.cluster.metadata.topic("a") is None


async def test_an_answer_that_never_comes_is_given_up_and_asked_for_elsewhere() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.create_topic("a")
        async with running(scripted, request_timeout_ms=3_000) as client:
            scripted.on(MetadataRequest, never())
            began_ms = client.now_ms()
            await known(client, "a")
            assert 3_000 < client.now_ms() - began_ms < 3_500


async def test_a_throttled_broker_is_waited_for_and_no_reason_to_bootstrap(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with scripted_cluster() as scripted:
        scripted.create_topic("a")
        async with running(scripted) as client:
            await client.cluster.connection_to(0, client.in_ms(1_000))
            scripted.on(InitProducerIdRequest, throttled(2_000))
            await client.cluster.ask(INIT)
            attempts = len(scripted.network.attempts)
            began_ms = client.now_ms()
            await known(client, "a")
            assert 1_990 < client.now_ms() - began_ms < 2_100
            assert len(scripted.network.attempts) == attempts
            assert "bootstrap" not in caplog.text


# ------------------------------------------------------------------------------------------------------ whom it asks
def forget_all_but(*node_ids: int) -> object:
    """A fault of Metadata: the broker names no others."""

    def edit(response: MetadataResponse) -> None:
        response.brokers = [each for each in response.brokers if each.node_id in node_ids]

    return edited(edit)


async def test_with_all_known_brokers_gone_bootstrap_servers_are_asked_and_leaders_stay() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.create_topic("a", leaders=[0])
        scripted.brokers[1].is_fenced = True
        async with running(scripted, servers=scripted.bootstrap[1:]) as client:
            await known(client, "a")
            await client.cluster.connection_to(0, client.in_ms(1_000))
            scripted.brokers[0].stop()
            scripted.brokers[1].path.to_server.delay_ms = 300
            began_ms = scripted.now_ms()
            await asyncio.sleep(0.02)
            assert client.cluster.metadata.leader_of("a", 0) == (0, 0), "until a broker says otherwise"
            for _ in range(200):  # as the sender does, which has something for the leader
                client.cluster.connection(0)
                await asyncio.sleep(0.01)
            asked = [each for each in scripted.exchanges_of(MetadataRequest, node=1) if each.at_ms >= began_ms]
            assert asked, "the bootstrap server, which is no known broker"
            scripted.brokers[1].is_fenced = False
            scripted.brokers[0].is_fenced = True
            scripted.move_leader("a", 0, to=1)
            for _ in range(20):
                client.cluster.connection(0)
                await asyncio.sleep(0.1)
            assert client.cluster.metadata.leader_of("a", 0) == (1, 1)
            assert [each.node_id for each in client.cluster.metadata.nodes()] == [1]


async def test_without_recovery_the_bootstrap_servers_are_never_asked_again() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.brokers[1].is_fenced = True
        async with running(scripted, servers=scripted.bootstrap[1:], metadata_recovery_strategy="none") as client:
            await client.cluster.connection_to(0, client.in_ms(1_000))
            scripted.brokers[0].stop()
            asked = scripted.count(MetadataRequest, node=1)
            await asyncio.sleep(700)
            assert scripted.count(MetadataRequest, node=1) == asked
            scripted.brokers[0].start()
            await client.cluster.connection_to(0, client.in_ms(5_000))


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
async def test_metadata_that_cannot_be_had_for_long_makes_the_client_begin_anew(strategy: str) -> None:
    """The known broker takes connections, and answers questions for metadata after 40 s only."""
    with scripted_cluster(brokers=2) as scripted:
        scripted.create_topic("a", leaders=[0])
        scripted.brokers[1].is_fenced = True
        async with running(
            scripted,
            servers=scripted.bootstrap[1:],
            metadata_recovery_strategy=strategy,
            metadata_recovery_rebootstrap_trigger_ms=20_000,
        ) as client:
            await known(client, "a")
            connection = await client.cluster.connection_to(0, client.in_ms(1_000))
            scripted.on(MetadataRequest, error(ErrorCode.NONE), late(40_000), node=0, times=None)
            began_ms = client.now_ms()
            client.cluster.metadata.request_update()
            asked = scripted.count(MetadataRequest, node=1)
            await asyncio.sleep(19)
            assert connection.is_open
            await asyncio.sleep(12)
            if strategy == "none":
                assert scripted.count(MetadataRequest, node=1) == asked
            else:
                times = [each.at_ms for each in scripted.exchanges_of(MetadataRequest, node=1)][asked:]
                assert 20_000 <= times[0] - began_ms < 31_000
            assert not connection.is_open, "30 s without an answer, or 20 s without metadata"


async def test_a_trigger_of_0_does_not_begin_anew_with_every_question() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, metadata_recovery_rebootstrap_trigger_ms=0) as client:
            connection = await client.cluster.connection_to(0, client.in_ms(1_000))
            for _ in range(5):
                client.cluster.metadata.request_update()
                await asyncio.sleep(2)
            assert connection.is_open
            scripted.on(MetadataRequest, disconnect_before(), times=None)
            client.cluster.metadata.request_update()
            await asyncio.sleep(0.9)
            assert client.cluster.metadata.nodes()
            await asyncio.sleep(0.9)
            assert not client.cluster.metadata.nodes(), "but in time it does"


async def test_a_client_that_begins_anew_forgets_leaders_until_it_is_told() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.create_topic("a", leaders=[0])
        scripted.brokers[1].is_fenced = True
        async with running(
            scripted, servers=scripted.bootstrap[1:], metadata_recovery_rebootstrap_trigger_ms=5_000
        ) as client:
            await known(client, "a")
            scripted.on(MetadataRequest, disconnect_before(), times=None)
            client.cluster.metadata.request_update()
            await asyncio.sleep(5.5)
            attempts = len(scripted.network.attempts)
            await asyncio.sleep(7)
            asked = {each.address for each in scripted.network.attempts[attempts:]}
            assert asked == {scripted.brokers[1].address}, "the bootstrap server alone"
            assert client.cluster.metadata.leader_of("a", 0) == (-1, -1)
            found = client.cluster.metadata.topic("a")
            assert found is not None
            assert found.partition_count == 1


async def test_beginning_anew_does_not_wait_for_attempts_that_hang() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, metadata_recovery_rebootstrap_trigger_ms=5_000) as client:
            scripted.brokers[0].stop(vanish=True)
            await asyncio.sleep(1)
            client.cluster.metadata.request_update()
            began_ms, changes = client.now_ms(), client.changes
            await asyncio.sleep(5.5)
            assert client.changes == changes + 1, "leaders are forgotten"
            times = [each.at_ms - began_ms for each in scripted.network.attempts if each.at_ms > began_ms + 4_000]
            assert times == pytest.approx([5_000], abs=5)


def rebootstrap_required(response: MetadataResponse) -> None:
    """What an answer can say from version 13 on (KIP-1102)."""
    response.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    response.brokers = []
    response.topics = []


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
async def test_a_broker_can_ask_the_client_to_begin_anew(strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.brokers[1].is_fenced = True
        async with running(scripted, servers=scripted.bootstrap[1:], metadata_recovery_strategy=strategy) as client:
            connection = await client.cluster.connection_to(0, client.in_ms(1_000))
            asked = scripted.count(MetadataRequest, node=1)
            scripted.on(MetadataRequest, late(1_000), edited(rebootstrap_required), node=0)
            scripted.on(InitProducerIdRequest, never())
            client.cluster.metadata.request_update()
            await asyncio.sleep(0.5)
            waiting = asyncio.ensure_future(connection.ask(INIT))
            await asyncio.sleep(5)
            assert scripted.exchanges_of(MetadataRequest, node=0)[0].version == 13
            if strategy == "rebootstrap":
                assert not connection.is_open
                assert scripted.count(MetadataRequest, node=1) == asked + 1
                assert "asks for it" in caplog.text
                assert client.cluster.metadata.node(0) is not None
                with pytest.raises(ConnectionFailed, match="begins anew"):
                    await waiting
            else:
                assert connection.is_open
                waiting.cancel()
                assert scripted.count(MetadataRequest, node=1) == asked


async def test_a_broker_that_always_asks_for_it_is_asked_at_the_pace_of_the_backoff() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(MetadataRequest, edited(rebootstrap_required), times=None)
            client.cluster.metadata.request_update()
            await asyncio.sleep(30)
            assert 10 < scripted.count(MetadataRequest) < 50


async def test_bootstrap_servers_are_asked_after_brokers_have_been_silent_for_a_second() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.brokers[1].is_fenced = True
        async with running(scripted, servers=scripted.bootstrap[1:]) as client:
            scripted.brokers[0].path.reach = Reach.BLACK_HOLE
            asked = scripted.count(MetadataRequest, node=1)
            client.cluster.metadata.request_update()
            await asyncio.sleep(0.9)
            assert scripted.count(MetadataRequest, node=1) == asked
            await asyncio.sleep(0.3)
            assert scripted.count(MetadataRequest, node=1) == asked + 1


# ---------------------------------------------------------------------------------------------------- nothing spins
@pytest.mark.parametrize("reach", [Reach.REFUSED, Reach.BLACK_HOLE])
@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
async def test_with_all_brokers_down_nothing_spins(reach: Reach, strategy: str) -> None:
    with scripted_cluster(brokers=3) as scripted:
        scripted.create_topic("a", partitions=3)
        async with running(scripted, metadata_recovery_strategy=strategy) as client:
            await known(client, "a")
            for broker in scripted.brokers.values():
                broker.stop()
                broker.path.reach = reach
            await asyncio.sleep(5)
            waits = [asyncio.ensure_future(client.cluster.wait_for_topic("b", client.in_ms(60_000))) for _ in range(5)]
            attempts, rounds = len(scripted.network.attempts), virtual_loop().iterations
            await asyncio.sleep(60)
            assert len(scripted.network.attempts) - attempts < 6 * 85, "once a second for each address, at most"
            assert virtual_loop().iterations - rounds < 60 * 80, "and a few rounds of the loop for each"
            assert len(scripted.network.attempts) > attempts
            for wait in waits:
                with pytest.raises(ClientError):
                    await wait
            for broker in scripted.brokers.values():
                broker.start()
            scripted.create_topic("b")
            await client.cluster.wait_for_topic("b", client.in_ms(31_000))


@pytest.mark.parametrize("count", [1, 3])
async def test_brokers_that_hang_up_at_once_are_not_called_again_and_again(count: int) -> None:
    with scripted_cluster(brokers=count) as scripted:
        async with running(scripted) as client:
            scripted.on(MetadataRequest, disconnect_before(), times=None)
            client.cluster.metadata.request_update()
            attempts, rounds = len(scripted.network.attempts), virtual_loop().iterations
            await asyncio.sleep(60)
            assert 60 < len(scripted.network.attempts) - attempts < 60 * 1.3 * 2 * count
            assert virtual_loop().iterations - rounds < 60 * 40 * 2 * count


async def test_a_cluster_that_names_brokers_nobody_can_reach_is_not_asked_again_and_again() -> None:
    """The classic mistake in advertised.listeners: the bootstrap server answers, what it names does not."""
    with scripted_cluster() as scripted:
        scripted.create_topic("a")

        def edit(response: MetadataResponse) -> None:
            response.brokers = [named(0, "10.9.9.9", 9092)]

        scripted.on(MetadataRequest, edited(edit), times=None)
        async with running(scripted) as client:
            await known(client, "a")
            questions, rounds = scripted.count(MetadataRequest), virtual_loop().iterations
            for _ in range(600):
                client.cluster.connection(0)
                await asyncio.sleep(0.1)
            assert 10 < scripted.count(MetadataRequest) - questions < 90
            assert virtual_loop().iterations - rounds < 60 * 100
            tried = [each for each in scripted.network.attempts if each.address == "10.9.9.9"]
            assert len(tried) < 90, "the backoff outlives the bootstrapping between"


# ------------------------------------------------------------------------------------------------------------ metrics
class Gauges:
    """A hook that keeps gauges."""

    def __init__(self) -> None:
        self.readers: dict[str, object] = {}

    def count(self, metric: Metric, amount: float, *labels: str) -> None: ...

    def observe(self, metric: Metric, value: float, *labels: str) -> None: ...

    def watch(self, metric: Metric, read: object, *labels: str) -> object:
        assert metric.name not in self.readers
        self.readers[metric.name] = read
        return lambda: self.readers.pop(metric.name)

    def read(self, name: str) -> float:
        read = self.readers[name]
        assert callable(read)
        value = read()
        assert isinstance(value, float | int)
        return value


async def test_the_age_of_metadata_and_the_number_of_connections_can_be_watched() -> None:
    gauges = Gauges()
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted, metrics=gauges) as client:
            await asyncio.sleep(3)
            assert 2_900 < gauges.read(METADATA_AGE.name) < 3_100
            assert gauges.read("connection-count") == 0
            await client.cluster.connection_to(1, client.in_ms(1_000))
            assert gauges.read("connection-count") == 1
            client.cluster.metadata.request_update()
            await asyncio.sleep(1)
            assert gauges.read(METADATA_AGE.name) < 1_000
        assert gauges.readers == {}
