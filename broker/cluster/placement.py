"""Which brokers hold the replicas of a new partition, and whether a placement made by hand is possible. Pure.

Placement goes round robin, as Kafka's does (StripedReplicaPlacer, and AdminUtils before it), with the same aims in the
same order: replicas of a partition on different brokers (always); on different racks (as far as there are racks);
each broker as often the preferred leader as any other; followers of one leader spread over all brokers, so that its
load is spread when it fails. A fenced broker, one that is registered and not there, never becomes the first replica. It
becomes another one where only so the replicas are on different racks, for a placement outlives what fences a broker, or
are enough. `start` and `shift` rotate the picture, chosen at random by the caller, so that topics of one partition do
not all land on the first broker.

Errors are Kafka's, in Kafka's words.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from odradek.protocol.errors import ErrorCode, KafkaError

PARTITIONS_PER_REQUEST_MAX = 10_000
"""Kafka creates at most 10,000 metadata records per request, one per partition."""

Assignment = tuple[int, ...]
"""Broker ids of one partition's replicas, the preferred leader first."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A registered broker, which may be given replicas."""

    broker_id: int
    rack: str | None = None
    is_fenced: bool = False


def check_counts(partition_count: int, replication_factor: int) -> None:
    """For a new topic, defaults filled in. Raises KafkaError INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION."""
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partition_count <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    check_partitions_per_request(partition_count)


def check_partitions_per_request(count: int) -> None:
    """Raises KafkaError POLICY_VIOLATION."""
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {count}, at most {PARTITIONS_PER_REQUEST_MAX}.",
        )


def check_increase(topic: str, present_count: int, total_count: int) -> None:
    """For CreatePartitions. Raises KafkaError INVALID_PARTITIONS."""
    if total_count == present_count:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present_count} partition(s).")
    if total_count < present_count:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic} currently has {present_count} partition(s); {total_count} would not be an increase.",
        )


