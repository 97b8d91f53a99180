"""A request that has waited is authorized again before its answer leaves.

Rights may change while a request waits for replicas, for data, for other members of a group or for the metadata. From
the moment at which a revocation is answered nobody is answered by what was revoked: so what the request was granted
(`Call.decisions`) is asked again, if rights are others by then. Where something is granted no more:

| the request | its answer |
|---|---|
| changes nothing (`REPEATABLE`) | the request is handled once more, by the rights of now |
| Produce, commits, DeleteRecords: topics alone are concerned (`Api.refuse`) | these are refused, others answered |
| any other | all of it is refused, although it may be done |

A Fetch asks again with each look at its partitions, and the last one is just before its answer. A reply that is written
behind others asks once more when its turn has come (`network/reply_queue.py`).

Where one of two rights is enough (CREATE on the cluster or on the topic), the request stands by the one that it was
granted.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from odradek.broker.access.resource import DENIED, Resource, ResourceType
from odradek.broker.handling.context import Api, Call, Context
from odradek.broker.handling.decisions import Question, forget, granted_before
from odradek.protocol.errors import KafkaError

REPEATABLE: Final = frozenset(
    {
        "ConsumerGroupDescribe",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "FindCoordinator",
        "ListConfigResources",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
    }
)
"""By the names of their APIs."""
REPEATED_MAX: Final = 3
"""If rights change even then, the request is refused."""
NOTHING: Final[Sequence[Question]] = ()

Handle = Callable[[Any], Awaitable[Any]]
"""Handles a request. Raises what a handler does."""


def rights_lost(context: Context, call: Call) -> Sequence[Question]:
    """What the request was granted and is not any more."""
    if call.decisions is None or not (doubtful := granted_before(call.decisions, context.access.generation)):
        return NOTHING
    return [
        (operation, wanted)
        for operation, wanted in doubtful
        if not (
            context.permits(call, operation, wanted)
            if isinstance(wanted, Resource)
            else context.permits_any(call, operation, wanted)
        )
    ]


def refusal_of(lost: Sequence[Question]) -> KafkaError:
    """What the request is answered that has lost these, of which there is one at least."""
    operation, wanted = lost[0]
    kind = wanted.kind if isinstance(wanted, Resource) else ResourceType.CLUSTER
    return KafkaError(DENIED[kind], f"the right to {operation.name} was taken away while the request waited")


def error_of_now(context: Context, call: Call, error: KafkaError) -> KafkaError:
    """What the request is answered that has failed with this: that it failed so may be nobody's business any more."""
    if error.code in DENIED.values() or not (lost := rights_lost(context, call)):
        return error
    return refusal_of(lost)


async def reauthorized(
    context: Context, api: Api, call: Call, request: Any, answer: Any, lost: Sequence[Question], handle: Handle
) -> Any:
    """The answer by the rights of now, without what rests upon those that are `lost`. Raises KafkaError where the
    request is refused, and as `handle`."""
    repeats = REPEATED_MAX if api.name in REPEATABLE else 0
    while lost:
        if not repeats:
            return refused(context, api, call, answer, lost)
        repeats -= 1
        call.begins_again()
        answer = await handle(request)
        lost = rights_lost(context, call)
    return answer


def refused(context: Context, api: Api, call: Call, answer: Any, lost: Sequence[Question]) -> Any:
    """The answer without what rests upon these. Raises KafkaError where nothing of it is left."""
    others = [each for each in lost if not (isinstance(each[1], Resource) and each[1].kind is ResourceType.TOPIC)]
    if api.refuse is None or others:
        raise refusal_of(others or lost)
    topics = {wanted.name for _, wanted in lost if isinstance(wanted, Resource)}
    assert call.decisions is not None, "something was lost"
    forget(call.decisions, lost)
    return api.refuse(context, call, answer, topics, refusal_of(lost))
