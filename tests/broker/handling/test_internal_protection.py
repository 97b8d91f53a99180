"""What clients may not do to the topics of the brokers: each API that could harm them refuses."""

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import OF_TRANSACTIONS, ensure_coordinator_topic
from odradek.broker.handling.internal_protection import ADMIN_CLIENT_ID, require_appendable
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_configs import AlterableConfig as ConfigOfAlter
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as ResourceOfAlter
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.groups import GROUP, commit, fetch, running_groups
from tests.broker.support import ask, batch, call, make_topic, running_broker

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
OF_TWO = {"transaction.state.log.num.partitions": "2"}
TOPIC = 2
SET, DELETE, APPEND, SUBTRACT = range(4)


# -- records -------------------------------------------------------------------------------------------------------


async def produced(context: Context, topic: str) -> tuple[ErrorCode, int]:
    """The answer, and how many records are in partition 0 then."""
    data = [PartitionProduceData(index=0, records=batch(b"a", key=b"k"))]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    [response] = (await ask(context, request, 9)).responses
    log = context.partitions.leader(topic, 0).log
    return ErrorCode(response.partition_responses[0].error_code), log.log_end_offset


@pytest.mark.parametrize("topic", [OFFSETS, "__transaction_state", "__share_group_state"])
async def test_clients_do_not_write_to_topics_of_the_brokers(topic: str) -> None:
    async with running_broker() as context:
        await make_topic(context, topic, 1, {"cleanup.policy": "compact"})
        assert await produced(context, topic) == (ErrorCode.INVALID_TOPIC_EXCEPTION, 0)


async def test_who_calls_itself_the_admin_client_may_write_as_in_kafka() -> None:
    require_appendable(call(client_id=ADMIN_CLIENT_ID), OFFSETS)
    require_appendable(call(client_id="anybody"), "orders")
    for client_id in (None, "", "anybody"):
        with pytest.raises(KafkaError, match="clients do not append to it"):
            require_appendable(call(client_id=client_id), OFFSETS)


async def test_records_are_not_deleted() -> None:
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7})
        index = context.groups.index_of(GROUP) or 0
        partitions = [DeleteRecordsPartition(partition_index=index, offset=-1)]
        request = DeleteRecordsRequest(
            timeout_ms=1000, topics=[DeleteRecordsTopic(name=OFFSETS, partitions=partitions)]
        )
        [topic] = (await ask(context, request, 2)).topics
        assert [each.error_code for each in topic.partitions] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert context.partitions.leader(OFFSETS, index).log.log_start_offset == 0


# -- topics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 7))
async def test_a_clean_up_of_all_topics_leaves_the_offsets(version: int) -> None:
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7})
        if version < 6:
            request = DeleteTopicsRequest(topic_names=["orders", OFFSETS], timeout_ms=1000)
        else:
            names = [DeleteTopicState(name="orders"), DeleteTopicState(name=OFFSETS)]
            request = DeleteTopicsRequest(topics=names, timeout_ms=1000)
        orders, offsets = (await ask(context, request, version)).responses
        disabled = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert (orders.error_code, offsets.error_code) == (ErrorCode.NONE, disabled)
        assert version < 5 or "the offsets of all groups" in (offsets.error_message or "")
        assert list(context.metadata.image.topics) == [OFFSETS]


async def test_by_its_id_it_is_not_deleted_either() -> None:
    async with running_groups() as context:
        topic_id = context.metadata.image.topics[OFFSETS].topic_id
        topics = [DeleteTopicState(name=None, topic_id=topic_id)]
        [answer] = (await ask(context, DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)).responses
        assert answer.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert OFFSETS in context.metadata.image.topics


@pytest.mark.parametrize(("policy", "is_deleted"), [("delete", True), ("compact,delete", False)])
async def test_a_topic_of_that_name_that_is_no_coordinators_may_be_deleted(policy: str, is_deleted: bool) -> None:
    async with running_broker() as context:
        await make_topic(context, OFFSETS, 1, {"cleanup.policy": policy})
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS)], timeout_ms=1000)
        [answer] = (await ask(context, request, 6)).responses
        assert answer.error_code == (ErrorCode.NONE if is_deleted else ErrorCode.TOPIC_DELETION_DISABLED)
        assert (OFFSETS in context.metadata.image.topics) != is_deleted


