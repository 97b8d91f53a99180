"""Finds where reading begins: at the offset that the group has committed, else where `auto_offset_reset` says.

`latest` counts for the group's first start alone. A group that has offsets, of whatever partition, has been at work: a
partition of which it has none was added since (or its offset has expired), and is read from its beginning, so that
records which came before the first rebalance are not left out.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.group.commits import Commits
from odradek.client.consumer.group.offset_messages import OUTDATED
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.fetch_settings import Start
from odradek.client.topic_partition import TopicPartition
from odradek.runtime.environment import Environment

__all__ = ["Placing"]

logger = logging.getLogger(__name__)

NOTE_MS: Final = 30_000.0
"""So often it is said that offsets cannot be had."""


class Placing:
    """`policy`: the setting `auto_offset_reset`."""

    def __init__(self, name: str, core: ConsumerCore, commits: Commits, environment: Environment, policy: str) -> None:
        self.begun: dict[TopicPartition, int] = {}
        """At which committed offsets partitions began that are assigned."""
        self._name = name
        self._core = core
        self._commits = commits
        self._environment = environment
        self._policy = policy

    async def place(
        self, partitions: Collection[TopicPartition], starts: Mapping[TopicPartition, Start] | None = None
    ) -> None:
        """Has these begin. Returns when none is left: the others were taken away, or the program has sought.

        `starts`: where nothing is committed, if they were read before. What passes is waited for without an end. Raises
        ClientError.
        """
        tokens = {partition: self._core.token(partition) for partition in partitions}

        def left() -> list[TopicPartition]:
            return [
                partition
                for partition, token in tokens.items()
                if self._core.is_unplaced(partition) and self._core.token(partition) is token
            ]

        while wanted := left():
            try:
                deadline_ms = self._environment.monotonic_ms() + NOTE_MS
                found = await self._commits.fetch(wanted, deadline_ms)
                has_history = len(found) < len(wanted) and await self._has_history(found, deadline_ms)
            except ClientError as error:
                if not error.retriable and error.code not in OUTDATED:
                    raise
                if left():
                    logger.warning("%s: it is not known yet where to begin: %s", self._name, error)
                continue
            for partition in left():
                start = None if starts is None else starts.get(partition)
                if start is None and has_history:
                    start = Start.earliest()
                self._begin(partition, found.get(partition), start)

    async def _has_history(self, found: dict[TopicPartition, OffsetAndMetadata], deadline_ms: float) -> bool:
        if self._policy != "latest":
            return False
        return bool(found) or bool(await self._commits.fetch(None, deadline_ms))

    def _begin(self, partition: TopicPartition, committed: OffsetAndMetadata | None, start: Start | None) -> None:
        if committed is not None:
            self._commits.committed[partition] = self.begun[partition] = committed.offset
            self._core.place(partition, Start.at_offset(committed.offset, committed.leader_epoch))
        else:
            self._commits.committed.pop(partition, None)
            self._core.place(partition, start)
