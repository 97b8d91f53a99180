"""What `odradek partitions reassign` does: begin moves, wait for their end (awaited.py), cancel and list them.

Without a throttle a move copies as fast as it can. With one, options are set before it begins, and removed when it is
done or cancelled: of the topics always, of the brokers when no other partition is moving.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from odradek.client.admin.admin import Admin
from odradek.client.admin.replication import Reassignment
from odradek.client.commands.awaited import Awaited
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.output import print_json, print_line, print_table
from odradek.client.commands.replicas import broker_ids
from odradek.client.commands.several import Failures
from odradek.client.commands.throttles import Throttle, moves_of
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import InvalidPartition
from odradek.client.topic_partition import TopicPartition

__all__ = ["cancel_moves", "list_moves", "move", "moved", "sentence_of"]

LOOK_S: Final = 0.5
"""Between two looks whether it is done."""
LOOKS_AFTER_END: Final = 10
"""So often the replicas are asked for, after the controller has said that a move has ended: another broker answers,
and it may hear of the end later."""


async def list_moves(admin: Admin, *, as_json: bool) -> None:
    found = await admin.list_partition_reassignments()
    if as_json:
        print_json([_as_json(partition, moving) for partition, moving in found.items()])
        return
    print_table(
        ("TOPIC", "PARTITION", "TARGET", "ADDING", "REMOVING"),
        [
            (each.topic, each.partition, broker_ids(it.target), broker_ids(it.adding), broker_ids(it.removing))
            for each, it in found.items()
        ],
    )


async def cancel_moves(admin: Admin, partitions: Sequence[TopicPartition], *, as_json: bool) -> None:
    """Ends moves, and removes their throttle. Raises ItemsFailed where none was under way."""
    failures = Failures()
    done = await failures.or_done(admin.alter_partition_reassignments(dict.fromkeys(partitions)), partitions)
    if done:
        await _unthrottle(admin, done)
    if as_json:
        print_json([{"topic": each.topic, "partition": each.partition, "cancelled": True} for each in done])
    else:
        for each in done:
            print_line(f"{each} stays where it was")
    failures.tell()


async def move(
    admin: Admin,
    targets: Mapping[TopicPartition, Sequence[int]],
    rate_bytes: int | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """Begins moves, and with `wait` returns when they are done. Raises ItemsFailed, CommandFailed."""
    failures = Failures()
    begun = await moved(admin, targets, rate_bytes, failures, wait=wait, tell=_silent if as_json else print_line)
    if begun and rate_bytes is not None and not wait:
        click.echo("The throttle stays until the same command is given with --wait, or with --cancel.", err=True)
    if as_json:
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "replicas_before": list(before),
                    "replicas": list(targets[each]),
                    "is_done": wait,
                }
                for each, before in begun.items()
            ]
        )
    elif begun and wait:
        print_line("done")
    failures.tell()


async def moved(
    admin: Admin,
    targets: Mapping[TopicPartition, Sequence[int]],
    rate_bytes: int | None,
    failures: Failures,
    *,
    wait: bool,
    tell: Callable[[str], None],
) -> dict[TopicPartition, tuple[int, ...]]:
    """Begins moves, and with `wait` returns when they are done: those that have begun, with the replicas of before.

    `tell` is given a sentence for each; what keeps one from beginning is added to `failures`. Raises CommandFailed,
    ClientError.
    """
    present = await _present(admin, targets, failures)
    targets = {each: targets[each] for each in present}
    unlimited: Sequence[int] = ()
    if rate_bytes is not None and targets:
        moves = moves_of(present, targets, await admin.list_partition_reassignments())
        try:
            unlimited = await Throttle(admin).limit(moves, rate_bytes)
        except ClientError:
            await _unthrottle(admin, list(targets))
            raise
    begun = await failures.or_done(admin.alter_partition_reassignments(targets), targets) if targets else []
    for each in begun:
        tell(sentence_of(each, present[each], targets[each]))
    if begun and unlimited:
        absent = f"{broker_ids(unlimited)}, which {'is' if len(unlimited) == 1 else 'are'} not there"
        click.echo(f"The rate is not set on {absent}: give the same command again when that has changed.", err=True)
    if begun and wait:
        await _wait_for(admin, {each: targets[each] for each in begun}, failures, is_throttled=rate_bytes is not None)
    elif not begun and rate_bytes is not None and targets:
        await _unthrottle(admin, list(targets))  # nothing has begun
    return {each: present[each] for each in begun}


async def _present(
    admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], failures: Failures
) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas that partitions have now. One that is not there is told, and left out."""
    topics = await failures.or_results(admin.describe_topics(dict.fromkeys(each.topic for each in targets)))
    found = {TopicPartition(topic.name, each.partition): each for topic in topics.values() for each in topic.partitions}
    for each in targets:
        if each not in found and each.topic in topics:
            count = len(topics[each.topic].partitions)
            failures.add(InvalidPartition(each.topic, each.partition, count, "the reassignment"))
    return {each: found[each].replicas for each in targets if each in found}