@pytest.mark.parametrize("validate_only", [True, False])
async def test_its_partitions_stay_as_many_as_they_are(validate_only: bool) -> None:
    async with running_groups() as context:
        topics = [CreatePartitionsTopic(name=OFFSETS, count=3, assignments=None)]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=validate_only)
        [result] = (await ask(context, request, 3)).results
        assert result.error_code == ErrorCode.INVALID_PARTITIONS
        assert "stays" in (result.error_message or "")
        assert len(context.metadata.image.topics[OFFSETS].partitions) == 2


async def created(
    context: Context, count: int, configs: dict[str, str] | None = None, assignments: int = 0, topic: str = OFFSETS
) -> CreatableTopicResult:
    wanted = CreatableTopic(
        name=topic,
        num_partitions=-1 if assignments else count,
        replication_factor=-1 if assignments else 1,
        assignments=[CreatableReplicaAssignment(partition_index=index, broker_ids=[0]) for index in range(assignments)],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()],
    )
    [result] = (await ask(context, CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7)).topics
    return result


async def test_it_is_created_by_hand_only_as_brokers_do() -> None:
    async with running_broker({"offsets.topic.num.partitions": "2"}) as context:
        assert (await created(context, 3)).error_code == ErrorCode.INVALID_PARTITIONS
        assert (await created(context, 0, assignments=3)).error_code == ErrorCode.INVALID_PARTITIONS
        for policy in ("delete", "compact,delete"):
            refused = await created(context, 2, {"cleanup.policy": policy})
            assert refused.error_code == ErrorCode.INVALID_CONFIG
        assert OFFSETS not in context.metadata.image.topics
        assert (await created(context, 2, {"segment.bytes": "1048576"})).error_code == ErrorCode.NONE
        configs = context.metadata.image.topics[OFFSETS].configs
        assert configs == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "1048576"}


# -- options -------------------------------------------------------------------------------------------------------


async def altered(
    context: Context, *changes: tuple[int, str, str | None], validate_only: bool = False, topic: str = OFFSETS
) -> ErrorCode:
    """Incrementally."""
    configs = [AlterableConfig(name=name, config_operation=kind, value=value) for kind, name, value in changes]
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    [answer] = (await ask(context, request, 1)).responses
    return ErrorCode(answer.error_code)


async def replaced(context: Context, **configs: str) -> ErrorCode:
    """All at once."""
    resource = ResourceOfAlter(
        resource_type=TOPIC,
        resource_name=OFFSETS,
        configs=[ConfigOfAlter(name=name.replace("_", "."), value=value) for name, value in configs.items()],
    )
    [answer] = (await ask(context, AlterConfigsRequest(resources=[resource], validate_only=False), 2)).responses
    return ErrorCode(answer.error_code)


async def test_it_stays_compacted() -> None:
    async with running_groups() as context:
        before = context.metadata.image.topics[OFFSETS].configs
        for change in (
            (SET, "cleanup.policy", "delete"),
            (SET, "cleanup.policy", "compact,delete"),
            (APPEND, "cleanup.policy", "delete"),
            (DELETE, "cleanup.policy", None),
        ):
            assert await altered(context, change) is ErrorCode.INVALID_CONFIG
        assert await altered(context, (SET, "cleanup.policy", "delete"), validate_only=True) is ErrorCode.INVALID_CONFIG
        assert await replaced(context, segment_bytes="1048576") is ErrorCode.INVALID_CONFIG, "which drops the policy"
        assert await replaced(context, cleanup_policy="delete") is ErrorCode.INVALID_CONFIG
        assert context.metadata.image.topics[OFFSETS].configs == before


async def test_its_other_options_may_be_changed() -> None:
    async with running_groups() as context:
        assert await altered(context, (SET, "segment.bytes", "1048576")) is ErrorCode.NONE
        assert context.metadata.image.topics[OFFSETS].configs["segment.bytes"] == "1048576"
        assert await replaced(context, cleanup_policy="compact", segment_bytes="2097152") is ErrorCode.NONE
        assert dict(context.metadata.image.topics[OFFSETS].configs) == {
            "cleanup.policy": "compact",
            "segment.bytes": "2097152",
        }


async def test_a_topic_of_that_name_that_is_not_compacted_can_be_made_so() -> None:
    async with running_groups() as context:
        await make_topic(context, "plain")
        assert await altered(context, (SET, "cleanup.policy", "compact")) is ErrorCode.NONE


