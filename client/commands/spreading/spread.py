"""What `odradek partitions spread` does: plan (plan.py), tell it, and carry it out in lots.

Nothing is remembered between two calls: each plans for what it finds. So one that was interrupted is gone on with by
another one. What is being moved counts as being where it is moved to, is waited for with the first lot, and keeps its
throttle. At the end no throttle is left, whichever call has set it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click

from odradek.client.admin.admin import Admin
from odradek.client.admin.cluster import BrokerDescription
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import PartitionDescription, TopicDescription
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.output import print_json, print_line
from odradek.client.commands.reassignment import moved, sentence_of
from odradek.client.commands.replicas import broker_ids
from odradek.client.commands.several import Failures
from odradek.client.commands.spreading.plan import plan
from odradek.client.commands.throttles import Throttle
from odradek.client.topic_partition import TopicPartition

__all__ = ["Wanted", "spread"]

NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. `brokers`: None for all that are registered. `rate_bytes`: a second, of each broker."""

    brokers: Sequence[int] | None = None
    may_have_fewer_replicas: bool = False
    rate_bytes: int | None = None
    lot: int = 50
    """So many partitions are moved at a time."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The brokers to spread over, and what the cluster has: by partition the replicas, or those it is getting."""

    brokers: Sequence[BrokerDescription]
    present: Mapping[TopicPartition, Sequence[int]]
    factors: Mapping[TopicPartition, int]
    """Of partitions that are to have fewer replicas."""
    under_way: Sequence[TopicPartition]
    leaderless: Sequence[TopicPartition]

    @property
    def ids(self) -> list[int]:
        return [each.node_id for each in self.brokers]


async def spread(admin: Admin, wanted: Wanted, *, execute: bool, as_json: bool) -> None:
    """Tells what would move, or with `execute` moves it. Raises CommandFailed, ClientError."""
    failures = Failures()
    found = await _look(admin, wanted, failures)
    racks = {each.node_id: each.rack for each in found.brokers}
    targets = plan(found.present, racks, found.factors)
    moves = {each: replicas for each, replicas in targets.items() if replicas != tuple(found.present[each])}
    if execute:
        _check_can_move(found, moves)
    if not as_json and not execute:
        for each, replicas in moves.items():
            print_line(sentence_of(each, found.present[each], replicas))
    if not as_json:
        print_line(_summary(found, targets, moves))
    if execute:
        await _carry_out(admin, wanted, found, moves, failures, as_json=as_json)
        await _lead(admin, targets, failures)
        await _remove_throttles(admin, targets)
    elif moves:
        click.echo("Nothing was changed: give --execute to have it done.", err=True)
    if as_json:
        print_json(_as_json(found, moves, is_done=execute))
    failures.tell()


# ------------------------------------------------------------------------------------------------- what the cluster has
async def _look(admin: Admin, wanted: Wanted, failures: Failures) -> _Found:
    """Raises CommandFailed where it cannot be spread, ClientError."""
    registered = {each.node_id: each for each in (await admin.describe_cluster(include_fenced=True)).brokers}
    ids = sorted(registered if wanted.brokers is None else wanted.brokers)
    if unknown := [each for each in ids if each not in registered]:
        known = broker_ids(sorted(registered))
        raise CommandFailed(
            f"Broker {broker_ids(unknown)} is not registered, and {known} are: give --brokers of these."
        )
    names = [each.name for each in await admin.list_topics(include_internal=True)]
    topics = await failures.or_results(admin.describe_topics(names))
    moving = await admin.list_partition_reassignments()
    present: dict[TopicPartition, Sequence[int]] = {}
    leaderless: list[TopicPartition] = []
    for name, each in _partitions(topics):
        present[name] = moving[name].target if name in moving else each.replicas
        if each.leader < 0:
            leaderless.append(name)
    factors = {each: len(ids) for each, replicas in present.items() if len(replicas) > len(ids)}
    if factors and not wanted.may_have_fewer_replicas:
        raise CommandFailed(
            f"{_named(factors)} has more replicas than the {len(ids)} broker(s) to spread over: give more of them, or "
            "--fewer-replicas, to leave one replica on each."
        )
    if internal := sorted({each.topic for each in factors if topics[each.topic].is_internal}):
        click.echo(
            f"{', '.join(internal)}: brokers give these more replicas by themselves, up to their options "
            f"offsets.topic.replication.factor and transaction.state.log.replication.factor: start them with "
            f"{len(ids)} for both, or it does not stay so.",
            err=True,
        )
    return _Found(
        [registered[each] for each in ids], present, factors, [each for each in moving if each in present], leaderless
    )


