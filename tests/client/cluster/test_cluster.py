"""Cluster on scripted brokers and virtual time: first contact, connections, waits for topics, questions, the end.

What decides when metadata is asked for, and of whom, is shown in `test_refresher.py`; how connections come and go, in
`test_nodes.py`.
"""

import asyncio

import pytest

from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.client_errors import (
    AuthorizationError,
    ClientClosed,
    ClientError,
    ConnectionFailed,
    InvalidTopic,
    MetadataTimeout,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import NodeEndpoint
from tests.client.broker_faults import (
    disconnect_before,
    error,
    garbage,
    late,
    never,
    throttled,
)
from tests.client.memory_network import Reach
from tests.client.running_cluster import INIT, begun, made, opened, running
from tests.client.scripted_broker import scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


# ------------------------------------------------------------------------------------------------------ first contact
async def test_start_learns_the_brokers_and_leaves_the_bootstrap_connection() -> None:
    with scripted_cluster(brokers=3) as scripted:
        async with running(scripted) as client:
            assert sorted(each.node_id for each in client.cluster.metadata.nodes()) == [0, 1, 2]
            assert client.cluster.metadata.controller_id == 0
            assert client.changes > 0
            await virtual_loop().settle()
            await asyncio.sleep(0.1)
            assert scripted.network.open_clients() == []


@pytest.mark.parametrize("reach", [Reach.REFUSED, Reach.BLACK_HOLE])
async def test_a_bootstrap_server_that_does_not_answer_costs_a_second_at_most(reach: Reach) -> None:
    with scripted_cluster(brokers=2) as scripted:
        for seed in range(6):  # which is asked first is chance
            scripted.brokers[0].path.reach = reach
            scripted.environment.rng.seed(seed)
            began_ms = scripted.now_ms()
            async with running(scripted):
                assert scripted.now_ms() - began_ms < 1_100


async def test_a_name_that_cannot_be_resolved_is_passed_over() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, servers=["nowhere.test:9092", *scripted.bootstrap]):
            pass


async def test_start_waits_for_brokers_that_are_still_starting() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].stop()
        virtual_loop().call_later(5, scripted.brokers[0].start)
        async with running(scripted) as client:
            assert 5_000 <= client.now_ms() - 1_000_000 < 6_300


async def test_start_passes_over_an_answer_without_brokers() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].is_fenced = True
        virtual_loop().call_later(2, setattr, scripted.brokers[0], "is_fenced", False)
        async with running(scripted) as client:
            assert client.cluster.metadata.node(0) is not None


async def test_start_ends_at_its_deadline_and_says_what_was_tried() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.brokers[0].stop()
        scripted.brokers[1].stop(vanish=True)
        client = made(scripted.bootstrap, scripted.environment)
        began_ms = client.now_ms()
        with pytest.raises(ConnectionFailed) as caught:
            await client.cluster.start(timeout_ms=3_000)
        assert client.now_ms() - began_ms == pytest.approx(3_000)
        text = str(caught.value)
        assert "broker-0.test:9092" in text
        assert "Connection refused" in text
        assert "broker-1.test:9092" in text
        assert "has not been reached for" in text
        await client.cluster.close()


async def test_start_says_that_brokers_name_no_brokers() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].is_fenced = True
        client = made(scripted.bootstrap, scripted.environment)
        with pytest.raises(ConnectionFailed, match="names no broker"):
            await client.cluster.start(timeout_ms=1_000)
        await client.cluster.close()


async def test_a_peer_that_speaks_no_kafka_is_named() -> None:
    with scripted_cluster() as scripted:
        scripted.on(MetadataRequest, garbage(b"\x00\x00\x00\x02ab"), times=None)
        client = made(scripted.bootstrap, scripted.environment)
        with pytest.raises(ConnectionFailed, match="no valid response"):
            await client.cluster.start(timeout_ms=1_000)
        await client.cluster.close()


async def test_brokers_whose_metadata_we_do_not_understand_are_named() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].versions[MetadataRequest] = (14, 15)
        client = made(scripted.bootstrap, scripted.environment)
        with pytest.raises(ConnectionFailed, match="has the versions 14 to 15 of Metadata"):
            await client.cluster.start(timeout_ms=2_000)
        assert client.cluster.fatal_error is None
        await client.cluster.close()


