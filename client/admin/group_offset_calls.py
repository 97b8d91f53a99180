"""The calls of Admin about the offsets that groups have committed. Each group is asked of its coordinator.

The offsets of a group belong to its members while it has any: they can be read then, and not be changed.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from odradek.client.admin.base import AdminBase, items_of, keys_of, only, require_group
from odradek.client.admin.calls import Again
from odradek.client.admin.coordinators import CoordinatorCall
from odradek.client.admin.group_offsets import (
    NAMES_UNTIL,
    SEVERAL_GROUPS_SINCE,
    CommittedOffset,
    Wanted,
    committed_offsets,
    deleted_offsets,
    fetched_offsets,
    offset_commit_request,
    offset_delete_request,
    offset_fetch_request,
)
from odradek.client.arguments import require_all, require_kind, require_partitions
from odradek.client.errors.client_errors import ClientError, UnsupportedVersion
from odradek.client.topic_partition import TopicPartition

__all__ = ["GroupOffsetCalls"]

Offsets = dict[TopicPartition, CommittedOffset]


class GroupOffsetCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def list_group_offsets(
        self,
        wanted: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, Offsets]:
        """The offsets of groups, by group and partition: of those named, or of some partitions each (None: all).

        A partition without an offset is left out, and a group that there is not has none. `require_stable`: waits for
        the end of open transactions that hold offsets (from Kafka 2.5 on).

        Raises ItemsFailed by group; where some of its partitions failed, the error of a group is ItemsFailed, too.
        """
        deadline = self._deadline(timeout_ms)
        by_group: dict[str, list[TopicPartition] | None] = {}
        if isinstance(wanted, Mapping):
            for group_id, partitions in cast("Mapping[str, Iterable[TopicPartition] | None]", wanted).items():
                by_group[group_id] = None if partitions is None else await _partitions_of("wanted", partitions)
        else:
            by_group = dict.fromkeys(await items_of("wanted", wanted, "groups' ids"))
        require_all("wanted", by_group, str, "groups' ids (str)")
        call = CoordinatorCall(self._coordinators, deadline)

        async def ask(some: list[str], node_id: int) -> Mapping[str, Offsets | ClientError]:
            return await fetch({each: by_group[each] for each in some}, node_id)

        async def fetch(some: Wanted, node_id: int) -> dict[str, Offsets | ClientError]:
            request, at_least = offset_fetch_request(some, require_stable=require_stable)
            try:
                response = await self._calls.ask(
                    request, deadline, node=node_id, at_least=at_least, at_most=NAMES_UNTIL
                )
            except UnsupportedVersion:
                if at_least != SEVERAL_GROUPS_SINCE:
                    raise
                outcomes: dict[str, Offsets | ClientError] = {}
                for group_id, partitions in some.items():
                    outcomes |= await fetch({group_id: partitions}, node_id)
                return outcomes
            return fetched_offsets(some, response)

        return await self._calls.complete("OffsetFetch", by_group, lambda some: call.each(some, ask), deadline)

    async def group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: float | None = None,
    ) -> Offsets:
        """The offsets of one group, by partition; see `list_group_offsets`. Raises ItemsFailed by partition."""
        require_group(group_id)
        listing = self.list_group_offsets({group_id: partitions}, require_stable=require_stable, timeout_ms=timeout_ms)
        return await only(group_id, listing)

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Sets the offsets of a group without members. A group that there is not is created.

        An offset is not compared with those of the partition's records.

        Raises ItemsFailed with UNKNOWN_MEMBER_ID for a group that has members, UnknownTopic and others.
        """
        require_group(group_id)
        deadline = self._deadline(timeout_ms)
        require_partitions("offsets", keys_of("offsets", offsets, "TopicPartition objects"))
        committed = {partition: _committed(offset) for partition, offset in offsets.items()}
        call = CoordinatorCall(self._coordinators, deadline)

        async def attempt(some: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | Again | None]:
            request = offset_commit_request(group_id, {partition: committed[partition] for partition in some})

            async def ask(node_id: int) -> Mapping[TopicPartition, ClientError | None]:
                response = await self._calls.ask(request, deadline, node=node_id, at_most=NAMES_UNTIL)
                return committed_offsets(group_id, response)

            return await call.one(group_id, some, ask)

        await self._calls.complete("OffsetCommit", committed, attempt, deadline)

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> None:
        """Deletes offsets of a group, but of topics that its members are subscribed to (KIP-496, from Kafka 2.4 on).

        Raises ItemsFailed with GROUP_SUBSCRIBED_TO_TOPIC, GROUP_ID_NOT_FOUND and others.
        """
        require_group(group_id)
        deadline = self._deadline(timeout_ms)
        wanted = await _partitions_of("partitions", partitions)
        call = CoordinatorCall(self._coordinators, deadline)

        async def attempt(some: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | Again | None]:
            async def ask(node_id: int) -> Mapping[TopicPartition, ClientError | None]:
                response = await self._calls.ask(offset_delete_request(group_id, some), deadline, node=node_id)
                return deleted_offsets(group_id, some, response)

            return await call.one(group_id, some, ask)

        await self._calls.complete("OffsetDelete", wanted, attempt, deadline)


async def _partitions_of(name: str, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    found = await items_of(name, partitions, "TopicPartition objects")
    require_partitions(name, found)
    return found


def _committed(offset: object) -> CommittedOffset:
    """Raises TypeError."""
    if isinstance(offset, CommittedOffset):
        return offset
    require_kind("an offset", offset, int, "a whole number, or a CommittedOffset")
    assert isinstance(offset, int)
    return CommittedOffset(offset)
