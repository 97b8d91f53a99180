"""What calls of Admin stand on that are about partitions: each is asked of its leader."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from odradek.client.admin.calls import Again, Deadline, UnknownBroker
from odradek.client.admin.topic_calls import TopicCalls
from odradek.client.admin.topics import TopicDescription
from odradek.client.errors.client_errors import ClientError, InvalidPartition, broker_error
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.runtime.tasks import run_together

__all__ = ["LeaderCalls"]

V = TypeVar("V")


class LeaderCalls(TopicCalls):
    """See `odradek.client.admin.admin`."""

    async def _by_leader(
        self,
        partitions: list[TopicPartition],
        ask: Callable[[Mapping[TopicPartition, int], int], Awaitable[Mapping[TopicPartition, V | ClientError]]],
        deadline: Deadline,
    ) -> Mapping[TopicPartition, V | ClientError | Again]:
        """Asks each leader about its partitions, with their leader epochs, at the same time.

        A leader that is gone, or does not know of a partition, is no end: the next look may find another one.
        """
        topics = await self._describe(dict.fromkeys(partition.topic for partition in partitions), deadline)
        outcomes: dict[TopicPartition, V | ClientError | Again] = {}
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for partition in partitions:
            found = _leader(partition, topics.get(partition.topic))
            if isinstance(found, ClientError):
                outcomes[partition] = found
            else:
                leader, leader_epoch = found
                by_leader.setdefault(leader, {})[partition] = leader_epoch

        async def one(
            node_id: int, some: Mapping[TopicPartition, int]
        ) -> Mapping[TopicPartition, V | ClientError | Again]:
            try:
                answers = await ask(some, node_id)
            except UnknownBroker as error:
                return dict.fromkeys(some, Again(error))
            except ClientError as error:
                return dict.fromkeys(some, error)
            return {partition: _of_a_leader(answer) for partition, answer in answers.items()}

        for answered in await run_together([one(node_id, some) for node_id, some in by_leader.items()], "ask leaders"):
            outcomes |= answered
        return outcomes


def _of_a_leader(answer: V | ClientError) -> V | ClientError | Again:
    """What the leader of a partition says of it: UNKNOWN_TOPIC_OR_PARTITION, if it has not heard of it yet, and
    KAFKA_STORAGE_ERROR, if it leads it no more, are no last words then. (Source: ListOffsetsHandler.java,
    DeleteRecordsHandler.java: RetriableException.)"""
    return Again(answer) if isinstance(answer, ClientError) and answer.retriable else answer


def _leader(partition: TopicPartition, topic: TopicDescription | ClientError | None) -> tuple[int, int] | ClientError:
    """The node that leads a partition, and its leader epoch; or why there is none."""
    if isinstance(topic, ClientError):
        return topic
    if topic is None:
        return broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", f"Metadata of {partition.topic}")
    for each in topic.partitions:
        if each.partition == partition.partition:
            if each.leader >= 0:
                return each.leader, each.leader_epoch
            return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "", f"looking for the leader of {partition}")
    return InvalidPartition(partition.topic, partition.partition, len(topic.partitions), "the call")
