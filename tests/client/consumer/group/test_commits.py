"""Commits against a coordinator that answers by script: what passes is asked again, what is refused since the group has
gone on tells the membership and is never an offset, and of other errors the caller hears."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from odradek.client.consumer.group.commits import Commits
from odradek.client.consumer.group.coordinator import Coordinator
from odradek.client.consumer.group.offsets import CommitFailed, CommitOutcome, OffsetAndMetadata
from odradek.client.consumer.membership.membership import Identity
from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {P0: OffsetAndMetadata(7), P1: OffsetAndMetadata(9)}
BOTH = dict.fromkeys(OFFSETS, CommitOutcome.COMMITTED)

Script = list[ErrorCode | ClientError | Callable[[], ErrorCode]]


class World:
    """A coordinator, by script, and the consumer that commits."""

    def __init__(self, *script: ErrorCode | ClientError | Callable[[], ErrorCode]) -> None:
        self.script: Script = list(script)
        self.node_id: int | None = 1
        self.sent: list[tuple[int, dict[TopicPartition, int]]] = []
        self.generation = 1
        self.is_member = True
        self.has_epoch = False
        self.tokens: dict[TopicPartition, object] = {P0: object(), P1: object()}
        self.told: list[ErrorCode] = []
        self.lost_nodes: list[int] = []
        environment = VirtualEnvironment()
        backoff = Backoff(100, 1_000, environment.random)
        self.commits = Commits(cast(Coordinator, self), self, environment, backoff, 30_000)
        self._environment = environment

    @property
    def deadline_ms(self) -> float:
        return self._environment.monotonic_ms() + 5_000

    # -- a committer
    @property
    def identity(self) -> Identity:
        return Identity("g", "m", self.generation, None)

    def token(self, partition: TopicPartition) -> object | None:
        return self.tokens.get(partition)

    def refused(self, identity: Identity, code: ErrorCode) -> None:
        self.told.append(code)

    def coordinator_lost(self, node_id: int) -> None:
        self.lost_nodes.append(node_id)

    # -- a coordinator
    async def find(self, timeout_ms: float) -> int:
        self.node_id = 2
        return 2

    def lost(self, node_id: int) -> None:
        self.node_id = None

    async def ask(self, node_id: int, request: Any, **_: Any) -> Any:
        await asyncio.sleep(0.01)
        step = self.script.pop(0) if self.script else ErrorCode.NONE
        if isinstance(step, ClientError):
            raise step
        code = step if isinstance(step, ErrorCode) else step()
        if isinstance(request, OffsetFetchRequest):
            row = OffsetFetchResponsePartitions(partition_index=0, committed_offset=7, metadata="")
            topics = [OffsetFetchResponseTopics(name="t", partitions=[row])]
            group = OffsetFetchResponseGroup(group_id="g", topics=[] if code else topics, error_code=code)
            return OffsetFetchResponse(groups=[group])
        assert isinstance(request, OffsetCommitRequest)
        rows = [
            (TopicPartition(topic.name, each.partition_index), each)
            for topic in request.topics
            for each in topic.partitions
        ]
        self.sent.append((request.generation_id_or_member_epoch, {each: row.committed_offset for each, row in rows}))
        answers = [OffsetCommitResponsePartition(partition_index=each.partition, error_code=code) for each, _ in rows]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=answers)])


@pytest.mark.parametrize(
    "passing",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ConnectionFailed("broker 1"),
    ],
)
async def test_what_passes_is_asked_again(passing: ErrorCode | ClientError) -> None:
    world = World(passing, passing)
    assert await world.commits.commit(OFFSETS, world.deadline_ms) == BOTH
    assert world.commits.committed == {P0: 7, P1: 9}
    moved = passing not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS)
    assert world.lost_nodes == ([1, 2] if moved else [])


GONE_ON = [
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
]


@pytest.mark.parametrize("code", GONE_ON)
async def test_a_group_that_has_gone_on_is_told_to_the_membership(code: ErrorCode) -> None:
    def loses() -> ErrorCode:
        del world.tokens[P0]
        world.generation = 2
        return code

    world = World(loses)
    outcomes = await world.commits.commit(OFFSETS, world.deadline_ms)
    assert outcomes == {P0: CommitOutcome.NOT_OURS, P1: CommitOutcome.COMMITTED}
    assert world.told == [code]
    assert [generation for generation, _ in world.sent] == [1, 2]
    assert world.sent[1][1] == {P1: 9}


@pytest.mark.parametrize("code", GONE_ON)
async def test_an_offset_is_never_made_of_such_an_error(code: ErrorCode) -> None:
    world = World(code, code, ErrorCode.NONE)
    assert await world.commits.fetch([P0], world.deadline_ms) == {P0: OffsetAndMetadata(7)}
    assert world.told == [code, code]
    world = World(*[code] * 100)
    with pytest.raises(ClientError) as raised:
        await world.commits.fetch([P0], world.deadline_ms)
    assert raised.value.code is code
    world = World(*[code] * 100)
    assert set((await world.commits.commit(OFFSETS, world.deadline_ms)).values()) == {CommitOutcome.NOT_OURS}


async def test_what_is_given_to_others_meanwhile_is_not_ours_though_it_comes_back() -> None:
    def moves() -> ErrorCode:
        world.tokens[P0] = object()
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    world = World(moves)
    outcomes = await world.commits.commit(OFFSETS, world.deadline_ms)
    assert outcomes == {P0: CommitOutcome.NOT_OURS, P1: CommitOutcome.COMMITTED}


async def test_other_errors_are_raised_with_what_was_committed() -> None:
    world = World(ErrorCode.OFFSET_METADATA_TOO_LARGE)
    with pytest.raises(CommitFailed, match="OFFSET_METADATA_TOO_LARGE") as raised:
        await world.commits.commit(OFFSETS, world.deadline_ms)
    assert raised.value.errors.keys() == OFFSETS.keys()
    assert not raised.value.retriable
    world = World(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100)
    with pytest.raises(CommitFailed) as raised:
        await world.commits.commit(OFFSETS, world.deadline_ms)
    assert raised.value.retriable


async def test_from_outside_a_group_with_members_is_an_error() -> None:
    world = World(ErrorCode.UNKNOWN_MEMBER_ID)
    world.is_member = False
    with pytest.raises(CommitFailed, match="UNKNOWN_MEMBER_ID") as raised:
        await world.commits.commit(OFFSETS, world.deadline_ms)
    assert "they, and nobody else, commit for it" in str(raised.value.errors[P0])


async def test_an_older_commit_is_never_repeated_behind_a_newer_one() -> None:
    world = World(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    loop = asyncio.get_running_loop()
    older = loop.create_task(world.commits.commit({P0: OffsetAndMetadata(3)}, world.deadline_ms))
    await asyncio.sleep(0.001)
    newer = loop.create_task(world.commits.commit({P0: OffsetAndMetadata(5)}, world.deadline_ms))
    await asyncio.gather(older, newer)
    assert [offsets[P0] for _, offsets in world.sent] == [3, 3, 3, 5]


async def test_who_cannot_have_its_turn_in_time_is_told() -> None:
    world = World(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100)
    loop = asyncio.get_running_loop()
    first = loop.create_task(world.commits.commit(OFFSETS, world.deadline_ms))
    await asyncio.sleep(0.001)
    with pytest.raises(CommitFailed, match="has not answered OffsetCommit"):
        await world.commits.commit(OFFSETS, world.deadline_ms - 4_000)
    with pytest.raises(CommitFailed):
        await first


async def test_between_two_generations_nothing_is_sent() -> None:
    world = World()
    world.generation = -1
    loop = asyncio.get_running_loop()
    waiting = loop.create_task(world.commits.commit(OFFSETS, world.deadline_ms))
    await asyncio.sleep(0.5)
    assert world.sent == []
    world.generation = 2
    assert await waiting == BOTH
    assert [generation for generation, _ in world.sent] == [2]


async def test_commits_under_way_are_waited_for_until_the_deadline() -> None:
    world = World(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3)
    assert await world.commits.ended(world.deadline_ms), "there is none"
    under_way = asyncio.get_running_loop().create_task(world.commits.commit(OFFSETS, world.deadline_ms))
    await asyncio.sleep(0.001)
    assert not await world.commits.ended(world.deadline_ms - 4_900)
    assert not under_way.done()
    assert await world.commits.ended(world.deadline_ms)
    assert under_way.done()
