"""`__consumer_offsets` and `__transaction_state`: created with the first question, once; taken over, or refused with a
sentence."""

import asyncio

import pytest

from odradek.broker.cluster.features import ENVELOPE, GROUPS, SUPPORTED
from odradek.broker.cluster.keys import BrokerState, NodeState, node_key
from odradek.broker.cluster.store import Txn
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling import coordinator_topics
from odradek.broker.handling.coordinator_topics import (
    OF_GROUPS,
    OF_TRANSACTIONS,
    CoordinatorTopic,
    EnsuredTopics,
    ensure_coordinator_topic,
    wanted_topic,
)
from odradek.broker.handling.internal_topics import InternalTopic
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.groups import Member, commit, fetch, finalize, generation, loaded
from tests.broker.support import DATA_DIR, HERE, make_topic, running_broker

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
SETTINGS = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}
OTHERS = [BrokerState(each, {"PLAINTEXT": (f"10.0.0.{each}", 9092)}) for each in (1, 2, 3)]


async def test_it_is_created_by_the_options_of_the_broker() -> None:
    async with running_broker({**SETTINGS, "offsets.topic.segment.bytes": "1048576"}) as context:
        topic = await ensure_coordinator_topic(context, OF_GROUPS)
        assert topic is context.metadata.image.topics[OFFSETS]
        assert [state.replicas for state in topic.partitions] == [(0,)] * 2
        assert topic.configs == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "1048576",
        }
        assert await ensure_coordinator_topic(context, OF_GROUPS) is topic


async def test_however_many_ask_at_once_there_is_one() -> None:
    async with running_broker(SETTINGS) as context:
        topics = await asyncio.wait_for(
            asyncio.gather(*(ensure_coordinator_topic(context, OF_GROUPS) for _ in range(5))), 5
        )
        assert len({topic.topic_id for topic in topics}) == 1


@pytest.mark.parametrize(
    ("broker_count", "factor", "replicas", "min_isr"),
    [(1, "3", 1, None), (2, "3", 2, None), (3, "3", 3, "2"), (4, "3", 3, "2"), (4, "1", 1, None), (4, "4", 4, "2")],
)
async def test_it_has_the_replicas_that_there_can_be_and_a_min_isr_with_three(
    broker_count: int, factor: str, replicas: int, min_isr: str | None
) -> None:
    settings = {**SETTINGS, "offsets.topic.replication.factor": factor}
    async with running_broker(settings, brokers=[HERE, *OTHERS[: broker_count - 1]]) as context:
        topic = await ensure_coordinator_topic(context, OF_GROUPS)
        assert {len(state.replicas) for state in topic.partitions} == {replicas}
        assert topic.configs.get("min.insync.replicas") == min_isr
        assert wanted_topic(context, OF_GROUPS).replication_factor == int(factor)


async def test_while_a_broker_without_coordinators_is_registered_nothing_is_created() -> None:
    async with running_broker(SETTINGS) as context:
        await finalize(context, {ENVELOPE: 1})
        with pytest.raises(KafkaError, match="a registered broker is of a release without coordinators") as raised:
            await ensure_coordinator_topic(context, OF_GROUPS)
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert context.metadata.image.topics == {}
        await make_topic(context, OFFSETS, 2, {"cleanup.policy": "compact"})
        with pytest.raises(KafkaError, match="without coordinators"):
            await ensure_coordinator_topic(context, OF_GROUPS)


@pytest.mark.parametrize("topic", [OF_GROUPS, OF_TRANSACTIONS], ids=["groups", "transactions"])
async def test_while_a_broker_has_gone_back_to_an_earlier_release_none_is_used(
    topic: CoordinatorTopic,
) -> None:
    """All had it, and rely on it since; the topic is there, too."""
    async with running_broker(SETTINGS) as context:
        await ensure_coordinator_topic(context, topic)
        for features, is_refused in (({**SUPPORTED, topic.feature: 0}, True), (SUPPORTED, False)):
            node = NodeState((bytes(16),), features={name: level for name, level in features.items() if level})
            revision = await context.metadata.store.commit(Txn(put={node_key(7): node.encode()}))
            await asyncio.wait_for(context.metadata.applied(revision), 5)
            if is_refused:
                with pytest.raises(KafkaError, match="broker 7 is of a release without coordinators") as raised:
                    await ensure_coordinator_topic(context, topic)
                assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                await ensure_coordinator_topic(context, topic)


@pytest.mark.parametrize("policy", ["delete", "compact,delete", None])
async def test_a_topic_of_that_name_that_is_not_compacted_is_refused_with_a_sentence(policy: str | None) -> None:
    async with running_broker(SETTINGS) as context:
        await make_topic(context, OFFSETS, 2, {} if policy is None else {"cleanup.policy": policy})
        with pytest.raises(
            KafkaError, match="is there, and not compacted: the offsets of all groups would be lost"
        ) as raised:
            await ensure_coordinator_topic(context, OF_GROUPS)
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "Set its cleanup.policy to compact" in raised.value.message


async def test_an_adopted_topic_is_used_with_the_partitions_that_it_has() -> None:
    async with running_broker(SETTINGS) as context:
        await make_topic(context, "orders")
        await make_topic(context, OFFSETS, 7, {"cleanup.policy": "compact"})
        assert len((await ensure_coordinator_topic(context, OF_GROUPS)).partitions) == 7
        await loaded(context)
        names = [f"group {number}" for number in range(20)]
        assert {context.groups.index_of(name) for name in names} == set(range(7))
        for name in names:
            await commit(context, {("orders", 0): 7}, group_id=name)
            assert (await fetch(context, [("orders", 0)], group_id=name))["orders", 0][0] == 7
        await generation(Member(context))


