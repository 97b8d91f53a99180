"""Decides what the metadata says again, when all that is left of a cluster are its brokers' data directories. Pure.

Each directory tells its node, and of each partition in it the topic's id, how far its log goes, and in which leader
epoch its last batch was written. From these:

- **Replicas** of a partition are the nodes in whose directories it is.
- **The leader** is the one whose last batch has the highest epoch and, among these, whose log goes farthest: it holds
  whatever was acknowledged by all that were in sync. (As an unclean election by KIP-966 chooses, from all at once.)
- **In sync** are those that agree with it in both, for their logs are the same (KIP-101). The others follow, and cut
  off what the leader does not have.
- **The leader epoch** is above any that there was: clients that have heard of one take no notice of an older one. One
  in which nothing was written leaves no trace in a directory. But each took a commit, so there were no more of them
  than the newest revision that a directory has followed (and some more within the last second).

A topic is taken whole or not at all. What no directory says is taken from a backup, where one is given: options of
topics with the same id, and of brokers. Without it each topic keeps all of its records until it is given its options
again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from odradek.broker.cluster.backup import EPOCHS_SKIPPED, Backup, decode_backup, encode_backup
from odradek.broker.cluster.features import ACLS, SUPPORTED
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    FEATURES_KEY,
    PRODUCER_IDS_KEY,
    KeyKind,
    NodeState,
    PartitionState,
    check_topic_name,
    colliding_name,
    decode_producer_ids,
    encode_cluster,
    encode_features,
    encode_producer_ids,
    node_key,
    parse_key,
)
from odradek.broker.cluster.secret_values import told_of
from odradek.broker.cluster.store import Entry, Snapshot
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.offline.adopt.directory import Found
from odradek.broker.offline.adopt.partition import PartitionFacts
from odradek.broker.offline.adopt.plan import KEEPS_EVERYTHING, topic_values, unused_producer_id
from odradek.protocol.codec.schema import uuid_from_text, uuid_text
from odradek.protocol.errors import KafkaError

EPOCH_MAX = 2**30
"""Epochs are numbers of 32 bits. Only the revision of an etcd that serves others, too, could become so large."""


class NotRebuildable(Exception):
    """The directories do not belong together; the text says which."""


class _NotTaken(Exception):
    """Why a topic cannot be taken."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A data directory, and what lies in it."""

    path: str
    known: MetaProperties
    recorded_revision: int
    found: Found


@dataclass(frozen=True, slots=True)
class Replica:
    """A partition in a directory."""

    node_id: int
    path: str
    facts: PartitionFacts

    @property
    def rank(self) -> tuple[int, int]:
        """What makes a leader, and what those in sync have in common: the last batch's epoch, and the log's end."""
        return self.facts.last_epoch, self.facts.log_end_offset


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as it will be."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    replicas: tuple[tuple[Replica, ...], ...]
    """Of each partition, the best first."""
    configs: Mapping[str, str]


@dataclass(slots=True)
class RebuildPlan:
    """What a rebuild does. `left` has topics and directories with the reason, `remarks` whole sentences."""

    cluster_id: str
    directories: Sequence[Directory]
    topics: list[FoundTopic] = field(default_factory=list[FoundTopic])
    left: dict[str, str] = field(default_factory=dict[str, str])
    remarks: list[str] = field(default_factory=list[str])
    values: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """All that the store will hold, in order of the keys."""

    @property
    def revision(self) -> int:
        """The newest metadata that any of the directories followed."""
        return max((each.recorded_revision for each in self.directories), default=0)


def make_plan(directories: Sequence[Directory], backup: Backup | None) -> RebuildPlan:
    """`backup`: one of the same cluster, for what no directory says. Raises NotRebuildable, MalformedMetadata."""
    plan = RebuildPlan(_one_cluster(directories, backup), directories)
    before = _image(backup)
    by_id: defaultdict[bytes, list[Replica]] = defaultdict(list)
    for directory in directories:
        for name, reason in directory.found.others.items():
            plan.left[f"{directory.path}/{name}"] = reason
        plan.remarks += [f"{directory.path}: {remark}" for remark in directory.found.remarks]
        for facts in directory.found.partitions:
            if facts.topic_id is None or facts.obstacles:
                plan.left[f"{directory.path}/{facts.name}"] = facts.obstacles[0]
            else:
                by_id[facts.topic_id].append(Replica(directory.known.node_id, directory.path, facts))
    for topic_id, replicas in sorted(by_id.items(), key=lambda each: each[1][0].facts.topic):
        name = replicas[0].facts.topic
        try:
            plan.topics.append(_topic(topic_id, replicas, before, plan.revision))
        except _NotTaken as reason:
            plan.left[f"{name} ({uuid_text(topic_id)})"] = str(reason)
    _part_those_alike(plan)
    _remark(plan, before, backup)
    plan.values = _values(plan, backup)
    return plan


