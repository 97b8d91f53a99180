"""A bound on what a reassignment copies, in bytes a second for each broker, set and removed again.

As Kafka's own tool has it (KIP-73, ReassignPartitionsCommand): the rate is an option of each broker that takes part,
and options of the topics name the replicas that it holds for: `partition:broker`, where records are read from (the
leader's side) and where they are written to (the follower's). Replicas that are in sync are not named by the latter, so
that they stay in sync.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigChange, ConfigEntry, ConfigResource, ConfigSource
from odradek.client.admin.replication import Reassignment
from odradek.client.topic_partition import TopicPartition

__all__ = ["Throttle", "is_throttled", "moves_of"]

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS: Final = "leader.replication.throttled.replicas"
FOLLOWERS: Final = "follower.replication.throttled.replicas"

Moves = Mapping[TopicPartition, tuple[Sequence[int], Sequence[int]]]
"""By partition, who has it and who will get it beside these."""


def moves_of(
    present: Mapping[TopicPartition, Sequence[int]],
    targets: Mapping[TopicPartition, Sequence[int]],
    under_way: Mapping[TopicPartition, Reassignment],
) -> dict[TopicPartition, tuple[Sequence[int], Sequence[int]]]:
    """Those that are asked for, and those that are under way, whose throttle must not be taken from them."""
    moves: dict[TopicPartition, tuple[Sequence[int], Sequence[int]]] = {}
    for partition, moving in under_way.items():
        moves[partition] = ([each for each in moving.replicas if each not in moving.adding], moving.adding)
    for partition, target in targets.items():
        sources = moves[partition][0] if partition in moves else present[partition]
        moves[partition] = (sources, [each for each in target if each not in sources])
    return moves


class Throttle:
    """The throttle of some moves."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def limit(self, moves: Moves, rate_bytes: int) -> list[int]:
        """Sets it, on all brokers that take part; before the moves begin. Only a broker itself takes its options:
        returns those that are not there, whose rate is not set. Raises ItemsFailed."""
        brokers = {broker for sources, added in moves.values() for broker in (*sources, *added)}
        present = {broker.node_id for broker in (await self._admin.describe_cluster()).brokers}
        changes: dict[ConfigResource, list[ConfigChange]] = {
            ConfigResource.broker(broker): [ConfigChange.set(name, str(rate_bytes)) for name in RATES]
            for broker in sorted(brokers & present)
        }
        for topic in dict.fromkeys(partition.topic for partition in moves):
            its = {each.partition: move for each, move in moves.items() if each.topic == topic}
            changes[ConfigResource.topic(topic)] = [
                ConfigChange.set(LEADERS, _replicas({number: move[0] for number, move in its.items()})),
                ConfigChange.set(FOLLOWERS, _replicas({number: move[1] for number, move in its.items()})),
            ]
        await self._admin.alter_configs(changes)
        return sorted(brokers - present)

    async def topics_limited(self, topics: Iterable[str]) -> list[str]:
        """Of these topics, those with replicas that are throttled."""
        resources = [ConfigResource.topic(topic) for topic in dict.fromkeys(topics)]
        found = await self._admin.describe_configs(resources, [LEADERS, FOLLOWERS])
        return [resource.name for resource, entries in found.items() if is_throttled(entries)]

    async def brokers_limited(self) -> list[int]:
        """The brokers that have a rate set, whether it holds for any replica or not."""
        resources = [ConfigResource.broker(each.node_id) for each in (await self._admin.describe_cluster()).brokers]
        found = await self._admin.describe_configs(resources, RATES)
        return [
            int(resource.name)
            for resource, entries in found.items()
            if any(entry.source is ConfigSource.DYNAMIC_BROKER for entry in entries.values())
        ]

    async def remove(self, topics: Iterable[str], *, rates_too: bool) -> None:
        """Takes the options of the topics away, and with `rates_too` the rates of all brokers. Raises ItemsFailed."""
        changes: dict[ConfigResource, list[ConfigChange]] = {
            ConfigResource.topic(topic): [ConfigChange.delete(LEADERS), ConfigChange.delete(FOLLOWERS)]
            for topic in dict.fromkeys(topics)
        }
        if rates_too:
            brokers = (await self._admin.describe_cluster()).brokers
            changes |= {
                ConfigResource.broker(broker.node_id): [ConfigChange.delete(name) for name in RATES]
                for broker in brokers
            }
        await self._admin.alter_configs(changes)


def is_throttled(entries: Mapping[str, ConfigEntry]) -> bool:
    return any(name in entries and entries[name].value for name in (LEADERS, FOLLOWERS))


def _replicas(by_partition: Mapping[int, Sequence[int]]) -> str:
    return ",".join(
        f"{partition}:{broker}" for partition, brokers in sorted(by_partition.items()) for broker in sorted(brokers)
    )