async def test_cancelling_start_leaves_nothing() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].stop(vanish=True)
        client = made(scripted.bootstrap, scripted.environment)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.cluster.start(), 1)
        await client.cluster.close()
        assert len(client.tasks) == 0


# ------------------------------------------------------------------------------------------------------- connections
async def test_a_connection_is_opened_on_demand_and_kept() -> None:
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted) as client:
            changes = client.changes
            assert client.cluster.connection(1) is None
            assert client.cluster.retry_at_ms(1) == float("inf")
            assert client.cluster.connection(1) is None
            await asyncio.sleep(0.1)
            connection = client.cluster.connection(1)
            assert connection is not None
            assert (connection.node_id, connection.host) == (1, "broker-1.test")
            assert client.cluster.connection(1) is connection
            assert client.changes == changes + 1
            assert len(scripted.network.open_clients()) == 1


@pytest.mark.parametrize("node_id", [7, -1, -2])
async def test_there_is_no_connection_to_a_broker_that_metadata_does_not_name(node_id: int) -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            assert client.cluster.connection(node_id) is None
            assert client.cluster.retry_at_ms(node_id) == float("inf")


async def test_a_throttled_connection_is_none_until_its_silence_ends_which_is_told() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            await opened(client, 0)
            scripted.on(InitProducerIdRequest, throttled(700))
            await client.cluster.ask(INIT)
            changes, now_ms = client.changes, client.now_ms()
            assert client.cluster.connection(0) is None
            until_ms = client.cluster.retry_at_ms(0)
            assert 690 < until_ms - now_ms <= 700
            assert client.cluster.connection(0) is None
            await asyncio.sleep(0.69)
            assert client.changes == changes
            await asyncio.sleep(0.02)
            assert client.changes == changes + 1
            assert client.cluster.connection(0) is not None


async def test_a_leader_named_beside_an_error_can_be_connected_to_at_once() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.create_topic("t", leaders=[0])
        scripted.brokers[1].is_fenced = True
        async with running(scripted, servers=scripted.bootstrap[:1]) as client:
            await client.cluster.wait_for_topic("t", client.in_ms(1_000))
            broker = scripted.brokers[1]
            endpoint = NodeEndpoint(node_id=1, host=broker.host, port=broker.port)
            assert client.cluster.connection(1) is None
            await asyncio.sleep(0.1)
            assert client.cluster.connection(1) is None, "nobody has named it yet"
            assert client.cluster.metadata.update_leader("t", 0, 1, 5, [endpoint])
            assert client.cluster.connection(1) is None
            await asyncio.sleep(0.1)
            assert client.cluster.connection(1) is not None


async def test_connection_to_waits_for_the_controller_and_ends_at_its_deadline() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.controller_id = 9
        async with running(scripted) as client:
            with pytest.raises(ConnectionFailed, match=r"the connection to the controller failed.*within 1000 ms"):
                await client.cluster.connection_to(CONTROLLER, client.in_ms(1_000))
            virtual_loop().call_later(1, setattr, scripted, "controller_id", 1)
            connection = await client.cluster.connection_to(CONTROLLER, client.in_ms(10_000))
            assert connection.node_id == 1


async def test_connection_to_tries_again_by_itself_when_the_backoff_is_over() -> None:
    with scripted_cluster(brokers=2) as scripted:
        scripted.controller_id = 1
        async with running(scripted) as client:
            scripted.on(MetadataRequest, late(60_000), times=None)
            scripted.brokers[1].path.reach = Reach.REFUSED
            virtual_loop().call_later(2, setattr, scripted.brokers[1].path, "reach", Reach.OPEN)
            began_ms = client.now_ms()
            await client.cluster.connection_to(CONTROLLER, client.in_ms(10_000))
            assert 2_000 < client.now_ms() - began_ms < 3_300


async def test_who_waits_for_the_controller_does_not_look_again_and_again_meanwhile() -> None:
    """While none is known, although a connection to the first bootstrap server, -1 as well, is throttled or open."""
    with scripted_cluster() as scripted:
        scripted.controller_id = 9
        scripted.on(MetadataRequest, late(20_000), times=None)
        client = made(scripted.bootstrap, scripted.environment)
        starting = begun(client.cluster.start(60_000))
        waiting = begun(client.cluster.connection_to(CONTROLLER, client.in_ms(15_000)))
        await asyncio.sleep(1)
        rounds = virtual_loop().iterations
        await asyncio.sleep(10)
        assert virtual_loop().iterations - rounds < 50
        await client.cluster.close()
        await asyncio.gather(starting, waiting, return_exceptions=True)


