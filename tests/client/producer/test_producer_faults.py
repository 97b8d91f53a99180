"""The producer against brokers that answer late, wrongly, torn or not at all, that go away and come back, and that move
their partitions: in each case no hang, no lost acknowledgement, no duplicate, nothing left behind (see `story.py`)."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, DeliveryTimeout, MetadataTimeout
from odradek.protocol.codec.schema import Request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest
from odradek.testing.sim.world.memory_pipe import byte_by_byte, torn_randomly
from tests.client.broker_faults import (
    Ending,
    Fault,
    cut_body,
    disconnect_after,
    disconnect_before,
    edited,
    garbage,
    late,
    length,
    never,
    skipped,
    slow,
    throttled,
    torn,
    trailing,
    twice,
    wrong_correlation_id,
)
from tests.client.memory_network import Reach
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.story import TOPIC, Manner, Story, tell
from tests.client.virtual_time import VirtualTimeLoop, run_virtual

ALL = (0, 1, 2)
FAULTS: dict[str, Fault] = {
    "late": late(1_000),
    "later than the timeout": late(5_000),
    "slow": slow(1_000),
    "slower than the timeout": slow(5_000),
    "never": never(),
    "never done": never(applies=False),
    "skipped": skipped(),
    "twice": twice(),
    "wrong correlation id": wrong_correlation_id(),
    "torn and closed": torn(9),
    "torn and reset": torn(9, Ending.RESET),
    "torn and silent": torn(9, Ending.KEEP),
    "cut": cut_body(),
    "cut early": cut_body(20),
    "trailing bytes": trailing(),
    "negative length": length(-1),
    "huge length": length(0x7FFFFFFF),
    "another protocol": garbage(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "zeros": garbage(bytes(64)),
    "closed before": disconnect_before(),
    "closed after": disconnect_after(),
    "reset before": disconnect_before(Ending.RESET),
    "reset after": disconnect_after(Ending.RESET),
    "throttled": throttled(3_000),
}
HARMLESS = ("late", "slow", "trailing bytes", "throttled", "twice")
"""The answer comes, and in time."""
FIRST: dict[type[Request[Any]], int] = {
    ApiVersionsRequest: 2,  # one of the connections for producing
    MetadataRequest: 2,  # the one that asks for the topic
    InitProducerIdRequest: 1,
    ProduceRequest: 2,
}


def run(main: Callable[[ScriptedCluster], Any], *, brokers: int = 3, seed: int = 0, whole_ms: bool = False) -> Any:
    """Runs a story on a cluster of its own, on exact timers or on uvloop's."""

    async def with_cluster() -> Any:
        with scripted_cluster(brokers=brokers, seed=seed, sends_late=whole_ms) as cluster:
            return await main(cluster)

    return run_virtual(with_cluster(), VirtualTimeLoop(whole_ms=whole_ms))


def all_arrived(story: Story, partitions: Sequence[int] = ALL) -> None:
    for partition in partitions:
        assert [record.error for record in story.of(partition) if record.error is not None] == []
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]


def all_arrived_or_failed(story: Story, fault: str, kind: type[ClientError], count: int) -> None:
    """Under a fault that lasts: harmless ones cost nothing, with the others all records end by this error."""
    if fault in HARMLESS:
        all_arrived(story)
    else:
        assert len(story.errors) == count
        assert all(isinstance(error, kind) for error in story.errors)


