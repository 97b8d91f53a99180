"""What operators do to a cluster under load, with a process struck in the middle of it.

Each is a fault as those of process_faults.py: it returns when the operator's change is complete and every process runs
again. What the change's answer promises is asserted here; whether records were lost, the round finds out.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigChange, ConfigResource
from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.client_errors import BrokerError
from odradek.client.fetching.list_offsets import EARLIEST
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.testing.sim.checking.cluster_history import RecordsDeleted
from processes.odradek_broker import OdradekBroker
from tests.cluster.client_session import now_ms
from tests.cluster.process_faults import AWAY_S
from tests.cluster.real_cluster import ASSIGNMENTS, NODES, TOPIC, RealCluster, is_whole, node_id, partitions_in
from tests.cluster.rounds import Fault, Story, lasts

T = TypeVar("T")
PARTITIONS: Final = tuple(TopicPartition(TOPIC, index) for index in range(len(ASSIGNMENTS)))
HOME: Final[Mapping[TopicPartition, Sequence[int]]] = dict(zip(PARTITIONS, ASSIGNMENTS, strict=True))


def asked(cluster: RealCluster, call: Callable[[Admin], Awaitable[T]]) -> T:
    """What an operator's call answers. Raises ClientError."""

    async def ask() -> T:
        async with Admin(cluster.bootstrap.split(","), client_id="operator") as admin:
            return await call(admin)

    return asyncio.run(ask())


def deleted_then_killed(story: Story) -> Fault:
    """Records that every reader has been given are deleted, and a leader is killed with the answer: they stay away."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        before = _read_by_all(story)
        cluster.happened("operator", "", f"deletes records before {before}")
        cluster.deletions += [
            RecordsDeleted(now_ms(), each.topic, each.partition, offset) for each, offset in before.items()
        ]
        broker = cluster.who("leader")
        answered = asked(cluster, lambda admin: admin.delete_records(before))
        cluster.happened("process crash", broker.name, "leader")
        broker.kill()
        assert all(answered[each] >= offset for each, offset in before.items())
        _check_starts(cluster, before)
        _back(cluster, broker, rng)
        cluster.wait_until_whole()
        asked(cluster, lambda admin: admin.elect_leaders(PARTITIONS))
        _check_starts(cluster, before)

    return fault


def moved_without_successor(story: Story) -> Fault:
    """Partitions are to leave a broker that is in sync for one that is down: until that one is back they stay where
    they are, and acks=all goes on."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        away, leaving = rng.sample(NODES, 2)
        broker = cluster.brokers[away - 1]
        cluster.happened("process crash", broker.name)
        broker.kill()
        cluster.wait_until(lambda: all(away not in isr and len(isr) == len(NODES) - 1 for isr in cluster.in_sync()))
        target = {
            each: [*(node for node in replicas if node not in (leaving, away)), away] for each, replicas in HOME.items()
        }
        _reassign(cluster, target)
        story.clients.wait_for_progress(50)
        assert all(leaving in isr for isr in cluster.in_sync()), "it is needed as long as its successor is away"
        cluster.happened("start", broker.name)
        broker.start()
        _wait_until_moved(cluster, target)
        _reassign(cluster, HOME)
        _wait_until_moved(cluster, HOME)

    return fault


def moved_and_killed(cluster: RealCluster, rng: random.Random) -> None:
    """Partitions are reassigned to two of their brokers and back to three; a leader is killed during each move."""
    leaving = rng.choice(NODES)
    smaller = {each: [node for node in replicas if node != leaving] for each, replicas in HOME.items()}
    for target in (smaller, HOME):
        broker = cluster.who("leader")
        _reassign(cluster, target)
        cluster.happened("process crash", broker.name, "leader")
        broker.kill()
        _back(cluster, broker, rng)
        _wait_until_moved(cluster, target)


def cancelled(cluster: RealCluster, rng: random.Random) -> None:
    """A move to a broker that has lost its replicas is begun and cancelled, while a leader is killed."""
    leaving = rng.choice(NODES)
    smaller = {each: [node for node in replicas if node != leaving] for each, replicas in HOME.items()}
    _reassign(cluster, smaller)
    _wait_until_moved(cluster, smaller)
    broker = cluster.who("leader")
    _reassign(cluster, HOME)
    cluster.happened("process crash", broker.name, "leader")
    broker.kill()
    under_way = asked(cluster, lambda admin: admin.list_partition_reassignments(PARTITIONS))
    refused = _cancel(cluster, under_way)
    # Only one of the two original replicas of such a partition is there, and an added one is in sync (decision 011).
    assert all(node_id(broker) in smaller[each] for each in refused), (broker.name, refused, smaller)
    _back(cluster, broker, rng)
    cluster.wait_until(lambda: not _cancel(cluster, refused))  # both are in sync again
    _reassign(cluster, HOME)
    _wait_until_moved(cluster, HOME)


def preferred_elected(cluster: RealCluster, rng: random.Random) -> None:
    """Preferred leaders are elected again and again while a leader is killed and comes back."""
    broker = cluster.who("leader")
    cluster.happened("process crash", broker.name, "leader")
    broker.kill()
    for _ in range(3):
        _elect_preferred(cluster)
        lasts(rng.choice(AWAY_S) / 4)
    cluster.happened("start", broker.name)
    broker.start()
    cluster.wait_until_whole()
    _elect_preferred(cluster)
    cluster.wait_until(lambda: cluster.leaders() == [replicas[0] for replicas in ASSIGNMENTS])


