"""CreateTopics: what is created, what is refused and with which words, and that a creation is whole or not at all.

Errors and defaults were compared with those of Apache Kafka 4.3.1.
"""

import asyncio
from collections.abc import Sequence

import pytest

from odradek.broker.cluster.keys import BrokerState
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Conflict, StoreClosed, Txn
from odradek.broker.handling.context import Context
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from tests.broker.support import HERE, ask, make_topic, running_broker

SECOND = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093)})
DYNAMIC_TOPIC, DEFAULT = 1, 5


def topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in assignments
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs],
    )


async def created(
    context: Context, *topics: CreatableTopic, version: int = 7, validate_only: bool = False, timeout_ms: int = 10_000
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
    answer = await ask(context, request, version)
    assert [each.name for each in answer.topics] == [each.name for each in topics]
    return answer.topics


async def refusal(wanted: CreatableTopic, *, brokers: Sequence[BrokerState] = (HERE,)) -> tuple[ErrorCode, str]:
    """Code and text of a topic that is not created; nothing of it is left behind."""
    async with running_broker(brokers=brokers) as context:
        (result,) = await created(context, wanted)
        assert context.metadata.image.topics == {}
        assert (await context.metadata.store.read("/topics/")).entries == {}
        assert (await context.metadata.store.read("/partitions/")).entries == {}
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (ZERO_UUID, -1, -1)
    assert result.configs == []
    return ErrorCode(result.error_code), result.error_message or ""


# -- what is created ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_topic_can_be_used_when_the_answer_is_out(version: int) -> None:
    async with running_broker() as context:
        (result,) = await created(context, topic("orders", 3), version=version)
        assert [context.partitions.leader("orders", index).leader_epoch for index in range(3)] == [0, 0, 0]
        topic_id = context.metadata.image.topics["orders"].topic_id
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
    assert result.topic_id == (topic_id if version >= 7 else ZERO_UUID)
    assert (result.num_partitions, result.replication_factor) == ((3, 1) if version >= 5 else (-1, -1))
    assert (result.configs is None) == (version < 5)


@pytest.mark.parametrize("version", [2, 4, 7])
async def test_minus_one_stands_for_the_defaults(version: int) -> None:
    """The broker takes it in every version, as Kafka's does; clients know it since version 4 (KIP-464)."""
    settings = {"num.partitions": "4", "default.replication.factor": "2"}
    async with running_broker(settings, brokers=(HERE, SECOND)) as context:
        await created(context, topic("orders", -1, -1), version=version)
        image = context.metadata.image.topics["orders"]
    assert (len(image.partitions), image.replication_factor) == (4, 2)


async def test_replicas_are_spread_over_the_brokers() -> None:
    async with running_broker(brokers=(HERE, SECOND)) as context:
        await created(context, topic("orders", 4, 2))
        replicas = [partition.replicas for partition in context.metadata.image.topics["orders"].partitions]
    assert sorted(replicas) == [(0, 1), (0, 1), (1, 0), (1, 0)]


async def test_replicas_placed_by_hand() -> None:
    assignments = [(1, [1, 0]), (0, [0, 1])]
    async with running_broker(brokers=(HERE, SECOND)) as context:
        (result,) = await created(context, topic("orders", -1, -1, assignments=assignments))
        partitions = context.metadata.image.topics["orders"].partitions
    assert (result.error_code, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 2, 2)
    assert [partition.replicas for partition in partitions] == [(0, 1), (1, 0)]
    assert [partition.leader for partition in partitions] == [0, 1]


async def test_configuration_counts_and_is_answered_with_its_source() -> None:
    configs = [("retention.ms", "1"), ("max.message.bytes", "5000"), ("retention.ms", "60000")]
    async with running_broker() as context:
        (result,) = await created(context, topic("orders", configs=configs))
        assert context.partitions.leader("orders", 0).config.max_message_bytes == 5000
        assert context.metadata.image.topic_configs("orders") == {"retention.ms": "60000", "max.message.bytes": "5000"}
    assert result.configs is not None
    answered = {config.name: (config.value, config.config_source) for config in result.configs}
    assert answered["retention.ms"] == ("60000", DYNAMIC_TOPIC)
    assert answered["max.message.bytes"] == ("5000", DYNAMIC_TOPIC)
    assert answered["index.interval.bytes"] == ("4096", DEFAULT)
    assert not any(config.read_only or config.is_sensitive for config in result.configs)
    assert list(answered) == sorted(answered)


async def test_ids_are_never_used_again() -> None:
    async with running_broker() as context:
        ids = [(await created(context, topic(name)))[0].topic_id for name in ("a", "b", "c")]
    assert len(set(ids)) == 3
    assert ZERO_UUID not in ids


async def test_validate_only_answers_as_if_and_creates_nothing() -> None:
    async with running_broker() as context:
        good, bad = await created(context, topic("orders", 3), topic("a b"), validate_only=True)
        assert context.metadata.image.topics == {}
    assert (good.error_code, good.num_partitions, good.replication_factor) == (ErrorCode.NONE, 3, 1)
    assert good.configs
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_topic_larger_than_a_commit_is_created_whole() -> None:
    async with running_broker() as context:
        (result,) = await created(context, topic("orders", 250))
        assert context.partitions.leader("orders", 249)
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 250)


