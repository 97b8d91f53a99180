"""OffsetCommit: each partition is answered for itself, in every version; who may commit, and what is refused."""

import asyncio

import pytest

from odradek.broker.cluster.topics import delete_topic
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.groups import (
    GROUP,
    NOWHERE,
    Member,
    commit,
    describe,
    eventually,
    fetch,
    generation,
    machine,
    running_groups,
)
from tests.broker.support import ask, make_topic

VERSIONS = range(2, 11)
FIRST, SECOND = ("orders", 0), ("orders", 1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_without_a_group_a_commit_makes_a_simple_one(version: int) -> None:
    async with running_groups() as context:
        done = await commit(context, {FIRST: 7}, version, metadata="half way", leader_epoch=3)
        assert done == {FIRST: ErrorCode.NONE}
        assert await fetch(context, [FIRST]) == {FIRST: (7, 3 if version >= 6 else -1, "half way", ErrorCode.NONE)}
        group = await describe(context)
        assert (group.group_state, group.protocol_type) == ("Empty", "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_member_commits_in_its_generation_and_in_no_other(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        await generation(member)
        assert await member.commit({FIRST: 7}, version) == {FIRST: ErrorCode.NONE}
        member.generation = 2
        assert await member.commit({FIRST: 8}, version) == {FIRST: ErrorCode.ILLEGAL_GENERATION}
        assert await commit(context, {FIRST: 8}, version) == {FIRST: ErrorCode.UNKNOWN_MEMBER_ID}, "from outside"
        member.generation, member.member_id = 1, "nobody"
        assert await member.commit({FIRST: 8}, version) == {FIRST: ErrorCode.UNKNOWN_MEMBER_ID}
        assert (await fetch(context, [FIRST]))[FIRST][0] == 7
        assert context.metrics.apis["OffsetCommit"].errors == {
            ErrorCode.ILLEGAL_GENERATION: 1,
            ErrorCode.UNKNOWN_MEMBER_ID: 2,
        }


async def test_a_generation_of_a_group_that_there_is_not_is_refused_as_the_version_knows() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
            assert await commit(context, {FIRST: 7}, version, member_id="a", generation_id=1) == {FIRST: expected}
            assert machine(context).groups == {}


async def test_a_static_member_that_was_replaced_is_fenced() -> None:
    async with running_groups() as context:
        before, after = Member(context, instance_id="till-1"), Member(context, instance_id="till-1")
        await generation(before)
        await after.join()
        assert await before.commit({FIRST: 7}, 7) == {FIRST: ErrorCode.FENCED_INSTANCE_ID}
        assert await after.commit({FIRST: 7}, 9) == {FIRST: ErrorCode.NONE}


async def test_who_does_not_know_its_assignment_yet_does_not_commit() -> None:
    async with running_groups() as context:
        member = Member(context)
        await member.join()
        assert await member.commit({FIRST: 7}) == {FIRST: ErrorCode.REBALANCE_IN_PROGRESS}


async def test_while_members_join_again_the_generation_that_ends_still_commits() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice)
        joining = asyncio.ensure_future(bob.join())
        await eventually(alice.heartbeat, ErrorCode.REBALANCE_IN_PROGRESS)
        assert await alice.commit({FIRST: 7}) == {FIRST: ErrorCode.NONE}
        joining.cancel()


async def test_each_partition_has_its_own_answer() -> None:
    async with running_groups() as context:
        wanted = {FIRST: 1, ("orders", 3): 2, ("orders", -1): 3, ("nothing", 0): 4, SECOND: 5}
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await commit(context, wanted) == {
            FIRST: ErrorCode.NONE,
            ("orders", 3): unknown,
            ("orders", -1): unknown,
            SECOND: ErrorCode.NONE,
            ("nothing", 0): unknown,
        }
        assert {key: each[0] for key, each in (await fetch(context, None)).items()} == {FIRST: 1, SECOND: 5}


async def test_by_ids_each_partition_has_its_own_answer_and_topics_that_there_are_not() -> None:
    async with running_groups() as context:
        wanted = {FIRST: 1, ("orders", 3): 2, ("nothing", 0): 4, SECOND: 5}
        assert await commit(context, wanted, 10) == {
            FIRST: ErrorCode.NONE,
            ("orders", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            SECOND: ErrorCode.NONE,
            ("nothing", 0): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        assert {key: each[0] for key, each in (await fetch(context, None)).items()} == {FIRST: 1, SECOND: 5}


async def test_the_id_of_a_topic_made_anew_is_not_that_of_the_one_before() -> None:
    async with running_groups() as context:
        before = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, before))
        await make_topic(context, "orders", 3)
        old = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
        topic = OffsetCommitRequestTopic(topic_id=before.topic_id, partitions=[old])
        [answer] = (await ask(context, OffsetCommitRequest(group_id=GROUP, topics=[topic]), 10)).topics
        assert (answer.topic_id, answer.partitions[0].error_code) == (before.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        assert await fetch(context, [FIRST]) == {FIRST: NOWHERE}


@pytest.mark.parametrize(
    ("version", "code"), [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (10, ErrorCode.UNKNOWN_TOPIC_ID)]
)
async def test_where_nothing_can_be_committed_the_group_is_not_asked(version: int, code: ErrorCode) -> None:
    async with running_groups() as context:
        wanted = {("nothing", 0): 4}
        assert await commit(context, wanted, version, member_id="a", generation_id=1) == {("nothing", 0): code}
        assert (await ask(context, OffsetCommitRequest(group_id=GROUP, topics=[]), version)).topics == []
        assert machine(context).groups == {}


async def test_metadata_that_is_too_long_is_refused_and_the_rest_is_committed() -> None:
    async with running_groups({"offset.metadata.max.bytes": "4"}) as context:
        assert await commit(context, {FIRST: 7}, metadata="12345") == {FIRST: ErrorCode.OFFSET_METADATA_TOO_LARGE}
        assert machine(context).groups == {}, "a group of which there is nothing is forgotten"
        assert await commit(context, {FIRST: 7}, metadata="äöüß") == {FIRST: ErrorCode.NONE}
        assert await fetch(context, [FIRST]) == {FIRST: (7, -1, "äöüß", ErrorCode.NONE)}


async def test_no_metadata_is_stored_as_an_empty_text() -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7}, metadata=None)
        assert (await fetch(context, [FIRST]))[FIRST] == (7, -1, "", ErrorCode.NONE)


