"""`odradek cluster status`: whether all is well with a cluster, and what is not.

On a terminal two tables: the brokers, and those partitions that lack something. In a pipe each line begins with what it
is about: `cluster`, `broker` or `partition`.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Target, json_option, on_target
from odradek.client.commands.output import Cell, print_json, print_line, print_table

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.cluster import BrokerDescription, ClusterDescription
    from odradek.client.admin.health import PartitionHealth
    from odradek.client.admin.replication import Reassignment
    from odradek.client.admin.topics import TopicDescription
    from odradek.client.commands.several import Failures
    from odradek.client.topic_partition import TopicPartition

UP: Final = "up"
FENCED: Final = "fenced"
MISSING: Final = "missing"
"""Partitions have replicas on it, and the cluster does not list it."""
BROKER_COLUMNS: Final = ("BROKER", "STATE", "HOST", "PORT", "RACK", "CONTROLLER", "LEADS", "REPLICAS", "IN SYNC")
PARTITION_COLUMNS: Final = ("TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OSR", "ELR", "WHAT IS WRONG")


@click.group(epilog=EXIT_CODES_HELP)
def cluster() -> None:
    """Run a cluster; show, save, restore and rebuild its state."""


@dataclass(frozen=True, slots=True)
class Status:
    """What was found."""

    described: "ClusterDescription"
    controller_id: int
    controller_epoch: int
    """-1 where the brokers do not tell it."""
    topics: "Mapping[str, TopicDescription]"
    reassignments: "Mapping[TopicPartition, Reassignment]"
    partitions: "Sequence[PartitionHealth]"

    @property
    def unwell(self) -> "list[PartitionHealth]":
        return [each for each in self.partitions if not each.is_well]


@cluster.command("status", epilog=EXIT_CODES_HELP)
@click.option("--check", is_flag=True, help="End with 1 if a broker is not there, or a partition lacks something.")
@json_option
@on_target
async def status(target: Target, check: bool, as_json: bool) -> None:
    """Show the brokers, the controller, and the partitions that are not well.

    Those are offline (no leader), under-replicated (a replica is not in sync), or under-min-isr (fewer are in sync than
    min.insync.replicas, so that acks=all is refused). A replica that a reassignment adds is not missed.
    """
    from odradek.client.commands.several import Failures
    from odradek.client.errors.client_errors import UnknownTopic

    failures = Failures(but=UnknownTopic)  # a topic that was deleted since all were listed
    async with target.admin() as admin:
        found = await _look(admin, failures)
    brokers = _brokers(found)
    if as_json:
        print_json(_as_json(found, brokers))
    elif sys.stdout.isatty():
        _print_tables(found, brokers)
    else:
        print_table((), [("cluster", *_summary(found)), *(("broker", *row) for row in _broker_rows(brokers, found))])
        print_table((), [("partition", *row) for row in map(_partition_row, found.unwell)])
    failures.tell()
    absent = [str(each["node_id"]) for each in brokers if each["state"] != UP]
    if check and (absent or found.unwell):
        what = [f"{len(found.unwell)} partition(s) are not well"] if found.unwell else []
        what += [f"broker(s) {', '.join(absent)} are not there"] if absent else []
        raise CommandFailed(f"The cluster is not well: {'; '.join(what)}.")


async def _look(admin: "Admin", failures: "Failures") -> Status:
    """What cannot be asked of the controller, while there is none, does not hide the rest."""
    import asyncio

    from odradek.client.admin.configs import ConfigEntry, ConfigResource
    from odradek.client.admin.health import MIN_INSYNC, out_of_sync, partition_healths

    described = await admin.describe_cluster(include_fenced=True)
    names = [topic.name for topic in await admin.list_topics(include_internal=True)]
    (controller_id, controller_epoch), reassignments, topics = await asyncio.gather(
        _controller(admin, described.controller_id, failures),
        _reassignments(admin, failures),
        failures.or_results(admin.describe_topics(names, eligible_leaders=True)),
    )
    lacking = [ConfigResource.topic(name) for name in out_of_sync(topics.values())]
    configs: Mapping[ConfigResource, Mapping[str, ConfigEntry]] = {}
    if lacking:
        configs = await failures.or_results(admin.describe_configs(lacking, [MIN_INSYNC]))
    min_insync = {
        resource.name: int(entries[MIN_INSYNC].value or 1)
        for resource, entries in configs.items()
        if MIN_INSYNC in entries
    }
    healths = partition_healths(topics.values(), reassignments, min_insync)
    return Status(described, controller_id, controller_epoch, topics, reassignments, healths)


async def _controller(admin: "Admin", named: int, failures: "Failures") -> tuple[int, int]:
    """The active controller and its epoch. `named`: a broker that takes requests for it, which all brokers can name."""
    from odradek.client.errors.client_errors import UnsupportedVersion

    async def asked() -> Mapping[str, tuple[int, int]]:
        try:
            quorum = await admin.describe_quorum()
        except UnsupportedVersion:
            return {"": (named, -1)}
        return {"": (quorum.leader_id, quorum.leader_epoch)}

    return (await failures.or_results(asked())).get("", (named, -1))


async def _reassignments(admin: "Admin", failures: "Failures") -> "Mapping[TopicPartition, Reassignment]":
    from odradek.client.errors.client_errors import UnsupportedVersion

    async def asked() -> "Mapping[TopicPartition, Reassignment]":
        try:
            return await admin.list_partition_reassignments()
        except UnsupportedVersion:  # before Kafka 2.4 they were kept elsewhere
            return {}

    return await failures.or_results(asked())


# ---------------------------------------------------------------------------------------------------- what is printed
def _brokers(found: Status) -> list[dict[str, Cell]]:
    """Each broker with what it has: those that the cluster lists, and those that only partitions name."""
    leads: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    for each in found.partitions:
        leads[each.state.leader] += 1
        replicas.update(each.state.replicas)
        in_sync.update(each.state.isr)
    listed: dict[int, BrokerDescription | None] = dict.fromkeys(replicas)
    listed |= {broker.node_id: broker for broker in found.described.brokers}
    return [
        {
            "node_id": node_id,
            "state": MISSING if broker is None else FENCED if broker.is_fenced else UP,
            "host": None if broker is None else broker.host,
            "port": None if broker is None else broker.port,
            "rack": None if broker is None else broker.rack,
            "leads": leads[node_id],
            "replicas": replicas[node_id],
            "in_sync": in_sync[node_id],
        }
        for node_id, broker in sorted(listed.items())
    ]


def _broker_rows(brokers: list[dict[str, Cell]], found: Status) -> list[tuple[Cell, ...]]:
    return [
        (
            each["node_id"], each["state"], each["host"], each["port"], each["rack"],
            each["node_id"] == found.controller_id, each["leads"], each["replicas"], each["in_sync"],
        )
        for each in brokers
    ]  # fmt: skip


def _partition_row(health: "PartitionHealth") -> tuple[Cell, ...]:
    from odradek.client.commands.replicas import broker_ids

    state = health.state
    return (
        health.partition.topic, health.partition.partition, state.leader if state.leader >= 0 else None,
        state.leader_epoch if state.leader_epoch >= 0 else None, broker_ids(state.replicas), broker_ids(state.isr),
        broker_ids(state.out_of_sync), broker_ids(state.eligible_leaders), ", ".join(_problems(health)),
    )  # fmt: skip


def _problems(health: "PartitionHealth") -> list[str]:
    return [
        problem
        for problem, is_so in (
            ("offline", health.is_offline),
            ("under-replicated", health.is_under_replicated),
            ("under-min-isr", health.is_under_min_isr),
        )
        if is_so
    ]


def _summary(found: Status) -> tuple[Cell, ...]:
    """Cluster id, controller, and the counts: topics, partitions, offline, under-replicated, under-min-isr, moving."""
    return (
        found.described.cluster_id, found.controller_id, len(found.topics), len(found.partitions),
        sum(each.is_offline for each in found.partitions), sum(each.is_under_replicated for each in found.partitions),
        sum(each.is_under_min_isr for each in found.partitions), len(found.reassignments),
    )  # fmt: skip


def _print_tables(found: Status, brokers: list[dict[str, Cell]]) -> None:
    cluster_id, controller_id, topics, partitions, offline, under_replicated, under_min_isr, moving = _summary(found)
    print_line(f"cluster {cluster_id}, controller {controller_id if controller_id != -1 else 'unknown'}")
    print_table(BROKER_COLUMNS, _broker_rows(brokers, found))
    if found.unwell:
        print_table(PARTITION_COLUMNS, map(_partition_row, found.unwell))
    print_line(
        f"{topics} topic(s), {partitions} partition(s): {offline} offline, {under_replicated} under-replicated, "
        f"{under_min_isr} under-min-isr, {moving} being reassigned"
    )


def _as_json(found: Status, brokers: list[dict[str, Cell]]) -> dict[str, object]:
    _, _, topics, partitions, offline, under_replicated, under_min_isr, _ = _summary(found)
    return {
        "cluster_id": found.described.cluster_id,
        "controller_id": found.controller_id,
        "controller_epoch": found.controller_epoch,
        "brokers": brokers,
        "topics": topics,
        "partitions": partitions,
        "offline": offline,
        "under_replicated": under_replicated,
        "under_min_isr": under_min_isr,
        "unwell": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "leader": each.state.leader,
                "leader_epoch": each.state.leader_epoch,
                "replicas": each.state.replicas,
                "isr": each.state.isr,
                "out_of_sync": each.state.out_of_sync,
                "eligible_leaders": each.state.eligible_leaders,
                "problems": _problems(each),
            }
            for each in found.unwell
        ],
        "reassignments": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": each.replicas,
                "adding": each.adding,
                "removing": each.removing,
            }
            for partition, each in found.reassignments.items()
        ],
    }
