"""The coordinator of groups on this broker, put together: a shard of `__consumer_offsets` for each partition that it
leads, by the broker's options, and told of the cluster's metadata."""

from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.cluster_topics import ClusterTopics
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.machine import Outbox
from odradek.broker.coordinator.shards import Shards
from odradek.broker.disk.disk import Disk
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.group_host import ConsumerOptions
from odradek.broker.group.machine import GroupMachine, MachineOptions
from odradek.broker.internal_topic_names import OFFSETS_TOPIC
from odradek.broker.membership.image_follower import ImageFollower
from odradek.broker.topic_patterns import compile_pattern
from odradek.protocol.batches.compression import Codec
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks


class _Options:
    """What of the broker's options its shards go by (`ShardOptions`)."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config

    @property
    def append_linger_ms(self) -> int:
        return self._config.group_coordinator_append_linger_ms

    @property
    def commit_timeout_ms(self) -> int:
        return self._config.offsets_commit_timeout_ms

    @property
    def compression(self) -> Codec:
        return Codec(self._config.offsets_topic_compression_codec)


def group_shards(
    config: BrokerConfig,
    environment: Environment,
    metadata: ImageFollower,
    disk: Disk,
    tasks: Tasks,
    counts: GroupCounts,
) -> Shards[GroupMachine]:
    topics = ClusterTopics(metadata.image)

    def partition_count(name: str) -> int | None:
        topic = metadata.image.topics.get(name)
        return None if topic is None else len(topic.partitions)

    def own_options(group_id: str) -> ConsumerOptions:
        options: ConsumerOptions = config.consumer_group(  # pyright: ignore[reportAssignmentType]
            metadata.image.configs_of_group(group_id)
        )
        return options

    def machine(outbox: Outbox) -> GroupMachine:
        # An option is a descriptor, and pyright does not see that its value is what the protocol names.
        options: MachineOptions = config  # pyright: ignore[reportAssignmentType]
        return GroupMachine(outbox, options, environment.random_uuid, topics, compile_pattern, counts, own_options)

    shards = Shards(OFFSETS_TOPIC, machine, _Options(config), partition_count, disk, tasks)

    def follow(image: ClusterImage, delta: Delta) -> None:
        deleted = {topic.name: topic.topic_id for topic in delta.deleted}
        changed = topics.follow(image, delta)
        if deleted:
            shards.tell(lambda each, now: each.topics_deleted(deleted, now))
        if changed:
            shards.tell(lambda each, now: each.metadata_changed(changed, now))

    metadata.subscribe(follow)
    return shards
