"""Topics that the broker makes for itself: created when they are needed, outside of a request, and given more replicas
when there are more brokers.

Kafka creates `__consumer_offsets` with the first question for a coordinator, and waits until there are as many brokers
as `offsets.topic.replication.factor` asks for. Here it is created at once, with as many replicas as there are brokers;
`add_replicas` brings it to the number that was asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.broker.access.principal import BROKER_ITSELF
from odradek.broker.cluster.placement import UsableBroker, widened
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.handling.context import Call, Caller, Context
from odradek.broker.handling.forwarding import forward
from odradek.broker.handling.metadata_change import Commit, MetadataChange
from odradek.broker.handling.partition_plans import reassign
from odradek.broker.handling.topic_plans import create, plan_topic
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.errors import ErrorCode, KafkaError, code_of
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

ATTEMPTS_MAX = 5


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """What such a topic is to be like."""

    name: str
    partition_count: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict[str, str])
    topic_id: bytes | None = None
    """Where its partitions lie on this broker already, with this id; None: it gets a new one."""


async def ensure_internal_topic(context: Context, wanted: InternalTopic, timeout_ms: float) -> TopicImage:
    """The topic, created if it is not there. However many ask at once, on whatever brokers, there is one.

    Raises KafkaError: INVALID_REPLICATION_FACTOR where no broker can be used, and as `MetadataChange.apply`.
    """
    changes = MetadataChange(context, _own_call(context), timeout_ms)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        image = context.metadata.image
        if (present := image.topics.get(wanted.name)) is not None:
            return present
        factor = max(1, min(wanted.replication_factor, len(image.registered)))
        plan = plan_topic(
            context, wanted.name, wanted.partition_count, factor, (), wanted.configs, topic_id=wanted.topic_id
        )
        try:
            await create(context, changes, plan)
        except KafkaError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                await context.metadata.applied((await context.metadata.store.read("/topics")).revision)
            elif error.code is not ErrorCode.NOT_CONTROLLER or attempt == ATTEMPTS_MAX:
                raise
    raise KafkaError(ErrorCode.NOT_CONTROLLER, f"topic {wanted.name} comes and goes: try again")


async def add_replicas(context: Context, wanted: InternalTopic, timeout_ms: float) -> int:
    """Has the partitions that have fewer replicas than are asked for, and can be had, get more: those that they have
    stay, and preferred leaders are spread over the brokers. Returns how many partitions that concerns; the replicas
    join when they have caught up.

    Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT, and what AlterPartitionReassignments answers for
    one of them.
    """
    image = context.metadata.image
    if (topic := image.topics.get(wanted.name)) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name}")
    brokers = [
        UsableBroker(broker_id, image.rack(broker_id), is_fenced=not image.is_usable(broker_id))
        for broker_id in image.registered
    ]
    present = [state.replicas for state in topic.partitions]
    after = widened(present, wanted.replication_factor, brokers)
    moves = {
        index: replicas
        for index, replicas in enumerate(after)
        if replicas != present[index] and not (topic.partitions[index].adding or topic.partitions[index].removing)
    }
    if moves:
        await _reassign(context, wanted.name, moves, timeout_ms)
    return len(moves)


async def apply_own_change(context: Context, commit: Commit, timeout_ms: float) -> None:
    """A change that this broker makes by itself. Raises KafkaError, as `MetadataChange.apply`."""
    await MetadataChange(context, _own_call(context), timeout_ms).apply(commit)


def _own_call(context: Context) -> Call:
    """In place of a client's: nobody has sent a request."""
    times = RequestTimes(context.environment.precise_s(), 0)
    caller = Caller(context.member.peers.listener, "this broker")
    caller.principal = BROKER_ITSELF
    return Call(caller, 1, 0, None, times)


async def _reassign(context: Context, name: str, moves: Mapping[int, tuple[int, ...]], timeout_ms: float) -> None:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=int(timeout_ms),
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=list(replicas))
                    for index, replicas in moves.items()
                ],
            )
        ],
    )
    own = _own_call(context)
    answer = await forward(context, own, request, timeout_ms)
    if answer is None:  # this broker is the controller
        changes = MetadataChange(context, own, timeout_ms)
        for index, replicas in moves.items():
            await reassign(context, changes, name, index, replicas, may_change_count=True)
        return
    answers = [partition for topic in answer.responses for partition in topic.partitions]
    for code, message in [
        (answer.error_code, answer.error_message),
        *((each.error_code, each.error_message) for each in answers),
    ]:
        if code:
            raise KafkaError(code_of(code), message or "")
