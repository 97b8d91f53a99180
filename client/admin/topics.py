"""Topics as Admin takes and returns them, and what that is in Kafka's requests and responses. Pure.

Topic ids are Kafka's text form of them, 22 characters of base64, as its tools print them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from odradek.client.admin.configs import ConfigEntry, ConfigSource
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.primitives import ZERO_UUID, uuid_from_text, uuid_text

__all__ = [
    "CreatedTopic",
    "NewTopic",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
]

BROKERS_DEFAULT: Final = -1
DEFAULTS_SINCE: Final = 4
"""The version of CreateTopics from which on the broker's defaults can be asked for (KIP-464)."""
IDS_SINCE: Final = 6
"""The version of DeleteTopics from which on topics can be named by id (KIP-516)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1: as many partitions or replicas as the broker's defaults say (KIP-464).

    `assignments` names the brokers of every partition, the preferred leader first, instead of both numbers.
    """

    name: str
    partitions: int = BROKERS_DEFAULT
    replication_factor: int = BROKERS_DEFAULT
    configs: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    assignments: Mapping[int, Sequence[int]] | None = None

    @property
    def needs_defaults(self) -> bool:
        return self.assignments is None and BROKERS_DEFAULT in (self.partitions, self.replication_factor)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as it was created. What older brokers (before Kafka 2.4) do not tell is -1, None or empty.

    `configs_error`: why the options cannot be told, such as a missing right (KIP-525).
    """

    name: str
    topic_id: str | None = None
    partitions: int = -1
    replication_factor: int = -1
    configs: tuple[ConfigEntry, ...] = ()
    configs_error: ClientError | None = None


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in the list of all."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition. `leader` is -1 where there is none, `leader_epoch` -1 where the broker does not tell it.

    `eligible_leaders` (KIP-966): replicas that are not in sync, and have all that was acknowledged nevertheless;
    `last_known_leaders`: who led last, where nobody is in sync or eligible. None where they were not asked for or the
    broker does not tell.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()
    eligible_leaders: tuple[int, ...] | None = None
    last_known_leaders: tuple[int, ...] | None = None

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        """The replicas that are not in sync."""
        return tuple(each for each in self.replicas if each not in self.isr)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions, by number."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]

    @property
    def has_leaders(self) -> bool:
        """Whether every partition has a leader."""
        return all(partition.leader >= 0 for partition in self.partitions)


# ------------------------------------------------------------------------------------------------- create and delete
def create_topics_request(topics: Iterable[NewTopic], timeout_ms: int, *, validate_only: bool) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=BROKERS_DEFAULT if topic.assignments is not None else topic.partitions,
                replication_factor=BROKERS_DEFAULT if topic.assignments is not None else topic.replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
                    for partition, brokers in (topic.assignments or {}).items()
                ],
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def created_topics(response: CreateTopicsResponse) -> dict[str, CreatedTopic | ClientError]:
    return {
        each.name: broker_error(each.error_code, each.error_message, f"CreateTopics of {each.name}")
        if each.error_code
        else _created(each)
        for each in response.topics
    }


def _created(result: CreatableTopicResult) -> CreatedTopic:
    configs_error = None
    if result.topic_config_error_code:
        configs_error = broker_error(result.topic_config_error_code, "", f"the options of {result.name}")
    return CreatedTopic(
        result.name,
        topic_id_text(result.topic_id),
        result.num_partitions,
        result.replication_factor,
        tuple(
            ConfigEntry(each.name, each.value, ConfigSource.of(each.config_source), each.read_only, each.is_sensitive)
            for each in result.configs or ()
        ),
        configs_error,
    )


def delete_topics_request(names: Sequence[str], topic_ids: Sequence[bytes], timeout_ms: int) -> DeleteTopicsRequest:
    states = [DeleteTopicState(name=name) for name in names]
    states += [DeleteTopicState(topic_id=topic_id) for topic_id in topic_ids]
    return DeleteTopicsRequest(topics=states, topic_names=list(names), timeout_ms=timeout_ms)


def deleted_topics(response: DeleteTopicsResponse) -> dict[str, ClientError | None]:
    """Outcomes by name, and by id where a topic was named by it: the answer has both then, or only the id."""
    outcomes: dict[str, ClientError | None] = {}
    for each in response.responses:
        topic_id = topic_id_text(each.topic_id)
        for key in (each.name, topic_id):
            if key is not None:
                what = f"DeleteTopics of {key}"
                outcomes[key] = broker_error(each.error_code, each.error_message, what) if each.error_code else None
    return outcomes


def create_partitions_request(
    counts: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]],
    timeout_ms: int,
    *,
    validate_only: bool,
) -> CreatePartitionsRequest:
    """`counts`: how many partitions each topic shall have; `assignments`: the brokers of each new one."""
    return CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in assignments[name]]
                if name in assignments
                else None,
            )
            for name, count in counts.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def created_partitions(response: CreatePartitionsResponse) -> dict[str, ClientError | None]:
    return {
        each.name: broker_error(each.error_code, each.error_message, f"CreatePartitions of {each.name}")
        if each.error_code
        else None
        for each in response.results
    }


# -------------------------------------------------------------------------------------------------- list and describe
def listed_topics(response: MetadataResponse) -> list[TopicListing]:
    """All topics that the principal may know of, by name."""
    found = [
        TopicListing(
            topic.name,
            topic_id_text(topic.topic_id),
            topic.is_internal,
            len(topic.partitions),
            max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        )
        for topic in response.topics
        if topic.name is not None and not topic.error_code
    ]
    return sorted(found, key=lambda topic: topic.name)


def described_topics(response: MetadataResponse) -> dict[str, TopicDescription | ClientError]:
    return {
        topic.name: broker_error(topic.error_code, "", f"Metadata of {topic.name}")
        if topic.error_code and topic.error_code != LEADERS_MISSING
        else _described(topic.name, topic)
        for topic in response.topics
        if topic.name is not None
    }


LEADERS_MISSING: Final = int(ErrorCode.LEADER_NOT_AVAILABLE)
"""Of a topic in version 0 only, of a partition later: it exists all the same."""


def _described(
    name: str,
    topic: MetadataResponseTopic | DescribeTopicPartitionsResponseTopic,
    before: tuple[PartitionDescription, ...] = (),
) -> TopicDescription:
    """`before`: its partitions that earlier pages had."""
    partitions = sorted([*before, *map(_partition, topic.partitions)], key=lambda each: each.partition)
    return TopicDescription(name, topic_id_text(topic.topic_id), topic.is_internal, tuple(partitions))


def _partition(
    each: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> PartitionDescription:
    eligible = last_known = None  # which Metadata does not tell
    if isinstance(each, DescribeTopicPartitionsResponsePartition):
        eligible, last_known = each.eligible_leader_replicas, each.last_known_elr
    return PartitionDescription(
        each.partition_index,
        each.leader_id if each.leader_id >= 0 else -1,
        each.leader_epoch,
        tuple(each.replica_nodes),
        tuple(each.isr_nodes),
        tuple(each.offline_replicas),
        None if eligible is None else tuple(eligible),
        None if last_known is None else tuple(last_known),
    )


def describe_partitions_request(names: Iterable[str], cursor: Cursor | None) -> DescribeTopicPartitionsRequest:
    """`cursor`: where the last answer has ended; None to begin with. Brokers answer topics by name, and so does this:
    what is before the cursor was answered."""
    wanted = sorted(name for name in names if cursor is None or name >= cursor.topic_name)
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in wanted], cursor=cursor)


def described_partitions(
    pages: Iterable[DescribeTopicPartitionsResponse],
) -> dict[str, TopicDescription | ClientError]:
    """From all pages of an answer (KIP-966). A topic may be on several."""
    found: dict[str, TopicDescription | ClientError] = {}
    for topic in (topic for page in pages for topic in page.topics):
        if topic.name is None:
            continue
        before = found.get(topic.name)
        if topic.error_code:
            found[topic.name] = broker_error(topic.error_code, "", f"DescribeTopicPartitions of {topic.name}")
        else:
            partitions = before.partitions if isinstance(before, TopicDescription) else ()
            found[topic.name] = _described(topic.name, topic, partitions)
    return found


def topic_id_from_text(text: str) -> bytes:
    """Raises ClientError for a text that is no topic id."""
    try:
        return uuid_from_text(text)
    except ValueError:
        hint = "An id is 22 characters of base64, as describe_topics tells it."
        raise ClientError(f"{text!r} is no topic id", hint=hint) from None


def topic_id_text(topic_id: bytes) -> str | None:
    return None if topic_id == ZERO_UUID else uuid_text(topic_id)
