"""Where partitions begin: at what is committed, else where `auto_offset_reset` says, of which `latest` counts once."""

import asyncio
from collections.abc import Collection
from typing import cast

import pytest

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.group.commits import Commits
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.consumer.group.placing import Placing
from odradek.client.errors.client_errors import ClientError, broker_error
from odradek.client.fetching.fetch_settings import Start
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

P0, P1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class World:
    """What is committed, and the partitions that wait."""

    def __init__(self, policy: str, committed: dict[TopicPartition, int], *errors: ClientError) -> None:
        self.stored = {partition: OffsetAndMetadata(offset, "", 3) for partition, offset in committed.items()}
        self.errors = list(errors)
        self.committed: dict[TopicPartition, int] = {}
        self.unplaced = {P0: object(), P1: object()}
        self.placed: dict[TopicPartition, Start | None] = {}
        self.placing = Placing("c", cast(ConsumerCore, self), cast(Commits, self), VirtualEnvironment(), policy)

    async def fetch(
        self, partitions: Collection[TopicPartition] | None, deadline_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        await asyncio.sleep(0.1)
        if self.errors:
            raise self.errors.pop(0)
        return {each: found for each, found in self.stored.items() if partitions is None or each in partitions}

    def token(self, partition: TopicPartition) -> object | None:
        return self.unplaced.get(partition)

    def is_unplaced(self, partition: TopicPartition) -> bool:
        return partition in self.unplaced

    def place(self, partition: TopicPartition, start: Start | None) -> None:
        del self.unplaced[partition]
        self.placed[partition] = start


async def test_reading_begins_at_what_is_committed_and_else_as_the_setting_says() -> None:
    for policy in ("earliest", "none"):
        world = World(policy, {P0: 5})
        await world.placing.place([P0, P1])
        assert world.placed == {P0: Start.at_offset(5, 3), P1: None}
        assert world.committed == world.placing.begun == {P0: 5}


@pytest.mark.parametrize(
    ("committed", "start"), [({}, None), ({P1: 4}, Start.earliest()), ({OTHER: 4}, Start.earliest())]
)
async def test_latest_is_for_a_group_without_any_offset(
    committed: dict[TopicPartition, int], start: Start | None
) -> None:
    world = World("latest", committed)
    await world.placing.place([P0, P1])
    assert world.placed[P0] == start


async def test_what_is_taken_away_or_sought_meanwhile_is_left_alone() -> None:
    world = World("earliest", {P0: 5, P1: 6})
    task = asyncio.get_running_loop().create_task(world.placing.place([P0, P1]))
    await asyncio.sleep(0.05)
    world.unplaced = {P0: object()}
    await task
    assert world.placed == {}


async def test_what_passes_is_waited_for_and_what_does_not_is_raised() -> None:
    passing = [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH]
    world = World("earliest", {P0: 5, P1: 6}, *(broker_error(code, "", "OffsetFetch") for code in passing))
    await world.placing.place([P0, P1])
    assert world.placed == {P0: Start.at_offset(5, 3), P1: Start.at_offset(6, 3)}
    world = World("earliest", {}, broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "", "OffsetFetch"))
    with pytest.raises(ClientError, match="GROUP_AUTHORIZATION_FAILED"):
        await world.placing.place([P0])
    assert world.placed == {}


@pytest.mark.parametrize("committed", [{}, {OTHER: 4}])
async def test_what_was_read_before_goes_back_to_where_it_began(committed: dict[TopicPartition, int]) -> None:
    """Also in a group with offsets: what came before that was not to be read."""
    world = World("latest", committed)
    world.stored[P1] = OffsetAndMetadata(9, "", 3)
    await world.placing.place([P0, P1], {P0: Start.at_offset(7), P1: Start.at_offset(8)})
    assert world.placed == {P0: Start.at_offset(7), P1: Start.at_offset(9, 3)}
