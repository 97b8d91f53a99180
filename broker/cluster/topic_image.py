"""One topic of the cluster as this broker knows it, and how it is made anew when keys of it have changed. Pure.

A topic is visible while `/topics/<name>` exists, with as many partitions as that key says. Partition keys that belong
to no visible topic (a creation under way, leftovers of a deletion, partitions being added) wait until a topic with
their id and enough partitions appears (image.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.broker.cluster.keys import (
    MalformedMetadata,
    PartitionState,
    TopicState,
    decode_partition,
    decode_topic,
    partition_key,
)
from odradek.broker.cluster.store import Event

NO_CONFIGS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic with all its partitions, by index."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str] = field(default_factory=lambda: NO_CONFIGS)
    """The topic's own configuration. The same object for as long as it does not change."""
    revision: int = field(default=0, compare=False)
    """Of its key, for the next conditional write."""

    @property
    def replication_factor(self) -> int:
        """What partitions get that are added: as many replicas as the first one has, or will have once it is reassigned
        (ReplicationControlManager.createPartitions)."""
        first = self.partitions[0]
        return len(first.replicas) - len(first.removing)


def topic_state(
    before: TopicImage | None, event: Event | None, name: str, revision: int, revisions: Mapping[str, int]
) -> TopicState | None:
    """What its key says behind the change; None: the topic does not exist. Raises MalformedMetadata."""
    if event is None:
        if before is None:
            return None
        return TopicState(before.topic_id, len(before.partitions), before.revision)
    if event.value is None:
        return None
    return decode_topic(event.value, name, revisions.get(event.key, revision))


def partition_states(
    topic: str, events: Mapping[int, Event], revision: int, revisions: Mapping[str, int]
) -> dict[int, PartitionState | None]:
    """What the keys that were written say, by index; None: removed. Raises MalformedMetadata."""
    return {
        index: None
        if event.value is None
        else decode_partition(event.value, topic, index, revisions.get(event.key, revision))
        for index, event in events.items()
    }


def rebuild(
    name: str,
    state: TopicState | None,
    before: TopicImage | None,
    hidden: Mapping[int, PartitionState],
    written: Mapping[int, PartitionState | None],
    configs: Mapping[str, str],
) -> tuple[TopicImage | None, dict[int, PartitionState]]:
    """The topic as it is now, if it exists, and the partitions that do not belong to it (yet). Raises
    MalformedMetadata."""
    waiting = dict(hidden)
    if state is None:
        # Keys of a topic that is deleted are leftovers: remembered only when they are written from now on.
        known: list[PartitionState | None] = []
    elif before is not None and before.topic_id == state.topic_id:
        known = list(before.partitions[: state.partition_count])
    else:
        known = []
    count = 0 if state is None else state.partition_count
    known += [None] * (count - len(known))
    for index, partition in written.items():
        if partition is None:
            waiting.pop(index, None)
            if index < count:
                known[index] = None
        elif state is not None and index < count and partition.topic_id == state.topic_id:
            waiting.pop(index, None)
            known[index] = partition
        else:
            waiting[index] = partition
    if state is None:
        return None, waiting
    for index in tuple(waiting):
        if index < count and known[index] is None and waiting[index].topic_id == state.topic_id:
            known[index] = waiting.pop(index)
    partitions = tuple(partition for partition in known if partition is not None)
    if len(partitions) != count:
        missing = partition_key(name, known.index(None))
        raise MalformedMetadata(f"topic {name} has {count} partitions, but {missing} is missing or of another topic")
    return (
        TopicImage(name, state.topic_id, partitions, configs, state.revision),
        waiting,
    )
