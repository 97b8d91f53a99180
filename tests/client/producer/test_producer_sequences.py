"""Idempotence against brokers that lose data, forget producers or run out of epochs: records that were not lost stay
single and in order, whatever has to be numbered anew, and a loss that the broker admits is told."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import Fault, disconnect_after, disconnect_before, edited, error, late, slow
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.story import TOPIC, Story, tell
from tests.client.virtual_time import run_virtual

ALL = (0, 1, 2)
Happening = Callable[[ScriptedCluster], None]


def told(happening: Happening, *, loses_data: bool = False, prepare: Happening | None = None, **settings: Any) -> Story:
    """Records, the happening when all of them are acknowledged, and as many records again."""

    async def main() -> Story:
        with scripted_cluster(brokers=3) as cluster:
            cluster.create_topic(TOPIC, 3)
            if prepare is not None:
                prepare(cluster)

            async def happen(story: Story) -> None:
                await story.all_ended()
                happening(cluster)
                await story.send(12, ALL)

            return await tell(cluster, records=12, meanwhile=happen, loses_data=loses_data, **settings)

    return run_virtual(main())


def sequences(story: Story, partition: int) -> list[tuple[int, int, int]]:
    """(producer id, epoch, base sequence) of each batch."""
    return [each[:3] for each in story.cluster.batches(TOPIC, partition)]


def lose_end(cluster: ScriptedCluster) -> None:
    """An unclean election: the last batches of partition 0 are gone, all of which were acknowledged."""
    cluster.log(TOPIC, 0).truncate(cluster.batches(TOPIC, 0)[2].base_offset)
    cluster.move_leader(TOPIC, 0, to=1)


def test_data_that_the_broker_lost_is_told_and_what_follows_is_not_harmed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        story = told(lose_end, loses_data=True)
    assert story.errors == []
    values = story.cluster.values(TOPIC, 0)
    records = [record.value for record in story.of(0)]
    kept = len(values) - 12
    assert 0 < kept < 12
    assert values == records[:kept] + records[12:]
    for partition in (1, 2):
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]
    assert "lost" in caplog.text
    assert sequences(story, 0)[-1][1] == 1, "a new epoch"
    assert next(each[2] for each in sequences(story, 0) if each[1] == 1) == 0, "numbered from 0"


def forget(cluster: ScriptedCluster) -> None:
    for partition in ALL:
        cluster.log(TOPIC, partition).forget_producers()


def test_a_broker_that_forgot_the_producer_goes_on_where_it_was() -> None:
    """As from Kafka 2.5 on, where a producer without state may begin anywhere (KIP-360)."""
    story = told(forget)
    assert story.errors == []
    assert {each[1] for partition in ALL for each in sequences(story, partition)} == {0}


def is_old(cluster: ScriptedCluster) -> None:
    for partition in ALL:
        cluster.log(TOPIC, partition).knows_kip_360 = False


def retain_nothing(cluster: ScriptedCluster) -> None:
    for partition in ALL:
        log = cluster.log(TOPIC, partition)
        log.delete_before(log.end_offset)


@pytest.mark.parametrize("version", [5, 11])
@pytest.mark.parametrize("happening", [retain_nothing, forget])
def test_an_old_broker_that_forgot_the_producer_id_gets_batches_of_a_bumped_epoch(
    happening: Happening, version: int
) -> None:
    """UNKNOWN_PRODUCER_ID, which came with version 5 together with the start of the log."""

    def prepare(cluster: ScriptedCluster) -> None:
        is_old(cluster)
        for broker in cluster.brokers.values():
            broker.versions[ProduceRequest] = (3, version)

    story = told(happening, prepare=prepare)
    assert story.errors == []
    for partition in ALL:
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]
        assert sequences(story, partition)[-1][1] > 0


@pytest.mark.parametrize("at_once", [True, False])
def test_data_lost_under_way_loses_no_later_record(at_once: bool) -> None:
    """The log is cut while batches are in flight, with and without answers that got lost at the same time."""

    async def main(nth: int) -> Story:
        with scripted_cluster(brokers=3) as cluster:
            cluster.create_topic(TOPIC, 3)
            for broker in cluster.brokers.values():
                broker.service_ms = 20
            if at_once:
                cluster.on(ProduceRequest, disconnect_after(), topic=TOPIC, partition=0, nth=nth)

            async def cut(story: Story) -> None:
                await asyncio.sleep(0.02 * nth)
                cluster.log(TOPIC, 0).truncate(cluster.log(TOPIC, 0).end_offset // 2)
                await story.all_ended()
                await story.send(5, ALL)

            return await tell(cluster, meanwhile=cut, loses_data=True)

    for nth in range(1, 8):
        story = run_virtual(main(nth))
        assert story.errors == []
        for partition in (1, 2):
            assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]
        values = story.cluster.values(TOPIC, 0)
        assert values == sorted(set(values), key=values.index) == sorted(value or b"" for value in values)
        assert values[-5:] == [record.value for record in story.of(0)][-5:]


@pytest.mark.parametrize("lost", [slow(300), late(300)], ids=["before the append", "after the append"])
@pytest.mark.parametrize("end", [disconnect_before(), disconnect_after()], ids=["not appended", "appended"])
def test_a_new_epoch_for_one_partition_waits_for_what_is_under_way_in_another(lost: Fault, end: Fault) -> None:
    """Partition 0 needs a new epoch, while an answer of partition 1 takes its time and is lost in the end."""

    async def main() -> Story:
        with scripted_cluster(brokers=3) as cluster:
            cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD, TOPIC, 0), topic=TOPIC, partition=0, nth=3)
            cluster.on(ProduceRequest, lost, end, topic=TOPIC, partition=1, nth=3)

            async def go_on(story: Story) -> None:
                for _ in range(30):
                    await story.send(1, ALL)
                    await asyncio.sleep(0.02)

            return await tell(cluster, meanwhile=go_on)

    story = run_virtual(main())
    assert {record.partition for record in story.records if record.error is not None} == {0}
    assert {each[1] for each in sequences(story, 0)} == {0, 1}
    assert sequences(story, 1)[-1][1] == 1


def test_when_the_epochs_run_out_another_producer_id_is_asked_for() -> None:
    def last_but_one(response: InitProducerIdResponse) -> None:
        response.producer_epoch = 32_766

    async def main() -> Story:
        with scripted_cluster(brokers=3) as cluster:
            cluster.create_topic(TOPIC, 3)
            cluster.on(InitProducerIdRequest, edited(last_but_one))

            async def happen(story: Story) -> None:
                for _ in range(3):
                    await story.all_ended()
                    cluster.log(TOPIC, 0).truncate(cluster.batches(TOPIC, 0)[-1].base_offset)
                    await story.send(3, ALL)

            return await tell(cluster, records=12, meanwhile=happen, loses_data=True)

    story = run_virtual(main())
    assert story.errors == []
    ids = {(each[0], each[1]) for partition in ALL for each in sequences(story, partition)}
    assert {(1_000, 32_766), (1_000, 32_767), (1_001, 0)} <= ids
    assert story.cluster.count(InitProducerIdRequest) == 2
    for partition in (1, 2):
        assert story.cluster.values(TOPIC, partition) == [record.value for record in story.of(partition)]