async def _wait_for(
    admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], failures: Failures, *, is_throttled: bool
) -> None:
    """Returns when none of the moves is under way, and takes their throttle away. Raises CommandFailed when a partition
    has other replicas than it should have, and keeps them."""
    try:
        awaited = Awaited(admin)
        while under_way := await _under_way(admin, list(targets)):  # a broker tells nobody when it is done
            await awaited.tell(under_way)
            await asyncio.sleep(LOOK_S)
    except asyncio.CancelledError:
        stays = ", and so does the throttle" if is_throttled else ""
        click.echo(f"The reassignment goes on{stays}: see --list, --wait and --cancel.", err=True)
        raise
    await _unthrottle(admin, list(targets))
    others = await _others(admin, targets, failures)
    if others:
        raise CommandFailed(f"Not done, for it was cancelled or changed meanwhile: {'; '.join(others)}.")


async def _others(admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], failures: Failures) -> Sequence[str]:
    """The partitions whose move has ended, and whose replicas are not those of it: what they have, as sentences."""
    looks = 0
    while True:
        reached = await _present(admin, targets, failures)
        others = {each: have for each, have in reached.items() if set(have) != set(targets[each])}
        looks += 1
        if not others or looks == LOOKS_AFTER_END:
            return [f"{each} has {broker_ids(have)}" for each, have in others.items()]
        targets = {each: targets[each] for each in others}
        await asyncio.sleep(LOOK_S)


async def _under_way(admin: Admin, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Reassignment]:
    """Of these partitions. While no broker answers, all of them count: a controller may be on its way."""
    try:
        return await admin.list_partition_reassignments(partitions)
    except ClientError as error:
        if not error.retriable:
            raise
        click.echo(f"No answer for now: {error.message}", err=True)
        nothing = Reassignment((), (), ())
        return dict.fromkeys(partitions, nothing)


async def _unthrottle(admin: Admin, partitions: Sequence[TopicPartition]) -> None:
    """Takes the throttle of topics away, where they have one, unless partitions of theirs are still moving."""
    throttle = Throttle(admin)
    moving = await admin.list_partition_reassignments()
    topics = {each.topic for each in partitions} - {each.topic for each in moving}
    limited = await throttle.topics_limited(sorted(topics)) if topics else []
    if limited:
        await throttle.remove(limited, rates_too=not moving)


def sentence_of(partition: TopicPartition, before: Sequence[int], after: Sequence[int]) -> str:
    if list(before) == list(after):
        return f"{partition} is on {broker_ids(after)} already"
    if set(before) == set(after):
        return f"{partition} stays on {broker_ids(after)}, and {after[0]} is to lead it"
    return f"{partition} moves from {broker_ids(before)} to {broker_ids(after)}"


def _silent(_sentence: str) -> None:
    """For those who print JSON at the end."""


def _as_json(partition: TopicPartition, moving: Reassignment) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "replicas": moving.replicas,
        "target": moving.target,
        "adding": moving.adding,
        "removing": moving.removing,
    }