def entries(plan: RebuildPlan, revision: int) -> dict[str, Entry]:
    """All that the store holds then, as of one revision."""
    return {key: Entry(value, revision) for key, value in plan.values.items()}


def as_backup(plan: RebuildPlan) -> Backup:
    """The same for a store, in which it may take several commits. The same directories give the same checksum, by which
    an interrupted one can be gone on with."""
    return decode_backup(encode_backup(Backup(plan.cluster_id, plan.revision, "rebuilt", plan.values)))


# ---------------------------------------------------------------------------------------------------- the directories
def _one_cluster(directories: Sequence[Directory], backup: Backup | None) -> str:
    """Raises NotRebuildable for directories that are not of one cluster, or that are copies of each other."""
    clusters = {each.known.cluster_id: each.path for each in directories}
    if len(clusters) > 1:
        told = ", ".join(f"{path} to {cluster_id}" for cluster_id, path in clusters.items())
        raise NotRebuildable(f"the directories belong to different clusters: {told}; give those of one")
    copies = [each for each, count in Counter(each.known.directory_id for each in directories).items() if count > 1]
    if copies:
        paths = " and ".join(each.path for each in directories if each.known.directory_id == copies[0])
        raise NotRebuildable(f"{paths} are one directory, or a copy of it: give it once")
    (cluster_id,) = clusters
    if backup is not None and backup.cluster_id != cluster_id:
        raise NotRebuildable(f"the backup is of cluster {backup.cluster_id}, the directories are of {cluster_id}")
    return cluster_id


def _image(backup: Backup | None) -> ClusterImage:
    if backup is None:
        return ClusterImage()
    values = {key: Entry(value, 1) for key, value in backup.values.items()}
    return ClusterImage.from_snapshot(Snapshot(1, values))


# ---------------------------------------------------------------------------------------------------------- the topics
def _topic(topic_id: bytes, replicas: Sequence[Replica], before: ClusterImage, revision: int) -> FoundTopic:
    """`revision`: the newest that was followed. Raises _NotTaken."""
    names = sorted({replica.facts.topic for replica in replicas})
    if len(names) > 1:
        raise _NotTaken(f"directories call it {' and '.join(names)}")
    try:
        check_topic_name(names[0])
    except KafkaError as error:
        raise _NotTaken(error.message) from error
    by_index: defaultdict[int, list[Replica]] = defaultdict(list)
    for replica in replicas:
        by_index[replica.facts.index].append(replica)
    known = before.topic_by_id(topic_id)
    count = max(max(by_index) + 1, 0 if known is None else len(known.partitions))
    missing = [str(index) for index in range(count) if index not in by_index]
    if missing:
        raise _NotTaken(
            f"of its {count} partitions no directory has {', '.join(missing)}: give the directories of all brokers"
        )
    ranked = tuple(_ranked(names[0], index, by_index[index]) for index in range(count))
    states = tuple(_state(topic_id, each, revision) for each in ranked)
    configs = KEEPS_EVERYTHING if known is None else known.configs
    return FoundTopic(names[0], topic_id, states, ranked, configs)


def _ranked(topic: str, index: int, replicas: Sequence[Replica]) -> tuple[Replica, ...]:
    """The replicas of a partition, the best first. Raises _NotTaken."""
    twice = [node_id for node_id, count in Counter(each.node_id for each in replicas).items() if count > 1]
    if twice:
        paths = " and ".join(each.path for each in replicas if each.node_id == twice[0])
        raise _NotTaken(f"node {twice[0]} has {topic}-{index} twice, in {paths}: move one of the two away")
    return tuple(sorted(replicas, key=lambda each: (-each.rank[0], -each.rank[1], each.node_id)))


def _state(topic_id: bytes, ranked: Sequence[Replica], revision: int) -> PartitionState:
    leader = ranked[0]
    latest = max(0, *(each.facts.leader_epoch for each in ranked))
    return PartitionState(
        topic_id,
        tuple(each.node_id for each in ranked),
        tuple(each.node_id for each in ranked if each.rank == leader.rank),
        leader.node_id,
        leader_epoch=latest + EPOCHS_SKIPPED + (revision if latest + revision <= EPOCH_MAX else 0),
    )