async def test_connection_to_gives_a_broker_up_when_an_attempt_has_failed() -> None:
    """Also after one that failed before, whose backoff is waited for."""
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted) as client:
            broker = scripted.brokers[1]
            broker.path.reach = Reach.REFUSED
            before = sum(each.address == broker.address for each in scripted.network.attempts)
            for attempts in (1, 2, 3):
                with pytest.raises(ConnectionFailed, match=r"broker 1 .*Connection refused"):
                    await client.cluster.connection_to(1, client.in_ms(60_000))
                tried = sum(each.address == broker.address for each in scripted.network.attempts)
                assert tried - before == attempts
            broker.path.reach = Reach.OPEN
            assert (await client.cluster.connection_to(1, client.in_ms(60_000))).node_id == 1


async def test_connection_to_gives_a_broker_up_when_a_new_answer_does_not_list_it() -> None:
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted) as client:
            began_ms = client.now_ms()
            with pytest.raises(ConnectionFailed, match="broker 2 failed: the cluster does not list it"):
                await client.cluster.connection_to(2, client.in_ms(60_000))
            scripted.add_broker()
            assert (await client.cluster.connection_to(2, client.in_ms(60_000))).node_id == 2
            scripted.brokers[1].stop(vanish=True, fenced=True)
            virtual_loop().call_later(1, client.cluster.metadata.request_update)
            with pytest.raises(ConnectionFailed, match="broker 1 failed: the cluster does not list it"):
                await client.cluster.connection_to(1, client.in_ms(60_000))
            assert client.now_ms() - began_ms < 3_000


# -------------------------------------------------------------------------------------------------- waits for topics
async def test_a_wait_for_a_topic_takes_one_question() -> None:
    with scripted_cluster(brokers=3) as scripted:
        scripted.create_topic("t", partitions=5)
        async with running(scripted) as client:
            questions = scripted.count(MetadataRequest)
            found = await asyncio.gather(*(client.cluster.wait_for_topic("t", client.in_ms(1_000)) for _ in range(100)))
            assert [each.partition_count for each in found] == [5] * 100
            assert scripted.count(MetadataRequest) == questions + 1
            await client.cluster.wait_for_topic("t", client.now_ms() - 1)
            assert scripted.count(MetadataRequest) == questions + 1, "what is known costs no time and no question"


async def test_a_topic_that_the_broker_creates_is_waited_for() -> None:
    with scripted_cluster() as scripted:
        scripted.auto_create_partitions = 2
        async with running(scripted) as client:
            found = await client.cluster.wait_for_topic("new", client.in_ms(10_000))
            assert found.partition_count == 2


async def test_no_topic_is_created_where_that_is_not_wished_for() -> None:
    with scripted_cluster() as scripted:
        scripted.auto_create_partitions = 2
        async with running(scripted, allow_auto_create_topics=False) as client:
            with pytest.raises(MetadataTimeout):
                await client.cluster.wait_for_topic("new", client.in_ms(2_000))
            assert scripted.topics == {}


async def test_a_wait_ends_at_its_deadline_and_says_what_the_broker_said() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            began_ms = client.now_ms()
            with pytest.raises(MetadataTimeout, match=r"nothing.*within 2500 ms.*UNKNOWN_TOPIC_OR_PARTITION"):
                await client.cluster.wait_for_topic("nothing", client.in_ms(2_500))
            assert client.now_ms() - began_ms == pytest.approx(2_500)
            assert scripted.count(MetadataRequest) < 10


async def test_a_wait_without_any_broker_says_why_there_is_none() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.brokers[0].stop()
            with pytest.raises(MetadataTimeout, match=r"no broker has answered.*Connection refused"):
                await client.cluster.wait_for_topic("t", client.in_ms(2_500))


