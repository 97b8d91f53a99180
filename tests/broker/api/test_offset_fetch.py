"""OffsetFetch: what was committed comes back, in every version; what was not is -1, and no error."""

from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.api import offset_fetch
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.handling.group_requests import ask_group
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.broker.groups import GROUP, NOWHERE, Member, commit, fetch, fetch_groups, fetched, machine, running_groups
from tests.broker.support import ask, make_topic

VERSIONS = range(1, 11)
FIRST, SECOND, OTHER = ("orders", 0), ("orders", 1), ("bills", 2)


async def test_what_was_committed_comes_back_and_the_rest_is_minus_one() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            await commit(context, {FIRST: 7}, metadata="x", leader_epoch=2)
            epoch = 2 if version >= 5 else -1
            assert await fetch(context, [FIRST, SECOND, ("nothing", 9)], version) == {
                FIRST: (7, epoch, "x", ErrorCode.NONE),
                SECOND: NOWHERE,
                ("nothing", 9): NOWHERE if version < 10 else (-1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
            }


async def test_a_group_that_there_is_not_has_no_offsets_and_no_error() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            assert await fetch(context, [FIRST], version) == {FIRST: NOWHERE}
            assert await fetch(context, [], version) == {}
            if version >= 2:
                assert await fetch(context, None, version) == {}
            assert machine(context).groups == {}


async def test_no_topics_ask_for_all_and_an_empty_list_for_none() -> None:
    async with running_groups(topics=("orders", "bills")) as context:
        for version in VERSIONS[1:]:
            await commit(context, {SECOND: 7, OTHER: 8, FIRST: 9})
            found = await fetch(context, None, version)
            assert {key: each[0] for key, each in found.items()} == {OTHER: 8, FIRST: 9, SECOND: 7}
            assert await fetch(context, [], version) == {}


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_several_groups_are_answered_each_for_itself(version: int) -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7}, group_id="a")
        await commit(context, {FIRST: 8, SECOND: 9}, group_id="b")
        groups = await fetch_groups(context, {"b": None, "a": [FIRST, SECOND], "c": [FIRST], "d": []}, version)
        assert [(group.group_id, group.error_code) for group in groups] == [(each, 0) for each in "bacd"]
        assert [{key: offset for key, (offset, *_) in fetched(group).items()} for group in groups] == [
            {FIRST: 8, SECOND: 9},
            {FIRST: 7, SECOND: -1},
            {FIRST: -1},
            {},
        ]
        assert await fetch_groups(context, {}, version) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_error_of_the_group_is_where_the_version_has_it(version: int) -> None:
    async with running_groups() as context:
        for shard in context.groups.all:
            shard.state = ShardState.LOADING
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if version >= 8:
            [group] = await fetch_groups(context, {GROUP: [FIRST]}, version)
            assert (group.error_code, group.topics) == (code, [])
        else:
            topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
            answer = await ask(context, OffsetFetchRequest(group_id=GROUP, topics=topics), version)
            parts = [(each.committed_offset, each.error_code) for topic in answer.topics for each in topic.partitions]
            assert answer.error_code == (code if version >= 2 else 0)
            assert parts == ([(-1, code)] * 2 if version <= 5 else []), "aiokafka 0.14 reads partitions, and version 3"
        assert context.metrics.apis["OffsetFetch"].errors == {code: 1}


async def test_one_group_that_is_not_coordinated_here_does_not_spoil_the_others() -> None:
    async with running_groups() as context:
        [ours, *_], [theirs, *_] = (
            [name for name in "abcdef" if context.groups.index_of(name) == index] for index in (0, 1)
        )
        await commit(context, {FIRST: 7}, group_id=ours)
        context.groups.leads_no_longer(context.partitions.leader("__consumer_offsets", 1), 0)
        here, there = await fetch_groups(context, {ours: None, theirs: None})
        assert (here.error_code, fetched(here)[FIRST][0]) == (ErrorCode.NONE, 7)
        assert (there.error_code, there.topics) == (ErrorCode.NOT_COORDINATOR, [])


async def test_a_coordinator_that_is_not_available_is_said_as_consumers_know_it() -> None:
    async with running_groups() as context:
        for shard in tuple(context.groups.all):
            shard.failed("the log is damaged")
        [group] = await fetch_groups(context, {GROUP: [FIRST]})
        assert group.error_code == ErrorCode.NOT_COORDINATOR


async def test_of_all_that_a_group_has_what_has_no_id_is_left_out() -> None:
    """A topic that is deleted while the group's offsets are on their way."""
    async with running_groups(topics=("orders", "bills")) as context:
        await commit(context, {FIRST: 7, OTHER: 8})
        image = context.metadata.image
        topics = {name: topic for name, topic in image.topics.items() if name != "bills"}
        context.metadata.image = replace(image, topics=topics)
        assert {key: each[0] for key, each in (await fetch(context, None, 10)).items()} == {FIRST: 7}
        assert {key: each[0] for key, each in (await fetch(context, None, 9)).items()} == {FIRST: 7, OTHER: 8}


async def test_a_topic_made_anew_begins_without_offsets() -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7})
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        await make_topic(context, "orders", 3)
        assert await fetch(context, [FIRST]) == {FIRST: NOWHERE}
        await commit(context, {FIRST: 3})
        assert (await fetch(context, [FIRST]))[FIRST][0] == 3


async def test_an_id_gets_no_offset_of_the_topic_that_is_made_anew_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7})

        async def made_anew(*arguments: Any) -> Any:
            monkeypatch.undo()
            topic = context.metadata.image.topics["orders"]
            await context.metadata.applied(await delete_topic(context.metadata.store, topic))
            await make_topic(context, "orders", 3)
            await commit(context, {FIRST: 99})
            return await ask_group(*arguments)

        monkeypatch.setattr(offset_fetch, "ask_group", made_anew)
        assert (await fetch(context, [FIRST], 10))[FIRST] == NOWHERE
        assert (await fetch(context, [FIRST], 10))[FIRST][0] == 99


@pytest.mark.parametrize("version", [7, 8, 9, 10])
async def test_offsets_of_an_open_transaction_are_waited_for_where_that_is_asked(version: int) -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7, SECOND: 8})
        offsets = machine(context).offsets.offsets
        offsets.commit_pending(1, GROUP, FIRST, offsets.of(GROUP)[FIRST]._replace(offset=9))
        if version >= 8:
            [group] = await fetch_groups(context, {GROUP: [FIRST, SECOND]}, version, require_stable=True)
            found = {key: (offset, code) for key, (offset, _, _, code) in fetched(group).items()}
        else:
            topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
            request = OffsetFetchRequest(group_id=GROUP, topics=topics, require_stable=True)
            [topic] = (await ask(context, request, version)).topics
            found = {
                ("orders", each.partition_index): (each.committed_offset, ErrorCode(each.error_code))
                for each in topic.partitions
            }
        assert found == {FIRST: (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT), SECOND: (8, ErrorCode.NONE)}
        assert (await fetch(context, [FIRST], version))[FIRST][0] == 7


async def test_a_member_may_ask_during_a_rebalance() -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7})
        await Member(context).join()
        assert (await fetch(context, [FIRST]))[FIRST][0] == 7


def unheard() -> None:
    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker hears nothing of the controller")


async def test_nothing_is_told_that_the_next_coordinator_may_have_changed() -> None:
    async with running_groups() as context:
        await commit(context, {FIRST: 7})
        partition = context.groups.of(GROUP).partition
        partition.host = replace(partition.host, require_unfenced=unheard)
        [group] = await fetch_groups(context, {GROUP: [FIRST]})
        assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, [])
