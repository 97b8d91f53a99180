"""The coordinator of groups on a broker: its shards follow leadership, options, and the cluster's topics."""

from odradek.broker.cluster.keys import encode_configs, group_config_key
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.broker.group.group_host import TimerKey, TimerKind
from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, ensure_coordinator_topic
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.batches.compression import Codec
from tests.broker.groups import (
    GROUP,
    NOWHERE,
    Member,
    classic_group,
    commit,
    eventually,
    fetch,
    generation,
    loaded,
    machine,
    make_consumer_group,
    make_group,
    running_groups,
)
from tests.broker.support import make_topic, running_broker

OFFSETS = "__consumer_offsets"
AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}


async def delete(context: Context, name: str) -> None:
    topic = context.metadata.image.topics[name]
    await context.metadata.applied(await delete_topic(context.metadata.store, topic))


async def beat(context: Context, member: ConsumerHeartbeatAnswer) -> ConsumerHeartbeatAnswer:
    request = ConsumerHeartbeat(member.member_id, member.member_epoch)
    return await context.groups.of(GROUP).ask(
        lambda machine, waiting, now: machine.consumer_heartbeat(GROUP, request, waiting, now)
    )


async def test_there_is_a_shard_for_each_partition_that_the_broker_leads() -> None:
    async with running_broker({"offsets.topic.num.partitions": "3"}) as context:
        assert list(context.groups.all) == []
        await make_topic(context, "orders", 3)
        await ensure_coordinator_topic(context, OF_GROUPS)
        assert [shard.name for shard in context.groups.all] == [f"{OFFSETS}-{index}" for index in range(3)]
        await loaded(context)
        shards = list(context.groups.all)
    assert {shard.state for shard in shards} == {ShardState.ENDED}


async def test_another_leader_epoch_goes_on_with_what_is_in_the_log() -> None:
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7})
        member = Member(context, "read")
        await generation(member)
        before = classic_group(context, "read").generation
        for index in range(2):
            partition = context.partitions.leader(OFFSETS, index)
            context.groups.leads_no_longer(partition, 0)
            context.groups.leads(partition, 0)
        await loaded(context)
        assert (await fetch(context, [("orders", 0)]))["orders", 0][0] == 7
        assert classic_group(context, "read").generation == before
        assert (await member.sync()).assignment == member.member_id.encode(), "nobody has to join again"


async def test_records_are_compressed_as_the_option_says() -> None:
    async with running_groups({"offsets.topic.compression.codec": "1"}) as context:
        await commit(context, {("orders", 0): 7})
        log = context.partitions.leader(OFFSETS, context.groups.index_of(GROUP) or 0).log
        [(_, header)] = iterate_batches(log.fetch(0, 1 << 20, log.log_end_offset, True).records)
        assert header.codec is Codec.GZIP


async def test_a_deleted_topic_is_told_to_all_shards_by_its_id() -> None:
    async with running_groups(topics=("orders", "bills")) as context:
        groups = [f"group {number}" for number in range(8)]
        for group_id in groups:
            await commit(context, {("orders", 0): 7, ("bills", 0): 8}, group_id=group_id)
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        await make_topic(context, "orders", 3)
        await commit(context, {("orders", 1): 9}, group_id=groups[0])

        async def positions() -> set[tuple[str, int]]:
            found: set[tuple[str, int]] = set()
            for group_id in groups:
                found |= machine(context, group_id).offsets.offsets.of(group_id).keys()
            return found

        await eventually(positions, {("bills", 0), ("orders", 1)})


async def test_offsets_of_a_topic_are_not_those_of_another_of_its_name() -> None:
    async with running_groups() as context:
        await make_group(context, GROUP, ("orders", 0), 7)
        await delete(context, "orders")
        await make_topic(context, "orders", 3)
        assert await fetch(context, [("orders", 0)]) == {("orders", 0): NOWHERE}


async def test_a_topic_that_comes_or_goes_is_in_the_next_assignment() -> None:
    async with running_groups(AT_ONCE, topics=()) as context:
        joined = await make_consumer_group(context, GROUP)
        assert joined.assigned == {}
        topic_id = await make_topic(context, "orders", 2)
        given = await beat(context, joined)
        assert given.assigned == {topic_id: (0, 1)}
        await make_topic(context, "bills", 2)
        assert (await beat(context, given)).member_epoch == given.member_epoch
        await delete(context, "orders")
        assert (await beat(context, given)).assigned == {}


async def test_a_group_goes_by_what_it_sets_for_itself_from_its_next_heartbeat_on() -> None:
    async with running_groups(AT_ONCE) as context:
        joined = await make_consumer_group(context, GROUP)
        configs = {"consumer.heartbeat.interval.ms": "6000", "consumer.session.timeout.ms": "50000"}
        put = {group_config_key(GROUP): encode_configs(configs)}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        assert (await beat(context, joined)).heartbeat_interval_ms == 6_000
        host = machine(context)._host  # pyright: ignore[reportPrivateUsage] - nothing else tells of deadlines
        left_ms = host.timers.deadline_ms(TimerKey(GROUP, TimerKind.SESSION, joined.member_id))
        assert left_ms is not None
        assert 49_000 < left_ms - context.environment.monotonic_ms() <= 50_000


async def test_the_options_of_the_broker_hold_for_its_shards_as_they_are_now() -> None:
    async with running_groups() as context:
        joined = await make_consumer_group(context, GROUP)
        assert joined.heartbeat_interval_ms == context.config.group_consumer_heartbeat_interval_ms == 5_000
