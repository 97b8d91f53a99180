"""What the test kit has a broker do from within, in its loop: without a connection, and so past all faults on the wire.

Each broker does it for what it coordinates; the first of a cluster for the topics.
"""

from collections.abc import Awaitable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from odradek.broker.cluster import topics as cluster_topics
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.group.group import GroupKind
from odradek.broker.handling.context import Call, Caller, Context
from odradek.broker.handling.topic_plans import plan_topic
from odradek.broker.internal_topic_names import is_internal
from odradek.broker.observability.request_times import RequestTimes
from odradek.broker.server import Broker
from odradek.broker.txn.transaction import Transaction, TxnState
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.testing.hosting.shared_memory import SharedMemory
from odradek.testing.own_client import CLIENT_ID, RESET_REASON
from odradek.testing.running_cluster import NewTopicRefused

R = TypeVar("R", bound=Response)

TIMEOUT_MS: Final = 10_000
DEFAULT: Final = -1
LEAVES: Final = -1
"""The epoch with which a member of a consumer group leaves it."""
WITHOUT_NEXT_EPOCH: Final = 4
"""The last version of EndTxn that leaves the producer its epoch."""

LEFT: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
REJOINED: Final = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND)
ENDED: Final = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
)


async def answered(broker: Broker, request: Request[R], version: int | None = None) -> R:
    """The answer of a broker's handler; by default in the newest version. Raises KafkaError."""
    context = broker.context
    api = context.served[request.api_key]
    times = RequestTimes(context.environment.precise_s(), 0)
    caller = Caller(broker.settings.broker_listener)
    call = Call(caller, api.served[1] if version is None else version, 0, CLIENT_ID, times)
    answer: R = await api.handle(context, call, request)
    return answer


async def create_topics(
    broker: Broker, topics: Mapping[str, int], replication_factor: int = -1, config: Mapping[str, str] | None = None
) -> None:
    """`topics`: how many partitions each is to have. Returns when this broker knows them. Raises NewTopicRefused."""
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in (config or {}).items()]
    wanted = [
        CreatableTopic(
            name=name, num_partitions=count, replication_factor=replication_factor, assignments=[], configs=configs
        )
        for name, count in topics.items()
    ]
    answer = await answered(broker, CreateTopicsRequest(topics=wanted, timeout_ms=TIMEOUT_MS, validate_only=False))
    refused = [each for each in answer.topics if each.error_code]
    if refused:
        whys = (f"{each.name!r}: {each.error_message or ErrorCode(each.error_code).name}" for each in refused)
        raise NewTopicRefused(f"topics could not be made: {'; '.join(whys)}")


async def renew_topics(broker: Broker, memory: SharedMemory, kept: Mapping[str, int]) -> None:
    """Deletes all topics but internal ones, and makes those that are `kept`, by their numbers of partitions. Whatever
    the brokers hear of that, they hear at once, so that no client finds a topic missing that is kept.

    Returns when the metadata says so; brokers hear of it in a moment. Raises KafkaError.
    """
    context = broker.context
    store = context.metadata.store
    topics = [topic for topic in context.metadata.image.topics.values() if not is_internal(topic.name)]
    plans = [plan_topic(context, name, count, DEFAULT, (), {}) for name, count in kept.items()]
    with memory.together():  # nothing here waits: a store in memory answers at once
        await cluster_topics.delete_topics(store, topics)
        for plan in plans:
            await cluster_topics.create_topic(store, plan.name, plan.topic_id, plan.partitions, plan.configs)


async def end_transactions(broker: Broker) -> None:
    """Aborts those that this broker coordinates and that are open. Their producers keep ids and epochs, and find out
    when they go on."""
    for transactional_id, transaction in _transactions(broker.context):
        if transaction.state is TxnState.ONGOING:
            request = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                committed=False,
            )
            await _unless(ENDED, answered(broker, request, WITHOUT_NEXT_EPOCH))


async def delete_groups(broker: Broker) -> None:
    """Those that this broker coordinates. Members that run find that they are none any more, and join again."""
    kinds = _groups(broker.context)
    for group_id, kind in kinds.items():
        have_left = _classic_leave if kind is GroupKind.CLASSIC else _consumers_leave
        await _unless(LEFT, have_left(broker, group_id))
    if kinds:
        deleted = await answered(broker, DeleteGroupsRequest(groups_names=list(kinds)))
        for result in deleted.results:
            if result.error_code and result.error_code not in REJOINED:
                raise KafkaError(ErrorCode(result.error_code), f"group {result.group_id!r} could not be deleted")


async def _classic_leave(broker: Broker, group_id: str) -> None:
    described = await answered(broker, DescribeGroupsRequest(groups=[group_id]))
    members = [
        MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id, reason=RESET_REASON)
        for each in described.groups[0].members
    ]
    if members:
        await answered(broker, LeaveGroupRequest(group_id=group_id, members=members))


async def _consumers_leave(broker: Broker, group_id: str) -> None:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    for each in (await answered(broker, request)).groups[0].members:
        leave = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=each.member_id, member_epoch=LEAVES)
        await _unless(LEFT, answered(broker, leave))


def _groups(context: Context) -> dict[str, GroupKind]:
    return {group_id: group.kind for shard in context.groups.all for group_id, group in shard.machine.groups.items()}


def _transactions(context: Context) -> Iterable[tuple[str, Transaction]]:
    return [each for shard in context.transactions.shards.all for each in shard.machine.transactions]


async def _unless(codes: Collection[ErrorCode], change: Awaitable[object]) -> None:
    """Makes a change; with these codes somebody else was faster. Raises KafkaError."""
    try:
        await change
    except KafkaError as error:
        if error.code not in codes:
            raise


async def clock_moved(broker: Broker) -> None:
    """The time of day has been moved: what goes by it is done at once. Returns when logs are done with; offsets of
    groups and transactional ids expire in a moment."""
    context = broker.context
    await broker.maintenance.clock_moved()
    context.groups.tell(lambda machine, now: machine.clock_moved(now))
    context.transactions.shards.tell(lambda machine, now: machine.clock_moved(now))


async def loaded(broker: Broker) -> None:
    """Returns when this broker has read what it is to coordinate. Raises TimeoutError after TIMEOUT_MS."""
    environment = broker.context.environment
    deadline_ms = environment.monotonic_ms() + TIMEOUT_MS
    while ShardState.LOADING in _shard_states(broker.context):
        if environment.monotonic_ms() >= deadline_ms:
            raise TimeoutError(f"broker {broker.settings.node_id} still reads what it coordinates")
        await environment.sleep(1.0)  # between two looks


def _shard_states(context: Context) -> set[ShardState]:
    groups, transactions = context.groups, context.transactions.shards
    return {shard.state for shard in groups.all} | {shard.state for shard in transactions.all}