# -- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a/b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("bücher", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("orders\n", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
async def test_names_that_no_topic_can_have(name: str, reason: str) -> None:
    code, text = await refusal(topic(name))
    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert text.startswith("Topic name is invalid: ")
    assert reason in text


async def test_the_topic_of_kafkas_controllers_is_prohibited() -> None:
    code, text = await refusal(topic("__cluster_metadata"))
    assert (code, text) == (
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


async def test_names_that_metrics_could_not_tell_apart() -> None:
    async with running_broker() as context:
        first, second = await created(context, topic("a.b"), topic("a_b"))
    assert first.error_code == ErrorCode.NONE
    assert (second.error_code, second.error_message) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topic: a.b",
    )


@pytest.mark.parametrize("validate_only", [False, True])
async def test_a_name_that_is_taken(validate_only: bool) -> None:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (result,) = await created(context, topic("orders"), validate_only=validate_only)
    assert (result.error_code, result.error_message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 'orders' already exists.",
    )


async def test_a_name_that_is_given_twice_is_not_created_and_the_others_are() -> None:
    async with running_broker() as context:
        results = await created(context, topic("d"), topic("e"), topic("d", 2))
        assert list(context.metadata.image.topics) == ["e"]
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
    assert results[0].error_message == "Duplicate topic name."


@pytest.mark.parametrize("count", [0, -2, -(2**31)])
async def test_a_partition_count_that_is_not_positive(count: int) -> None:
    code, text = await refusal(topic("orders", count))
    assert (code, text) == (
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    )


async def test_more_partitions_than_a_request_may_create() -> None:
    code, text = await refusal(topic("orders", 1_000_000))
    assert code == ErrorCode.POLICY_VIOLATION
    assert "Excessively large number of partitions per request" in text


@pytest.mark.parametrize("factor", [0, -2])
async def test_a_replication_factor_that_is_not_positive(factor: int) -> None:
    code, text = await refusal(topic("orders", 1, factor))
    assert (code, text) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    )


async def test_a_replication_factor_above_the_brokers_says_how_many_there_are() -> None:
    code, text = await refusal(topic("orders", 1, 3), brokers=(HERE, SECOND))
    assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert "Unable to replicate the partition 3 time(s)" in text
    assert "only 2 broker(s) are registered" in text


IMPOSSIBLE: list[tuple[list[tuple[int, list[int]]], str]] = [
    ([(0, [0]), (2, [0])], "partitions should be a consecutive 0-based integer sequence"),
    ([(1, [0])], "partitions should be a consecutive 0-based integer sequence"),
    ([(0, [0]), (0, [0])], "Found multiple manual partition assignments"),
    ([(0, [])], "includes an empty replica list"),
    ([(0, [0, 0])], "includes the broker 0 more than once"),
    ([(0, [7])], "includes broker 7, but no such broker is registered"),
    ([(0, [0]), (1, [0, 1])], "includes a partition with 2 replica(s), but this is not consistent"),
]


@pytest.mark.parametrize(("assignments", "reason"), IMPOSSIBLE)
async def test_assignments_that_are_not_possible(assignments: list[tuple[int, list[int]]], reason: str) -> None:
    code, text = await refusal(topic("orders", -1, -1, assignments=assignments), brokers=(HERE, SECOND))
    assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reason in text


