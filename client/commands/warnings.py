"""What commands warn of, on standard error: a setting that a broker takes and that does less than it says."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from odradek.client.admin.health import MIN_INSYNC

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.configs import ConfigEntry, ConfigResource
    from odradek.client.admin.topics import CreatedTopic

__all__ = [
    "MIN_INSYNC",
    "beyond_replicas",
    "is_unknown",
    "note_one_core",
    "uses_one_core",
    "warn",
    "warn_of_topics",
    "warn_of_unknown",
]


def warn(sentence: str) -> None:
    click.echo(f"Warning: {sentence}", err=True)


def beyond_replicas(topic: str, value: str | None, replicas: int) -> str | None:
    """What is to be said of this `min.insync.replicas` of a topic whose partitions have so many replicas, or more.

    Brokers take any number, and count at most as many as there are replicas (KIP-966). None where it is not more.
    """
    if value is None or not value.strip().isdecimal() or int(value) <= replicas:
        return None
    return (
        f"{MIN_INSYNC}={value} is more than {topic} has replicas ({replicas}): it counts as {replicas}, and acks=all "
        "is refused while any replica is out of sync"
    )


async def note_one_core(admin: "Admin", created: "Iterable[CreatedTopic]") -> None:
    """Says once of topics that were created with as many partitions as the broker is set to, if one of them uses one
    core where there are more. Raises ClientError."""
    lone = [topic.name for topic in created if topic.partitions == topic.replication_factor == 1]
    if not lone:
        return
    hosts = [broker.host for broker in (await admin.describe_cluster()).brokers]
    if (sentence := uses_one_core(lone[0], hosts)) is not None:
        click.echo(f"Note: {sentence}", err=True)


def uses_one_core(topic: str, hosts: Sequence[str]) -> str | None:
    """What is to be said of a topic with one partition and one replica, in a cluster whose brokers are on these hosts.
    None where they are on several: it is not for the cores of one machine that there are many."""
    if len(hosts) < 2 or len(set(hosts)) > 1:
        return None
    return (
        f"{topic} has one partition, which one of the {len(hosts)} brokers of this machine serves, on one core: give "
        f"--partitions {len(hosts)} or more to use all of them"
    )


async def warn_of_topics(admin: "Admin", names: Iterable[str], settings: Iterable[tuple[str, str]]) -> None:
    """Warns of what was set for these topics. Raises ClientError."""
    value = dict(settings).get(MIN_INSYNC)
    if value is None:
        return
    for topic in (await admin.describe_topics(list(names))).values():
        replicas = min(len(each.replicas) for each in topic.partitions)
        if (sentence := beyond_replicas(topic.name, value, replicas)) is not None:
            warn(sentence)


async def warn_of_unknown(admin: "Admin", resource: "ConfigResource", names: Iterable[str]) -> None:
    """Warns of options that were set for a broker and that it does not know. Raises ClientError."""
    found = await admin.describe_configs([resource], list(names))
    for entry in found[resource].values():
        if is_unknown(entry):
            warn(f"{resource} does not know {entry.name}: it is stored, and has no effect")


def is_unknown(entry: "ConfigEntry") -> bool:
    """Whether a broker describes the option as one that is stored, and that it does not know (ConfigHelper.scala)."""
    from odradek.client.admin.configs import ConfigType

    return entry.is_sensitive and entry.is_read_only and entry.type is ConfigType.UNKNOWN