async def test_a_group_without_a_name_may_commit_as_ever() -> None:
    async with running_groups() as context:
        assert await commit(context, {FIRST: 7}, group_id="") == {FIRST: ErrorCode.NONE}
        assert (await fetch(context, [FIRST], group_id=""))[FIRST][0] == 7


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_a_retention_time_gives_the_offset_a_time_of_its_own_to_expire(version: int) -> None:
    async with running_groups({"offsets.retention.check.interval.ms": "20"}) as context:
        await commit(context, {FIRST: 7}, version, retention_ms=30)
        await commit(context, {SECOND: 8}, version)
        assert (await fetch(context, [FIRST]))[FIRST][0] == 7
        await eventually(lambda: fetch(context, [FIRST]), {FIRST: NOWHERE}, every_ms=10)
        assert (await fetch(context, [SECOND]))[SECOND][0] == 8


async def test_what_the_log_does_not_take_was_never_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "not now")

    async with running_groups() as context:
        await commit(context, {FIRST: 7})
        with monkeypatch.context() as patch:
            patch.setattr(Partition, "append", refuse)
            assert await commit(context, {FIRST: 8}) == {FIRST: ErrorCode.COORDINATOR_NOT_AVAILABLE}
            refused = await commit(context, {FIRST: 8}, group_id="invoices")
            assert refused == {FIRST: ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert (await fetch(context, [FIRST]))[FIRST][0] == 7
        assert "invoices" not in machine(context, "invoices").groups


async def test_other_brokers_groups_are_not_committed_here() -> None:
    async with running_groups() as context:
        context.groups.stop()
        assert await commit(context, {FIRST: 7}) == {FIRST: ErrorCode.NOT_COORDINATOR}


async def test_a_deleted_topic_takes_its_offsets_along() -> None:
    async with running_groups(topics=("orders", "bills")) as context:
        await commit(context, {FIRST: 7, ("bills", 0): 8})
        await ask(context, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5000), 5)
        await eventually(lambda: fetch(context, None), {("bills", 0): (8, -1, "", ErrorCode.NONE)})
