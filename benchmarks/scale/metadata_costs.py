"""What the metadata of a large cluster costs, in this process: bytes, memory and time, for so many partitions.

A cluster of 100 brokers and topics of 30 partitions with three replicas is made up, as the store would hold it.
Measured are its bytes there, the image that each broker makes of it, what one commit of a hundred partitions does to
that image, the controller's look at all partitions, what is to be written after a broker is lost, and what a follower's
first fetch of its share says. It is all work of the interpreter, and times are CPU times.
"""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time
from typing import TypeVar

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    BrokerState,
    PartitionState,
    TopicState,
    broker_key,
    partition_key,
    topic_key,
)
from odradek.broker.cluster.partition_changes import changed
from odradek.broker.cluster.partition_writes import PartitionWrite, commits
from odradek.broker.cluster.store import OPERATIONS_MAX, Change, Entry, Event, Snapshot, Txn
from odradek.broker.controller.decisions import decided
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

BROKERS = 100
PARTITIONS_PER_TOPIC = 30
REPLICAS = 3
MIN_INSYNC = 2
ENDPOINTS = {"PLAINTEXT": ("broker-17.example.org", 9092)}
LOST = 17
"""The broker that is gone."""
FETCH_VERSION = 17

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class MetadataCosts:
    """Of a cluster with `partitions`. Seconds are CPU time of one process; bytes in the store are those of keys and
    values."""

    partitions: int
    stored_bytes: int
    image_bytes: int
    """What Python allocates for the image, beyond the values of the store."""
    image_s: float
    """Building it, at a start."""
    change_s: float
    """Applying one commit of `OPERATIONS_MAX` partitions of different topics."""
    look_s: float
    """The controller's look at all partitions, when nothing is to be decided."""
    lost_s: float
    """The same when a broker is gone, with the values that are to be written."""
    lost_partitions: int
    """Of them, those that change for it."""
    lost_commits: int
    fetch_bytes: int
    """The first fetch of one follower that follows a share of the partitions at one leader."""
    fetch_partitions: int
    fetch_s: float
    """Encoding and decoding it."""


def metadata_costs(partitions: int) -> MetadataCosts:
    """`partitions` is rounded to whole topics."""
    snapshot = made_up(partitions)
    image_bytes, image_s, image = built(snapshot)
    partitions = image.partition_count
    change = change_of(image)
    change_s, _ = timed(lambda: image.apply(change))
    look_s, writes = timed(lambda: decisions(image))
    assert not writes, "nothing is to be decided"
    without_one, _delta = image.apply(Change(image.revision + 1, (Event(broker_key(LOST), None),)))
    lost_s, lost = timed(lambda: written(without_one))
    request, encoded = first_fetch(image, leader=1, follower=2)
    fetch_s, _ = timed(lambda: decode(FetchRequest, FETCH_VERSION, encode(request, FETCH_VERSION)))
    return MetadataCosts(
        partitions=partitions,
        stored_bytes=sum(len(key) + len(entry.value) for key, entry in snapshot.entries.items()),
        image_bytes=image_bytes,
        image_s=image_s,
        change_s=change_s,
        look_s=look_s,
        lost_s=lost_s,
        lost_partitions=sum(len(txn.put) for txn in lost),
        lost_commits=len(lost),
        fetch_bytes=len(encoded),
        fetch_partitions=sum(len(topic.partitions) for topic in request.topics),
        fetch_s=fetch_s,
    )


def timed(run: Callable[[], R]) -> tuple[float, R]:
    """CPU seconds of the second of two runs, and what it gave."""
    run()
    began = process_time()
    result = run()
    return process_time() - began, result


def made_up(partitions: int) -> Snapshot:
    """The store of such a cluster: everything at revision 1 but the brokers, who came before."""
    entries = {
        broker_key(broker_id): Entry(BrokerState(broker_id, ENDPOINTS).encode(), 1) for broker_id in range(BROKERS)
    }
    for number in range(partitions // PARTITIONS_PER_TOPIC):
        name, topic_id = f"topic-{number:06}", number.to_bytes(16, "big")
        entries[topic_key(name)] = Entry(TopicState(topic_id, PARTITIONS_PER_TOPIC, REPLICAS).encode(), 2)
        for index in range(PARTITIONS_PER_TOPIC):
            replicas = replicas_of(number * PARTITIONS_PER_TOPIC + index)
            state = PartitionState(topic_id, replicas, replicas, replicas[0])
            entries[partition_key(name, index)] = Entry(state.encode(), 2)
    return Snapshot(2, entries)


def replicas_of(number: int) -> tuple[int, ...]:
    """Spread evenly: every broker leads as much as any other, and follows each of its peers."""
    first = number % BROKERS
    step = 1 + number // BROKERS % (BROKERS // REPLICAS)
    return tuple((first + replica * step) % BROKERS for replica in range(REPLICAS))


def built(snapshot: Snapshot) -> tuple[int, float, ClusterImage]:
    """The bytes and the seconds that the image takes. Memory is traced in a run of its own: that is slow."""
    seconds, _ = timed(lambda: ClusterImage.from_snapshot(snapshot))
    tracemalloc.start()
    try:
        image = ClusterImage.from_snapshot(snapshot)
        size_bytes, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return size_bytes, seconds, image


def change_of(image: ClusterImage) -> Change:
    """A commit of as many partitions as one takes, each of another topic."""
    events: list[Event] = []
    for topic in list(image.topics.values())[:OPERATIONS_MAX]:
        state = topic.partitions[0]
        after = changed(state, replace(state, leader=state.replicas[1]))
        events.append(Event(partition_key(topic.name, 0), after.encode()))
    return Change(image.revision + 1, tuple(events))


def decisions(image: ClusterImage) -> list[PartitionWrite]:
    """What a controller that was just elected decides."""
    return [
        PartitionWrite(partition_key(topic.name, index), before, after)
        for topic in image.topics.values()
        for index, before in enumerate(topic.partitions)
        if (after := decided(before, image, MIN_INSYNC, unclean=False)) is not before
    ]


def written(image: ClusterImage) -> list[Txn]:
    """The commits that it makes of that."""
    return list(commits(decisions(image), image, {"/controller": 1}))


def first_fetch(image: ClusterImage, leader: int, follower: int) -> tuple[FetchRequest, bytes]:
    """What begins a new session: it names all that the one follows at the other."""
    topics: list[FetchTopic] = []
    for topic in image.topics.values():
        wanted = [
            FetchPartition(
                partition=index,
                current_leader_epoch=state.leader_epoch,
                fetch_offset=0,
                last_fetched_epoch=-1,
                log_start_offset=0,
                partition_max_bytes=1 << 20,
            )
            for index, state in enumerate(topic.partitions)
            if state.leader == leader and follower in state.replicas
        ]
        if wanted:
            topics.append(FetchTopic(topic_id=topic.topic_id, partitions=wanted))
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=follower, replica_epoch=1),
        max_wait_ms=500,
        min_bytes=1,
        session_id=0,
        session_epoch=0,
        topics=topics,
    )
    return request, bytes(encode(request, FETCH_VERSION))