def _partitions(topics: Mapping[str, TopicDescription]) -> Iterator[tuple[TopicPartition, PartitionDescription]]:
    for name, topic in sorted(topics.items()):
        for each in topic.partitions:
            yield TopicPartition(name, each.partition), each


def _check_can_move(found: _Found, moves: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Raises CommandFailed where a move could not end: nothing has begun then."""
    added = {broker for each, replicas in moves.items() for broker in set(replicas) - set(found.present[each])}
    fenced = [each.node_id for each in found.brokers if each.is_fenced and each.node_id in added]
    if fenced:
        raise CommandFailed(
            f"Broker {broker_ids(fenced)} is not there, and would get replicas: start it, or leave it out with "
            "--brokers. Nothing was changed."
        )
    stuck = [each for each in found.leaderless if each in moves]
    if stuck:
        raise CommandFailed(
            f"{_named(stuck)} has no leader, so that nothing of it can be copied: start the brokers that have it, or "
            "give it one (odradek partitions elect --unclean). Nothing was changed."
        )


# ------------------------------------------------------------------------------------------------------ carrying it out
async def _carry_out(
    admin: Admin,
    wanted: Wanted,
    found: _Found,
    moves: Mapping[TopicPartition, Sequence[int]],
    failures: Failures,
    *,
    as_json: bool,
) -> None:
    """All moves, those that are under way with the first lot. Raises CommandFailed, ClientError."""
    begun = {each: moves.get(each, found.present[each]) for each in found.under_way}
    rest = [each for each in moves if each not in begun]
    lots = [{each: moves[each] for each in rest[at : at + wanted.lot]} for at in range(0, len(rest), wanted.lot)]
    if begun:
        lots[:1] = [{**begun, **(lots[0] if lots else {})}]
    for number, lot in enumerate(lots, 1):
        await moved(admin, lot, wanted.rate_bytes, failures, wait=True, tell=_silent if as_json else print_line)
        if not as_json:
            print_line(f"lot {number} of {len(lots)} done")


async def _lead(admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], failures: Failures) -> None:
    """Has the preferred leaders lead: nobody else does for some minutes."""
    topics = await failures.or_results(admin.describe_topics(dict.fromkeys(each.topic for each in targets)))
    others = [name for name, each in _partitions(topics) if name in targets and each.leader != targets[name][0]]
    if others:
        await failures.or_results(admin.elect_leaders(others))


async def _remove_throttles(admin: Admin, targets: Iterable[TopicPartition]) -> None:
    """What another call has left, too: one that was killed could not take it away. Raises ClientError."""
    throttle = Throttle(admin)
    if await admin.list_partition_reassignments():
        return  # somebody else's, who may have set it
    try:
        limited = await throttle.topics_limited(dict.fromkeys(each.topic for each in targets))
    except ItemsFailed as failed:  # a topic that was deleted meanwhile
        limited = await throttle.topics_limited(
            {each.topic for each in targets} - {resource.name for resource in failed.errors}
        )
    if limited or await throttle.brokers_limited():
        await throttle.remove(limited, rates_too=True)


# ------------------------------------------------------------------------------------------------------------- telling
def _summary(
    found: _Found, targets: Mapping[TopicPartition, Sequence[int]], moves: Mapping[TopicPartition, Sequence[int]]
) -> str:
    copied = sum(len(set(replicas) - set(found.present[each])) for each, replicas in moves.items())
    replicas = Counter(broker for each in targets.values() for broker in each)
    leads = Counter(each[0] for each in targets.values())
    return (
        f"{len(moves)} of {len(targets)} partition(s) change, {copied} replica(s) are copied; each broker of "
        f"{broker_ids(found.ids)} has {_range(replicas[each] for each in found.ids)} replicas then, and is the "
        f"preferred leader of {_range(leads[each] for each in found.ids)}"
    )


def _range(counts: Iterable[int]) -> str:
    found = list(counts)
    return str(found[0]) if min(found) == max(found) else f"{min(found)} to {max(found)}"


def _named(partitions: Iterable[TopicPartition]) -> str:
    """`orders-0, orders-1, orders-2 and 5 more`."""
    names = [str(each) for each in partitions]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


def _as_json(found: _Found, moves: Mapping[TopicPartition, Sequence[int]], *, is_done: bool) -> list[dict[str, object]]:
    return [
        {
            "topic": each.topic,
            "partition": each.partition,
            "replicas_before": list(found.present[each]),
            "replicas": list(replicas),
            "is_done": is_done,
        }
        for each, replicas in moves.items()
    ]


def _silent(_sentence: str) -> None:
    """JSON is printed at the end."""