def _part_those_alike(plan: RebuildPlan) -> None:
    """Topics that cannot stand beside one another are left, all of them: which one is meant, nobody here can tell."""
    names = Counter(colliding_name(topic.name) for topic in plan.topics)
    alike = [topic for topic in plan.topics if names[colliding_name(topic.name)] > 1]
    for topic in alike:
        plan.left[f"{topic.name} ({uuid_text(topic.topic_id)})"] = (
            "another topic has this name, or one that differs in '.' and '_' only: move the directories of the one "
            "that was deleted away"
        )
    plan.topics = [topic for topic in plan.topics if topic not in alike]


# --------------------------------------------------------------------------------------------------- what else is known
def _remark(plan: RebuildPlan, before: ClusterImage, backup: Backup | None) -> None:
    for topic in plan.topics:
        most = max(len(each) for each in topic.replicas)
        for index, replicas in enumerate(topic.replicas):
            name = f"{topic.name}-{index}"
            plan.remarks += [f"{each.path}/{name}: {text}" for each in replicas for text in each.facts.remarks]
            if len(replicas) < most:
                plan.remarks.append(f"{name} has {len(replicas)} replica(s), other partitions of its topic {most}")
            log_start = max(_log_starts(plan, name))
            if log_start > replicas[0].facts.log_end_offset:
                plan.remarks.append(f"{name}: its log ends before offset {log_start}, up to which records were deleted")
    unknown = [topic.name for topic in plan.topics if before.topic_by_id(topic.topic_id) is None]
    if unknown:
        plan.remarks.append(
            f"the options of {', '.join(unknown)} are lost: each gets retention.ms=-1, which keeps all of its records, "
            "and else the defaults; give each its own with `odradek configs set`"
        )
    if backup is None:
        plan.remarks.append(
            "the options that were set for brokers and groups are lost; a backup, if there is one, has them"
        )
        plan.remarks.append(
            "ACLs are lost, too: with an authorizer nobody but super users may do anything before they are given again"
        )
        return
    taken = {topic.topic_id for topic in plan.topics}
    absent = [topic.name for topic in before.topics.values() if topic.topic_id not in taken]
    if absent:
        plan.remarks.append(f"the backup has topics that are not taken: {', '.join(sorted(absent))}")
    plan.remarks += told_of(backup.left_out)


def _log_starts(plan: RebuildPlan, name: str) -> Iterable[int]:
    topic, _, index = name.rpartition("-")
    return [each.found.log_starts.get((topic, int(index)), 0) for each in plan.directories]


def _values(plan: RebuildPlan, backup: Backup | None) -> dict[str, bytes]:
    values = {CLUSTER_KEY: encode_cluster(plan.cluster_id), PRODUCER_IDS_KEY: _producer_ids(plan, backup)}
    # Whatever was refused before: where an authorizer is set, nothing may be allowed meanwhile.
    values[FEATURES_KEY] = encode_features({ACLS: SUPPORTED[ACLS]})
    if backup is not None:
        kept = (KeyKind.BROKER_CONFIG, KeyKind.GROUP_CONFIG, KeyKind.NODE, KeyKind.ACL)
        values |= {key: value for key, value in backup.values.items() if parse_key(key)[0] in kept}
    directory_ids: defaultdict[int, list[bytes]] = defaultdict(list)
    for each in plan.directories:
        directory_ids[each.known.node_id].append(uuid_from_text(each.known.directory_id))
    for node_id, ids in directory_ids.items():
        values[node_key(node_id)] = NodeState(tuple(ids)).encode()
    for topic in plan.topics:
        values |= topic_values(topic.name, topic.topic_id, topic.partitions, topic.configs)
    return {key: values[key] for key in sorted(values)}


def _producer_ids(plan: RebuildPlan, backup: Backup | None) -> bytes:
    """The next id, behind all that were given (as an adoption has it)."""
    found = [facts.producer_id for each in plan.directories for facts in each.found.partitions]
    first = max(found, default=-1) + 1
    if backup is not None and (value := backup.values.get(PRODUCER_IDS_KEY)) is not None:
        first = max(first, decode_producer_ids(value))
    return encode_producer_ids(unused_producer_id(first))