def created_while_away(cluster: RealCluster, rng: random.Random) -> None:
    """A topic with three replicas is created while one of three brokers is down, which gets its replica later."""
    broker = rng.choice(cluster.brokers)
    cluster.happened("clean stop", broker.name)
    broker.stop()
    name = f"created-while-{node_id(broker)}-was-away-{int(now_ms())}"
    cluster.happened("operator", "", f"creates {name}")
    asked(cluster, lambda admin: admin.create_topic(name, partitions=3, replication_factor=len(NODES)))
    _back(cluster, broker, rng)
    cluster.wait_until(lambda: is_whole(cluster.answers(name)))
    cluster.happened("operator", "", f"deletes {name}")
    asked(cluster, lambda admin: admin.delete_topic(name))


def minimum_altered(story: Story) -> Fault:
    """`min.insync.replicas` is raised to three, a follower goes, and the minimum is lowered again."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        _set_minimum(cluster, 3)
        broker = cluster.who("follower")
        cluster.happened("process crash", broker.name, "follower")
        broker.kill()
        lasts(rng.choice(AWAY_S))
        _set_minimum(cluster, 2)
        story.clients.wait_for_progress(50)
        cluster.happened("start", broker.name)
        broker.start()

    return fault


# -- their parts ------------------------------------------------------------------------------------------------------


def _read_by_all(story: Story) -> dict[TopicPartition, int]:
    """Of each partition the offset before which every reader has been given everything."""
    story.clients.look()
    found: dict[TopicPartition, int] = {}
    for each in PARTITIONS:
        positions = [
            max(
                (
                    poll.records[-1][0] + 1
                    for poll in reader.polls()
                    if poll.records and (poll.topic, poll.partition) == each
                ),
                default=0,
            )
            for reader in story.clients.readers
        ]
        found[each] = min(positions)
    return found


def _check_starts(cluster: RealCluster, before: Mapping[TopicPartition, int]) -> None:
    """Raises AssertionError for records that were deleted, and are there."""
    starts = asked(cluster, lambda admin: admin.list_offsets(dict.fromkeys(before, EARLIEST)))
    back = {each: (starts[each].offset, offset) for each, offset in before.items() if starts[each].offset < offset}
    assert not back, f"deleted records are there again (log start, deleted before): {back}"


def _reassign(cluster: RealCluster, target: Mapping[TopicPartition, Sequence[int]]) -> None:
    cluster.happened("operator", "", f"reassigns to {list(target.values())}")
    asked(cluster, lambda admin: admin.alter_partition_reassignments(target))


def _wait_until_moved(cluster: RealCluster, target: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Until each broker that answers names the target's replicas and no others, all in sync."""
    wanted = [sorted(replicas) for replicas in target.values()]

    def is_moved() -> bool:
        answers = cluster.answers()
        return bool(answers) and all(
            [sorted(each.replica_nodes) for each in partitions_in(answer).values()] == wanted
            and [sorted(each.isr_nodes) for each in partitions_in(answer).values()] == wanted
            for answer in answers
        )

    cluster.wait_until(is_moved)


def _cancel(cluster: RealCluster, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Of which partitions it is refused, for it would take copies away that the minimum counts on. A reassignment that
    has completed meanwhile is no error."""
    targets = dict.fromkeys(partitions)
    if not targets:
        return []
    cluster.happened("operator", "", f"cancels the reassignments of {[*targets]}")
    refused = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    codes = _asked_but_for(
        cluster,
        lambda admin: admin.alter_partition_reassignments(targets),
        *(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, refused),
    )
    return [each for each, code in codes.items() if code is refused]


def _elect_preferred(cluster: RealCluster) -> None:
    """Where the preferred leader is not in sync, the present one stays, and the answer says so."""
    cluster.happened("operator", "", "elects preferred leaders")
    _asked_but_for(cluster, lambda admin: admin.elect_leaders(PARTITIONS), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


def _asked_but_for(
    cluster: RealCluster, call: Callable[[Admin], Awaitable[object]], *codes: ErrorCode
) -> dict[Any, ErrorCode | None]:
    """Asks, and returns which items failed by one of these errors. Raises ItemsFailed for any other."""
    try:
        asked(cluster, call)
    except ItemsFailed as failed:
        found = {each: error.code for each, error in failed.errors.items() if isinstance(error, BrokerError)}
        if found.keys() != failed.errors.keys() or not {*found.values()} <= {*codes}:
            raise
        return found
    return {}


def _set_minimum(cluster: RealCluster, count: int) -> None:
    cluster.happened("operator", "", f"sets min.insync.replicas={count}")
    change = {ConfigResource.topic(TOPIC): [ConfigChange.set("min.insync.replicas", str(count))]}
    asked(cluster, lambda admin: admin.alter_configs(change))


def _back(cluster: RealCluster, broker: OdradekBroker, rng: random.Random) -> None:
    lasts(rng.choice(AWAY_S))
    cluster.happened("start", broker.name)
    broker.start()