# -------------------------------------------------------------------------------------------------- hostile answers
@pytest.mark.parametrize("whole_ms", [False, True], ids=["exact timers", "uvloop's timers"])
@pytest.mark.parametrize("request_type", FIRST, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_few_bad_answers_cost_no_record(fault: Fault, request_type: type[Request[Any]], whole_ms: bool) -> None:
    """Once to records that are sent one by one, and three times to those that are sent in another way."""

    async def main(times: int, manner: Manner, cluster: ScriptedCluster) -> Story:
        cluster.on(request_type, fault, nth=FIRST[request_type], times=times)
        return await tell(cluster, senders=[manner], is_audited=times == 3, max_block_ms=15_000)

    another = Manner("send_batch" if whole_ms else "send_nowait", has_headers=True)
    for times, manner in ((1, Manner()), (3, another)):
        all_arrived(run(partial(main, times, manner), whole_ms=whole_ms))


@pytest.mark.parametrize("name", FAULTS)
def test_bad_answers_to_every_produce_end_all_records_by_the_delivery_timeout(name: str) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(ProduceRequest, FAULTS[name], times=None)
        return await tell(cluster, records=12)

    all_arrived_or_failed(run(main), name, DeliveryTimeout, 36)


@pytest.mark.parametrize("name", FAULTS)
def test_bad_answers_to_every_question_for_a_producer_id_do_the_same(name: str) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(InitProducerIdRequest, FAULTS[name], times=None)
        return await tell(cluster, records=12)

    story = run(main)
    all_arrived_or_failed(story, name, DeliveryTimeout, 36)
    if name not in HARMLESS:
        assert story.cluster.count(ProduceRequest) == 0


@pytest.mark.parametrize("name", FAULTS)
def test_bad_answers_to_every_metadata_request_end_each_send_by_max_block(name: str) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(MetadataRequest, FAULTS[name], nth=2, times=None)
        return await tell(cluster, records=2, max_block_ms=4_000)

    story = run(main)
    all_arrived_or_failed(story, name, MetadataTimeout, 6)
    if name not in HARMLESS:
        assert 24_000 <= story.took_ms < 24_500


@pytest.mark.parametrize("request_type", FIRST, ids=lambda cls: cls.__name__)
def test_an_answer_torn_at_any_byte_costs_no_record(request_type: type[Request[Any]]) -> None:
    size = 0

    async def main(at: int, end: Ending, cluster: ScriptedCluster) -> Story:
        nonlocal size
        rule = cluster.on(request_type, torn(at, end), nth=FIRST[request_type])
        story = await tell(cluster, records=2)
        size = rule.hits[0].answer_size
        return story

    at = 0
    while at <= size:
        end = Ending.RESET if at % 2 else Ending.CLOSE
        all_arrived(run(partial(main, at, end)))
        at += 1
    assert size > 20


@pytest.mark.parametrize("sends_late", [False, True])
def test_bytes_that_trickle_in_one_by_one_are_all_understood(sends_late: bool) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        for broker in cluster.brokers.values():
            broker.path.to_client.tear = byte_by_byte
            broker.path.to_server.tear = torn_randomly(cluster.network.rng.randint)
        return await tell(cluster)

    for seed in range(5):
        all_arrived(run(main, seed=seed, whole_ms=sends_late))


@pytest.mark.parametrize("after", [disconnect_after(), late(5_000), torn(30)])
def test_without_idempotence_a_lost_answer_may_double_records_and_loses_none(after: Fault) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(ProduceRequest, after, nth=2)
        return await tell(cluster, enable_idempotence=False)

    story = run(main)
    assert story.errors == []
    sent = [record.value for record in story.records]
    logged = story.cluster.values(TOPIC)
    assert set(logged) == set(sent)
    assert len(logged) > len(sent), "this is what idempotence is for"


@pytest.mark.parametrize("acks", [0, 1])
def test_a_lost_connection_is_survived_with_fewer_acks_too(acks: int) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(ProduceRequest, disconnect_before(), nth=3)
        return await tell(cluster, acks=acks)

    story = run(main)
    assert story.errors == []
    if acks == 1:
        assert set(story.cluster.values(TOPIC)) == {record.value for record in story.records}


# --------------------------------------------------------------------------------------------------- leaders that move
@pytest.mark.parametrize("hints", [True, False])
@pytest.mark.parametrize("stale", [(), (0,), (0, 2)])
def test_records_follow_a_leader_that_moved(hints: bool, stale: Sequence[int]) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.gives_hints = hints

        async def move(story: Story) -> None:
            for node in stale:
                cluster.brokers[node].freeze_metadata()
            cluster.move_leader(TOPIC, 0, to=1)
            moved_ms = cluster.now_ms()
            await story.send(10, ALL)
            await story.all_ended()
            assert cluster.now_ms() - moved_ms < (50 if hints else 3_000)

        return await tell(cluster, meanwhile=move)

    story = run(main)
    all_arrived(story)
    assert story.cluster.batches(TOPIC, 0)[-1].leader_epoch == 1


def test_records_wait_for_a_partition_without_a_leader() -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def lose_and_find(story: Story) -> None:
            cluster.move_leader(TOPIC, 1, to=-1)
            await story.send(10, ALL)
            await asyncio.sleep(5)
            assert cluster.values(TOPIC, 1) != [record.value for record in story.of(1)]
            cluster.move_leader(TOPIC, 1, to=0)

        return await tell(cluster, meanwhile=lose_and_find)

    all_arrived(run(main))


def test_records_follow_a_leader_that_moves_all_the_time() -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def move(story: Story) -> None:
            for number in range(40):
                await story.send(2, ALL)
                cluster.move_leader(TOPIC, number % 3, to=(number + 1 + number // 3) % 3)
                await asyncio.sleep(0.05)

        return await tell(cluster, meanwhile=move)

    for whole_ms in (False, True):
        all_arrived(run(main, whole_ms=whole_ms))


def test_a_topic_that_is_deleted_and_made_again_takes_records_again() -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def replace(story: Story) -> None:
            await story.all_ended()
            cluster.delete_topic(TOPIC)
            await story.send(1, ALL)
            await asyncio.sleep(3)
            cluster.create_topic(TOPIC, 3)

        return await tell(cluster, records=2, meanwhile=replace, loses_data=True)

    story = run(main)
    assert story.errors == []
    assert story.cluster.values(TOPIC) == [record.value for record in story.records[-3:]]


# ------------------------------------------------------------------------------------------- brokers that go and return
@pytest.mark.parametrize("vanish", [False, True])
@pytest.mark.parametrize("away_s", [0.0, 0.3, 4.0, 15.0])
def test_a_broker_that_returns_in_time_gets_its_records(vanish: bool, away_s: float) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def restart(story: Story) -> None:
            cluster.brokers[1].stop(vanish=vanish)
            await story.send(5, ALL)
            await asyncio.sleep(away_s)
            cluster.brokers[1].start()

        return await tell(cluster, meanwhile=restart)

    for whole_ms in (False, True):
        all_arrived(run(main, whole_ms=whole_ms))


@pytest.mark.parametrize("vanish", [False, True])
def test_records_of_a_broker_that_does_not_return_end_in_time_and_others_arrive(vanish: bool) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def kill(story: Story) -> None:
            cluster.brokers[1].stop(vanish=vanish)
            await story.send(5, ALL)

        return await tell(cluster, meanwhile=kill)

    story = run(main)
    all_arrived(story, (0, 2))
    assert 5 <= len(story.errors) <= 29
    assert all(isinstance(error, DeliveryTimeout) for error in story.errors)


@pytest.mark.parametrize("vanish", [False, True])
def test_records_go_to_the_broker_that_was_elected_in_its_place(vanish: bool) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def elect(story: Story) -> None:
            cluster.brokers[1].stop(vanish=vanish, fenced=True)
            await story.send(5, ALL)
            await asyncio.sleep(1)
            cluster.move_leader(TOPIC, 1, to=2)

        return await tell(cluster, meanwhile=elect)

    story = run(main)
    all_arrived(story)
    # A machine that says nothing is found out by socket_connection_setup_timeout_ms, and then metadata is asked for.
    assert story.took_ms < (11_000 if vanish else 3_000)


def test_brokers_that_restart_one_after_the_other_cost_no_record() -> None:
    """A rolling upgrade: each comes back with other versions."""

    async def main(cluster: ScriptedCluster) -> Story:
        for broker in cluster.brokers.values():
            broker.versions[ProduceRequest] = (3, 7)

        async def roll(story: Story) -> None:
            for broker in cluster.brokers.values():
                broker.stop()
                await story.send(3, ALL)
                await asyncio.sleep(1)
                broker.start({ProduceRequest: (3, 11), MetadataRequest: (0, 9)})
                await story.send(3, ALL)
                await asyncio.sleep(1)

        return await tell(cluster, meanwhile=roll)

    story = run(main)
    all_arrived(story)
    assert {each.version for each in story.cluster.exchanges_of(ProduceRequest)} == {7, 11}


def test_a_cluster_that_moves_to_other_machines_is_found_by_its_bootstrap_servers() -> None:
    """All known addresses are gone; the names lead to new ones (KIP-899)."""

    async def main(cluster: ScriptedCluster) -> Story:
        async def move(story: Story) -> None:
            await story.all_ended()
            for broker in cluster.brokers.values():
                broker.stop()
            for number, broker in enumerate(cluster.brokers.values()):
                broker.address = f"10.9.9.{number}"
                cluster.network.names[broker.host] = [broker.address]
                broker.start()
            await story.send(5, ALL)

        return await tell(cluster, meanwhile=move)

    all_arrived(run(main))


async def all_gone(reach: Reach, cluster: ScriptedCluster) -> Story:
    async def kill(story: Story) -> None:
        for broker in cluster.brokers.values():
            broker.stop(vanish=reach is Reach.BLACK_HOLE)
        await story.send(5, ALL)

    return await tell(cluster, meanwhile=kill, delivery_timeout_ms=300_000, close_timeout_ms=400_000)


def test_with_all_brokers_gone_records_end_in_time_and_the_loop_rests() -> None:
    """The bound on the rounds of the loop is that of every story: here almost nothing but time passes."""
    for whole_ms in (False, True):
        for reach in (Reach.REFUSED, Reach.BLACK_HOLE):
            story = run(partial(all_gone, reach), whole_ms=whole_ms)
            assert len(story.errors) >= 15
            assert all(isinstance(error, DeliveryTimeout) for error in story.errors)
            assert 300_000 <= story.took_ms < 301_000
            assert len(story.cluster.network.attempts) < 10 * 300, "three brokers, each by two names, at most"


def test_a_connection_that_takes_no_bytes_is_given_up_with_all_data_written_to_it() -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        async def stall(story: Story) -> None:
            path = cluster.brokers[1].path
            path.to_server.is_stalled = True
            await story.send(200, [1])
            await asyncio.sleep(4)
            path.to_server.is_stalled = False
            for link in cluster.network.links_to(cluster.brokers[1].address, 9092):
                link.to_server.flow()

        for broker in cluster.brokers.values():
            broker.path.to_server.window_bytes = 500
        return await tell(cluster, meanwhile=stall)

    all_arrived(run(main))


# ------------------------------------------------------------------------------------------------ quotas and clocks
def test_a_throttled_connection_is_left_alone_for_as_long_as_it_was_told() -> None:
    """KIP-219, for every request whose answer says so; what was on its way comes all the same."""

    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(ProduceRequest, throttled(3_000), node=1, nth=2)
        return await tell(cluster, max_in_flight_requests_per_connection=1)

    story = run(main)
    all_arrived(story)
    [told] = story.cluster.rules[0].hits
    assert told.answered_at_ms is not None
    later = [each for each in story.cluster.exchanges if each.node_id == 1 and each.at_ms > told.answered_at_ms]
    assert later
    assert min(each.at_ms for each in later) >= told.answered_at_ms + 3_000


@pytest.mark.parametrize("jump_ms", [-86_400_000, 86_400_000])
def test_jumps_of_the_wall_clock_delay_nothing(jump_ms: int) -> None:
    async def main(cluster: ScriptedCluster) -> Story:
        cluster.on(ProduceRequest, disconnect_after(), nth=4, times=3)

        async def jump(story: Story) -> None:
            for _ in range(5):
                cluster.environment.jump_ms(jump_ms)
                await story.send(3, ALL)
                await asyncio.sleep(0.05)

        return await tell(cluster, meanwhile=jump)

    story = run(main)
    all_arrived(story)
    assert story.took_ms < 3_000


# ----------------------------------------------------------------------------------------- metadata that says nothing
Edit = Callable[[MetadataResponse], None]


def nothing(response: MetadataResponse) -> None:
    response.brokers = []
    response.topics = []


def no_brokers(response: MetadataResponse) -> None:
    response.brokers = []


def no_topics(response: MetadataResponse) -> None:
    response.topics = []


def no_partitions(response: MetadataResponse) -> None:
    for topic in response.topics:
        topic.partitions = []


@pytest.mark.parametrize("edit", [nothing, no_brokers, no_topics, no_partitions])
@pytest.mark.parametrize("times", [1, 3, None])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_empty_metadata_is_asked_for_again(edit: Edit, times: int | None, nth: int) -> None:
    """The third answer comes while records wait for their leader to be found."""

    async def main(cluster: ScriptedCluster) -> Story:
        rule = cluster.on(MetadataRequest, edited(edit), nth=nth, times=times)

        async def move(story: Story) -> None:
            cluster.gives_hints = False
            cluster.move_leader(TOPIC, 0, to=1)
            await story.send(2, ALL)
            if times is None:
                await asyncio.sleep(6)
                rule.cancel()
                await asyncio.sleep(2)
                await story.send(2, ALL)

        return await tell(cluster, records=2, meanwhile=move, max_block_ms=3_000)

    if nth == 1 and times is None and edit in (nothing, no_brokers):
        with pytest.raises(ClientError, match=r"names no broker|no bootstrap server has answered"):
            run(main)
        return
    story = run(main)
    lost = [record for record in story.records if record.error is not None]
    assert all(isinstance(record.error, MetadataTimeout) for record in lost)
    assert not lost or times is None
    for record in story.records[-3:]:
        assert record.error is None