async def test_partitions_that_an_adoption_has_left_are_taken_over_with_their_offsets() -> None:
    disk = MemoryDisk()
    async with running_broker(SETTINGS, disk=disk) as context:
        await make_topic(context, "orders")
        before = await ensure_coordinator_topic(context, OF_GROUPS)
        await loaded(context)
        await commit(context, {("orders", 0): 7})
    async with running_broker({**SETTINGS, "offsets.topic.num.partitions": "5"}, disk=disk) as context:
        after = await ensure_coordinator_topic(context, OF_GROUPS)
        assert (after.topic_id, len(after.partitions)) == (before.topic_id, 2)
        await loaded(context)
        assert (await fetch(context, [("orders", 0)]))["orders", 0][0] == 7


@pytest.mark.parametrize(
    ("indexes", "brokers", "reason"),
    [
        ((1,), [HERE], "the partitions \\[1\\] are there, and not all of one topic"),
        ((0, 2), [HERE], "the partitions \\[0, 2\\] are there, and not all of one topic"),
        ((0, 1, 2), [HERE, OTHERS[0]], "there are other brokers, which would not have what is in them"),
    ],
    ids=["the first is missing", "one is missing", "other brokers"],
)
async def test_what_does_not_make_a_topic_is_not_taken_over_and_stays(
    indexes: tuple[int, ...], brokers: list[BrokerState], reason: str
) -> None:
    disk = MemoryDisk()
    async with running_broker(SETTINGS, disk=disk) as context:
        await make_topic(context, OFFSETS, 3, {"cleanup.policy": "compact"})
    for index in {0, 1, 2}.difference(indexes):
        disk.remove_tree(f"{DATA_DIR}/{OFFSETS}-{index}")
    async with running_broker(SETTINGS, disk=disk, brokers=brokers) as context:
        with pytest.raises(KafkaError, match=f"{reason}. Move them away") as raised:
            await ensure_coordinator_topic(context, OF_GROUPS)
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert OFFSETS not in context.metadata.image.topics
        assert set(context.partitions.left_over(OFFSETS)) == set(indexes)


async def test_where_it_cannot_be_created_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "all brokers are fenced")

    monkeypatch.setattr(coordinator_topics, "ensure_internal_topic", refuse)
    async with running_broker(SETTINGS) as context:
        with pytest.raises(KafkaError, match=f"{OFFSETS} cannot be created: .*all brokers are fenced") as raised:
            await ensure_coordinator_topic(context, OF_GROUPS)
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


# -- `__transaction_state`: the same rules, with options of its own ------------------------------------------------


async def test_that_of_transactions_is_created_by_its_own_options() -> None:
    settings = {"transaction.state.log.num.partitions": "3", "transaction.state.log.segment.bytes": "1048576"}
    async with running_broker(settings) as context:
        topic = await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        assert [*context.metadata.image.topics] == [TRANSACTIONS]
        assert [state.replicas for state in topic.partitions] == [(0,)] * 3
        assert topic.configs == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": "1048576",
        }


async def test_that_of_transactions_has_fifty_partitions_unless_told_otherwise() -> None:
    async with running_broker() as context:
        assert wanted_topic(context, OF_TRANSACTIONS).partition_count == 50
        assert wanted_topic(context, OF_TRANSACTIONS).configs["segment.bytes"] == str(100 * 1024**2)


@pytest.mark.parametrize(
    ("broker_count", "factor", "replicas", "min_isr"),
    [(1, "3", 1, None), (2, "3", 2, None), (3, "3", 3, "3"), (4, "2", 2, None), (4, "4", 4, "3")],
)
async def test_that_of_transactions_has_a_min_isr_of_its_own_with_three_replicas(
    broker_count: int, factor: str, replicas: int, min_isr: str | None
) -> None:
    settings = {
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": "3",
    }
    async with running_broker(settings, brokers=[HERE, *OTHERS[: broker_count - 1]]) as context:
        topic = await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        assert {len(state.replicas) for state in topic.partitions} == {replicas}
        assert topic.configs.get("min.insync.replicas") == min_isr


async def test_each_of_them_needs_a_feature_of_its_own() -> None:
    async with running_broker(SETTINGS) as context:
        await finalize(context, {ENVELOPE: 1, GROUPS: 1})
        await ensure_coordinator_topic(context, OF_GROUPS)
        with pytest.raises(KafkaError, match="without coordinators of transactional producers") as raised:
            await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert [*context.metadata.image.topics] == [OFFSETS]


async def test_a_topic_of_transactions_that_is_not_compacted_is_refused_with_a_sentence() -> None:
    async with running_broker() as context:
        await make_topic(context, TRANSACTIONS, 2)
        with pytest.raises(KafkaError, match="is there, and not compacted: the state of all transactions would be"):
            await ensure_coordinator_topic(context, OF_TRANSACTIONS)


async def test_each_is_tried_once_for_all_keys_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    async def refuse(_: object, topic: InternalTopic, __: float) -> None:
        tries.append(topic.name)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller")

    monkeypatch.setattr(coordinator_topics, "ensure_internal_topic", refuse)
    async with running_broker() as context:
        topics = EnsuredTopics(context)
        for topic in (OF_GROUPS, OF_TRANSACTIONS, OF_GROUPS, OF_TRANSACTIONS):
            with pytest.raises(KafkaError, match=f"{topic.name} cannot be created"):
                await topics.ensure(topic)
    assert tries == [OFFSETS, TRANSACTIONS]
