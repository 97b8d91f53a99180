"""What commands warn of, on standard error: a setting that a broker takes and that does less than it says."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from odradek.client.admin.health import MIN_INSYNC

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.configs import ConfigEntry, ConfigResource

__all__ = ["MIN_INSYNC", "beyond_replicas", "is_unknown", "warn", "warn_of_topics", "warn_of_unknown"]


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
