"""What reassignments wait for, told to whoever waits for them (`odradek partitions reassign --wait`).

A reassignment waits until the replicas that it adds are in sync; where it adds fewer than it removes, until all of its
target are (KAFKA-19975); and our brokers wait until `min.insync.replicas` are in sync without those that it removes.
Copying takes its time and is nothing to tell of. So a reassignment is told of at once where a broker that it waits for
is not there, for it cannot complete then, and else when it has waited for the same from one question to the next.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import click

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigResource
from odradek.client.admin.health import MIN_INSYNC
from odradek.client.admin.replication import Reassignment
from odradek.client.commands.replicas import broker_ids
from odradek.client.errors.base import ClientError
from odradek.client.topic_partition import TopicPartition

__all__ = ["Awaited", "waiting_for"]

LOOKS_A_QUESTION: Final = 10
"""So often it is looked whether they are done, for one question why they are not."""


def waiting_for(moving: Reassignment, isr: Sequence[int], min_insync: int) -> tuple[tuple[int, ...], str]:
    """The brokers that a reassignment waits for to be in sync, and what that is not by itself clear from. Pure.

    Nobody, where all of its target are in sync: it is about to be complete.
    """
    added = tuple(each for each in moving.adding if each not in isr)
    if added:
        return added, ""
    absent = tuple(each for each in moving.target if each not in isr)
    in_sync = [each for each in moving.target if each in isr]
    enough = min(min_insync, len(moving.target), len(isr))
    if len(moving.adding) < len(moving.removing) or len(in_sync) >= enough:
        return absent, ""
    removed = broker_ids(moving.removing)
    told = f": without {removed} only {broker_ids(in_sync)} would be, and {MIN_INSYNC} is {min_insync}"
    return absent, told


class Awaited:
    """Tells of each reassignment what it waits for, once until that changes."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._looks = 0
        self._found: dict[TopicPartition, str] = {}
        self._told: dict[TopicPartition, str] = {}
        self._failure = ""

    async def tell(self, under_way: Mapping[TopicPartition, Reassignment]) -> None:
        """To be called at each look. A question that fails is told of, if asking again does not help."""
        self._looks += 1
        if self._looks % LOOKS_A_QUESTION != 1:
            return
        moving = {each: found for each, found in under_way.items() if found.replicas}
        try:
            found = await self._ask(moving) if moving else {}
        except ClientError as error:
            if not error.retriable and error.message != self._failure:
                self._failure = error.message
                click.echo(f"What it waits for is not known: {error.message}", err=True)
            return
        before, self._found = self._found, {each: text for each, (text, _) in found.items()}
        for each, (text, cannot_complete) in found.items():
            if self._told.get(each) != text and (cannot_complete or before.get(each) == text):
                self._told[each] = text
                click.echo(text, err=True)

    async def _ask(self, moving: Mapping[TopicPartition, Reassignment]) -> dict[TopicPartition, tuple[str, bool]]:
        """What each waits for, and whether it cannot complete for now. Raises ClientError."""
        names = list(dict.fromkeys(each.topic for each in moving))
        topics = await self._admin.describe_topics(names)
        entries = await self._admin.describe_configs([ConfigResource.topic(name) for name in names], [MIN_INSYNC])
        min_insync = {
            resource.name: int(options[MIN_INSYNC].value or 1)
            for resource, options in entries.items()
            if MIN_INSYNC in options
        }
        cluster = await self._admin.describe_cluster()
        there = {each.node_id for each in cluster.brokers if not each.is_fenced}
        told: dict[TopicPartition, tuple[str, bool]] = {}
        for topic in topics.values():
            for state in topic.partitions:
                partition = TopicPartition(topic.name, state.partition)
                if partition in moving:
                    brokers, why = waiting_for(moving[partition], state.isr, min_insync.get(topic.name, 1))
                    gone = [each for each in brokers if each not in there]
                    if brokers:
                        told[partition] = _sentence(partition, brokers, gone, why), bool(gone)
        return told


def _sentence(partition: TopicPartition, brokers: Sequence[int], gone: Sequence[int], why: str) -> str:
    absent = f" ({broker_ids(gone)} {'is' if len(gone) == 1 else 'are'} not there)" if gone else ""
    return f"{partition} waits for {broker_ids(brokers)}{absent} to be in sync{why}."