async def test_a_wait_does_not_speak_of_troubles_that_are_over() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(MetadataRequest, disconnect_before())
            with pytest.raises(MetadataTimeout) as caught:
                await client.cluster.wait_for_topic("t", client.in_ms(5_000))
            assert "UNKNOWN_TOPIC_OR_PARTITION" in str(caught.value)
            assert "connection" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopic), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError)],
)
async def test_what_a_wait_cannot_cure_is_raised_at_once_to_all_who_wait(
    code: ErrorCode, expected: type[ClientError]
) -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("t")
        rule = scripted.on(MetadataRequest, error(code, "t"), times=None)
        async with running(scripted) as client:
            began_ms = client.now_ms()
            waits = [client.cluster.wait_for_topic("t", client.in_ms(60_000)) for _ in range(10)]
            results = await asyncio.gather(*waits, return_exceptions=True)
            assert [type(each) for each in results] == [expected] * 10
            assert len({id(each) for each in results}) == 10
            assert client.now_ms() - began_ms < 100
            questions = scripted.count(MetadataRequest)
            for _ in range(20):
                with pytest.raises(expected):
                    await client.cluster.wait_for_topic("t", client.in_ms(60_000))
            assert scripted.count(MetadataRequest) == questions, "it was told a moment ago"
            rule.cancel()
            await asyncio.sleep(1.1)
            assert (await client.cluster.wait_for_topic("t", client.in_ms(60_000))).partition_count == 1


async def test_a_wait_for_a_partition_ends_when_there_is_one() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("t", partitions=2)
        async with running(scripted) as client:
            await client.cluster.wait_for_topic("t", client.in_ms(1_000), partition=1)
            virtual_loop().call_later(3, scripted.add_partitions, "t", 3)
            found = await client.cluster.wait_for_topic("t", client.in_ms(10_000), partition=2)
            assert found.partition_count == 3
            with pytest.raises(MetadataTimeout, match=r"it has 3 partition"):
                await client.cluster.wait_for_topic("t", client.in_ms(2_000), partition=3)


async def test_a_wait_survives_a_question_that_takes_longer_than_the_topic_may_be_idle() -> None:
    with scripted_cluster() as scripted:
        scripted.create_topic("t")
        async with running(scripted, metadata_max_idle_ms=5_000) as client:
            scripted.on(MetadataRequest, error(ErrorCode.LEADER_NOT_AVAILABLE, "t"))
            scripted.on(MetadataRequest, late(8_000), nth=2)
            found = await client.cluster.wait_for_topic("t", client.in_ms(9_500))
            assert found.partition_count == 1
            assert scripted.count(MetadataRequest) == 3, "the last answer counts"


async def test_one_wait_that_is_cancelled_takes_no_other_along() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            first = begun(client.cluster.wait_for_topic("t", client.in_ms(60_000)))
            second = begun(client.cluster.wait_for_topic("t", client.in_ms(60_000)))
            await asyncio.sleep(1)
            first.cancel()
            await asyncio.sleep(1)
            scripted.create_topic("t")
            assert (await second).partition_count == 1
            assert first.cancelled()


# ---------------------------------------------------------------------------------------------------------------- end
async def test_close_ends_all_waits_and_leaves_nothing() -> None:
    with scripted_cluster(brokers=3) as scripted:
        async with running(scripted) as client:
            for node_id in range(3):
                await opened(client, node_id)
            scripted.on(InitProducerIdRequest, never(), times=None)
            waits = [
                begun(client.cluster.wait_for_topic("t", client.in_ms(60_000))),
                begun(client.cluster.ask(INIT, node=1)),
                begun(client.cluster.ask(INIT, node=7)),
            ]
            await asyncio.sleep(1)
            began_ms = client.now_ms()
            await client.cluster.close()
            assert client.now_ms() - began_ms < 10
            results = await asyncio.gather(*waits, return_exceptions=True)
            assert [type(each) for each in results] == [ClientClosed] * 3
            assert client.now_ms() - began_ms < 10
            await client.cluster.close()
            with pytest.raises(ClientClosed):
                await client.cluster.wait_for_topic("t", client.in_ms(1_000))
            with pytest.raises(ClientClosed):
                await client.cluster.start()
            assert client.cluster.connection(0) is None


async def test_close_that_is_cancelled_has_closed_all_the_same() -> None:
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted) as client:
            await opened(client, 0)
            assert client.cluster.connection(1) is None
            closing = begun(client.cluster.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await asyncio.sleep(0.1)
            assert scripted.network.open_clients() == []


async def test_close_without_start() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, starts=False) as client:
            assert client.cluster.connection(0) is None