def place(
    partition_count: int, replication_factor: int, brokers: Collection[UsableBroker], start: int = 0, shift: int = 0
) -> tuple[Assignment, ...]:
    """Replicas for `partition_count` new partitions. `start` and `shift` may be any numbers from zero.

    Raises KafkaError INVALID_REPLICATION_FACTOR when there are too few brokers, or all are fenced.
    """
    unfenced = _interleave_racks([broker for broker in brokers if not broker.is_fenced])
    fenced = _interleave_racks([broker for broker in brokers if broker.is_fenced])
    if not unfenced:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered.",
        )
    count = len(unfenced)
    assignments: list[Assignment] = []
    for index in range(partition_count):
        first = (start + index) % count
        # The others, beginning behind the leader, one further each time that every broker has led once.
        others = _rotate([*unfenced[first + 1 :], *unfenced[:first]], shift + index // count)
        spare = _rotate(fenced, shift + index)
        assignments.append(_choose(unfenced[first], [*others, *spare], replication_factor))
    return tuple(assignments)


def widened(
    present: Sequence[Assignment], replication_factor: int, brokers: Collection[UsableBroker]
) -> tuple[Assignment, ...]:
    """The replicas of partitions that are there, each with as many more as it lacks and as there are brokers for.

    What is there stays. Each time the broker is added whose rack the partition uses least, one that is there before one
    that is not, and that holds the fewest replicas of these partitions. Where replicas are added, the one comes first,
    to be the preferred leader, whose broker is that of the fewest partitions, and is there.
    """
    loads = {broker.broker_id: 0 for broker in brokers}
    racks = {broker.broker_id: broker.rack for broker in brokers}
    for replicas in present:
        for broker_id in replicas:
            loads[broker_id] = loads.get(broker_id, 0) + 1
    after: list[Assignment] = []
    for replicas in present:
        chosen = list(replicas)
        while len(chosen) < replication_factor:
            others = [broker for broker in brokers if broker.broker_id not in chosen]
            if not others:
                break
            used = [racks.get(broker_id) for broker_id in chosen]
            best = min(
                others,
                key=lambda each: (used.count(each.rack), each.is_fenced, loads[each.broker_id], each.broker_id),
            )
            loads[best.broker_id] += 1
            chosen.append(best.broker_id)
        after.append(tuple(chosen))
    return _leads_spread(present, after, {broker.broker_id for broker in brokers if not broker.is_fenced})


def _leads_spread(
    present: Sequence[Assignment], after: Sequence[Assignment], unfenced: Collection[int]
) -> tuple[Assignment, ...]:
    leads = Counter(replicas[0] for before, replicas in zip(present, after, strict=True) if before == replicas)
    spread: list[Assignment] = []
    for before, replicas in zip(present, after, strict=True):
        if before != replicas:
            able = [broker_id for broker_id in replicas if broker_id in unfenced] or replicas
            first = min(able, key=lambda broker_id: leads[broker_id])
            leads[first] += 1
            replicas = (first, *(broker_id for broker_id in replicas if broker_id != first))
        spread.append(replicas)
    return tuple(spread)


def _choose(leader: UsableBroker, others: list[UsableBroker], replication_factor: int) -> Assignment:
    """The leader, then each time the first broker of the rack used least, unfenced ones before fenced ones."""
    chosen = [leader]
    racks = {leader.rack: 1}
    while len(chosen) < replication_factor:
        best = min(others, key=lambda broker: (racks.get(broker.rack, 0), broker.is_fenced))
        others.remove(best)
        chosen.append(best)
        racks[best.rack] = racks.get(best.rack, 0) + 1
    return tuple(broker.broker_id for broker in chosen)


def _interleave_racks(brokers: Sequence[UsableBroker]) -> list[UsableBroker]:
    """One broker of each rack in turn: neighbours in the list are on different racks as far as possible."""
    racks: dict[str, list[UsableBroker]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.broker_id):
        racks.setdefault(broker.rack or "", []).append(broker)
    queues = [racks[rack] for rack in sorted(racks)]
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _rotate(brokers: Sequence[UsableBroker], by: int) -> list[UsableBroker]:
    if not brokers:
        return []
    by %= len(brokers)
    return [*brokers[by:], *brokers[:by]]


def check_new_topic_assignments(
    assignments: Mapping[int, Sequence[int]], broker_ids: Collection[int]
) -> tuple[Assignment, ...]:
    """Replicas given by hand for a new topic, by partition index. Raises KafkaError INVALID_REPLICA_ASSIGNMENT,
    POLICY_VIOLATION."""
    if sorted(assignments) != list(range(len(assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    check_partitions_per_request(len(assignments))
    checked: list[Assignment] = []
    for index in range(len(assignments)):
        replicas = assignments[index]
        _check_replicas(replicas, broker_ids)
        if checked and len(replicas) != len(checked[0]):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
                f"not consistent with previous partitions, which have {len(checked[0])} replica(s).",
            )
        checked.append(tuple(replicas))
    return tuple(checked)


def check_added_assignments(
    assignments: Sequence[Sequence[int]], added_count: int, replication_factor: int, broker_ids: Collection[int]
) -> tuple[Assignment, ...]:
    """Replicas given by hand for partitions added to a topic. Raises KafkaError INVALID_REPLICA_ASSIGNMENT."""
    if len(assignments) != added_count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {added_count} additional partition(s), "
            f"but only {len(assignments)} assignment(s) were specified.",
        )
    for replicas in assignments:
        _check_replicas(replicas, broker_ids)
        if len(replicas) != replication_factor:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
                f"not consistent with previous partitions, which have {replication_factor} replica(s).",
            )
    return tuple(tuple(replicas) for replicas in assignments)


def _check_replicas(replicas: Sequence[int], broker_ids: Collection[int]) -> None:
    if not replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
        )
    seen: set[int] = set()
    for broker_id in replicas:
        if broker_id not in broker_ids:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
            )
        if broker_id in seen:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes the broker {broker_id} more than once.",
            )
        seen.add(broker_id)