# -- metadata ------------------------------------------------------------------------------------------------------


async def named(context: Context, *, allows_creation: bool, topic: str = OFFSETS) -> MetadataResponseTopic:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=allows_creation)
    [answer] = (await ask(context, request, 12)).topics
    return answer


async def test_metadata_creates_it_as_a_group_would() -> None:
    settings = {"offsets.topic.num.partitions": "2", "num.partitions": "5", "auto.create.topics.enable": "true"}
    async with running_broker(settings) as context:
        unknown = await named(context, allows_creation=False)
        assert (unknown.error_code, unknown.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
        topic = await named(context, allows_creation=True)
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 2)
        assert context.metadata.image.topics[OFFSETS].configs["cleanup.policy"] == "compact"


async def test_what_was_committed_is_still_there() -> None:
    """After all that is refused."""
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7})
        await ask(context, DeleteTopicsRequest(topic_names=[OFFSETS], timeout_ms=1000), 5)
        await produced(context, OFFSETS)
        assert (await fetch(context, [("orders", 0)]))["orders", 0][0] == 7


# -- `__transaction_state` -------------------------------------------------------------------------------------------


async def test_what_is_refused_for_the_offsets_is_refused_for_transactions() -> None:
    async with running_broker(OF_TWO) as context:
        topic = await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        assert await produced(context, TRANSACTIONS) == (ErrorCode.INVALID_TOPIC_EXCEPTION, 0)

        deleting = DeleteTopicsRequest(topics=[DeleteTopicState(name=TRANSACTIONS)], timeout_ms=1000)
        [deleted] = (await ask(context, deleting, 6)).responses
        assert deleted.error_code == ErrorCode.TOPIC_DELETION_DISABLED
        assert deleted.error_message == f"{TRANSACTIONS} holds the state of all transactions, and is not deleted"

        topics = [CreatePartitionsTopic(name=TRANSACTIONS, count=3, assignments=None)]
        growing = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)
        [grown] = (await ask(context, growing, 3)).results
        assert grown.error_code == ErrorCode.INVALID_PARTITIONS

        partitions = [DeleteRecordsPartition(partition_index=0, offset=-1)]
        records = DeleteRecordsRequest(
            timeout_ms=1000, topics=[DeleteRecordsTopic(name=TRANSACTIONS, partitions=partitions)]
        )
        [emptied] = (await ask(context, records, 2)).topics
        assert [each.error_code for each in emptied.partitions] == [ErrorCode.INVALID_TOPIC_EXCEPTION]

        change = (SET, "cleanup.policy", "delete")
        assert await altered(context, change, topic=TRANSACTIONS) is ErrorCode.INVALID_CONFIG
        assert await altered(context, (SET, "segment.bytes", "1048576"), topic=TRANSACTIONS) is ErrorCode.NONE
        after = context.metadata.image.topics[TRANSACTIONS]
        assert (after.topic_id, len(after.partitions)) == (topic.topic_id, 2)
        assert after.configs == {**topic.configs, "segment.bytes": "1048576"}


async def test_that_of_transactions_is_created_by_hand_only_as_brokers_do() -> None:
    async with running_broker(OF_TWO) as context:
        refused = await created(context, 3, topic=TRANSACTIONS)
        assert refused.error_code == ErrorCode.INVALID_PARTITIONS
        assert "by transaction.state.log.num.partitions" in (refused.error_message or "")
        assert (await created(context, 2, {"cleanup.policy": "delete"}, topic=TRANSACTIONS)).error_code == (
            ErrorCode.INVALID_CONFIG
        )
        assert (await created(context, 2, topic=TRANSACTIONS)).error_code == ErrorCode.NONE
        assert context.metadata.image.topics[TRANSACTIONS].configs["compression.type"] == "uncompressed"


async def test_metadata_creates_that_of_transactions_as_a_producer_would() -> None:
    async with running_broker({**OF_TWO, "num.partitions": "5", "auto.create.topics.enable": "true"}) as context:
        topic = await named(context, allows_creation=True, topic=TRANSACTIONS)
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (ErrorCode.NONE, True, 2)
        assert context.metadata.image.topics[TRANSACTIONS].configs["cleanup.policy"] == "compact"