@pytest.mark.parametrize(("partitions", "factor"), [(1, -1), (-1, 1)])
async def test_assignments_go_with_minus_one_for_count_and_factor(partitions: int, factor: int) -> None:
    """Which is looked at before the assignments themselves, as in Kafka."""
    for assignments in ([(0, [0])], [(0, [0]), (0, [0])], [(7, [9])]):
        code, text = await refusal(topic("orders", partitions, factor, assignments=assignments))
        assert code == ErrorCode.INVALID_REQUEST
        assert "set to -1" in text


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("nosuch", "1", "Unknown topic config name: nosuch"),
        ("retention.ms", "soon", "Invalid value soon for configuration retention.ms"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms"),
        ("segment.bytes", "99999999999", "Invalid value 99999999999 for configuration segment.bytes"),
        ("cleanup.policy", "bogus", "Invalid value bogus for configuration cleanup.policy"),
        ("message.timestamp.type", "Sometime", "it must be one of CreateTime, LogAppendTime"),
        ("compression.type", "brotli", "it must be one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("remote.storage.enable", "true", "tiered storage is not built"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
async def test_a_configuration_that_is_refused_says_what_is_allowed(name: str, value: str | None, reason: str) -> None:
    code, text = await refusal(topic("orders", configs=[(name, value)]))
    assert code == ErrorCode.INVALID_CONFIG
    assert reason in text


async def test_each_topic_has_its_own_error() -> None:
    async with running_broker() as context:
        results = await created(context, topic("a b"), topic("good"), topic("none", 0), topic("also.good"))
        assert sorted(context.metadata.image.topics) == ["also.good", "good"]
    assert [result.error_code for result in results] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.NONE,
    ]


# -- time, races and failures ---------------------------------------------------------------------------------------


class SlowStore(MemoryStore):
    """Commits a topic only when `gate` is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()

    async def commit(self, txn: Txn) -> int:
        if any(key.startswith("/topics/") for key in txn.put):
            self.asked.set()
            await self.gate.wait()
        return await super().commit(txn)


async def test_when_the_time_is_up_the_client_is_told_and_the_creation_goes_on() -> None:
    store = SlowStore()
    async with running_broker(store=store) as context:
        (result,) = await created(context, topic("orders"), timeout_ms=20)
        assert (result.error_code, result.topic_id) == (ErrorCode.REQUEST_TIMED_OUT, ZERO_UUID)
        store.gate.set()
        await asyncio.wait_for(context.metadata.applied(context.metadata.image.revision + 1), 5)
        assert "orders" in context.metadata.image.topics


async def test_a_client_that_goes_away_does_not_stop_a_creation_half_way() -> None:
    store = SlowStore()
    async with running_broker(store=store) as context:
        request = asyncio.ensure_future(created(context, topic("orders", 250)))
        await asyncio.wait_for(store.asked.wait(), 5)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert "orders" not in context.metadata.image.topics
        store.gate.set()
        await asyncio.wait_for(context.metadata.applied(context.metadata.image.revision + 1), 5)
        assert len(context.metadata.image.topics["orders"].partitions) == 250


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_who_does_not_want_to_wait_is_told_so_and_the_topics_are_created(timeout_ms: int) -> None:
    async with running_broker() as context:
        revision = context.metadata.image.revision
        results = await created(context, topic("orders"), topic("others"), timeout_ms=timeout_ms)
        await asyncio.wait_for(context.metadata.applied(revision + 2), 5)
        assert list(context.metadata.image.topics) == ["orders", "others"]
    assert [result.error_code for result in results] == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_of_two_clients_with_the_same_topic_one_creates_it() -> None:
    async with running_broker() as context:
        results = await asyncio.gather(*(created(context, topic("orders")) for _ in range(4)))
    codes = sorted(ErrorCode(result.error_code) for (result,) in results)
    assert codes == [ErrorCode.NONE, *[ErrorCode.TOPIC_ALREADY_EXISTS] * 3]


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (OSError(28, "no room"), ErrorCode.KAFKA_STORAGE_ERROR),
        (StoreClosed("closed"), ErrorCode.BROKER_NOT_AVAILABLE),
        (Conflict("others"), ErrorCode.NOT_CONTROLLER),
    ],
)
async def test_a_store_that_fails_is_an_error_of_the_topic(failure: Exception, code: ErrorCode) -> None:
    class FailingStore(MemoryStore):
        async def commit(self, txn: Txn) -> int:
            if any(key.startswith("/topics/") for key in txn.put):
                raise failure
            return await super().commit(txn)

    async with running_broker(store=FailingStore()) as context:
        (result,) = await created(context, topic("orders"))
    assert result.error_code == code
    assert result.error_message
