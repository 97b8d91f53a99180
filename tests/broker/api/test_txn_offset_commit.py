"""TxnOffsetCommit: offsets that count when the transaction is committed; who may commit them (KIP-447)."""

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource, of_group, of_topic, of_transactional_id
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.handling.context import Context
from odradek.broker.txn.inclusion import Inclusions
from odradek.broker.txn.peer_requests import Included, Inclusion
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.groups import GROUP, NOWHERE, Member, fetch, generation
from tests.broker.support import make_topic
from tests.broker.transactions import (
    PAYMENTS,
    Denying,
    Producer,
    completed,
    described,
    lead,
    running_transactions,
    state_of,
)

pytestmark = pytest.mark.virtual_time
VERSIONS = pytest.mark.parametrize("version", range(7))
FIRST, SECOND, UNKNOWN, NOT_THERE = ("orders", 0), ("orders", 1), ("orders", 3), ("nowhere", 0)
INCLUDES_SINCE = 5


async def new_producer(context: Context, *, includes_group: bool = True) -> Producer:
    """`includes_group`: it has told the coordinator, as producers before version 5 have to."""
    producer = Producer(context)
    assert await producer.init() is ErrorCode.NONE
    if includes_group:
        assert await producer.add_offsets() is ErrorCode.NONE
    return producer


# -- what counts when ----------------------------------------------------------------------------------------------


@VERSIONS
async def test_offsets_count_when_the_transaction_is_committed(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        done = await producer.commit_offsets({FIRST: 7, SECOND: 8}, version=version)
        assert done == {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE}
        assert await fetch(context, [FIRST]) == {FIRST: NOWHERE}
        await producer.end(commit=True)
        await completed(context)
        found = await fetch(context, [FIRST, SECOND])
        assert [found[each][0] for each in (FIRST, SECOND)] == [7, 8]


@VERSIONS
async def test_the_coordinator_has_to_know_of_the_group_before_version_5(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context, includes_group=False)
        done = await producer.commit_offsets({FIRST: 7, SECOND: 8}, version=version)
        if version >= INCLUDES_SINCE:
            expected = ErrorCode.NONE
        else:
            expected = ErrorCode.TRANSACTION_ABORTABLE if version == 4 else ErrorCode.INVALID_TXN_STATE
        assert done == {FIRST: expected, SECOND: expected}
        assert await state_of(context) == ("Ongoing" if version >= INCLUDES_SINCE else "Empty")


@VERSIONS
async def test_partitions_that_there_are_not_are_refused_and_the_others_committed(version: int) -> None:
    access = Denying((Operation.READ, of_topic("secret")))
    async with running_transactions(access=access) as context:
        await make_topic(context, "secret")
        producer = await new_producer(context)
        assert await producer.commit_offsets(
            {FIRST: 7, UNKNOWN: 7, NOT_THERE: 7, ("secret", 0): 7}, version=version
        ) == {
            FIRST: ErrorCode.NONE,
            UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            NOT_THERE: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 6 else ErrorCode.UNKNOWN_TOPIC_ID,
            ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }


@pytest.mark.parametrize("version", [5, 6])
async def test_where_nothing_is_left_to_commit_the_group_is_not_included(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context, includes_group=False)
        done = await producer.commit_offsets({UNKNOWN: 7, NOT_THERE: 7}, version=version)
        by_id = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 6 else ErrorCode.UNKNOWN_TOPIC_ID
        assert done == {UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_THERE: by_id}
        assert await state_of(context) == "Empty"


async def test_offsets_of_a_topic_that_is_deleted_meanwhile_go_with_it() -> None:

    async with running_transactions() as context:
        await make_topic(context, "other")
        producer = await new_producer(context)
        await producer.commit_offsets({FIRST: 7, ("other", 0): 8})
        topic = context.metadata.image.topics["other"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        await producer.end(commit=True)
        await completed(context)
        await make_topic(context, "other")
        found = await fetch(context, [FIRST, ("other", 0)])
        assert (found[FIRST][0], found["other", 0]) == (7, NOWHERE)


# -- who may -------------------------------------------------------------------------------------------------------


@VERSIONS
async def test_who_is_fenced_is_told_of_an_invalid_epoch(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        await new_producer(context)
        done = await producer.commit_offsets({FIRST: 7}, version=version)
        assert done == {FIRST: ErrorCode.INVALID_PRODUCER_EPOCH}


@VERSIONS
@pytest.mark.parametrize(
    ("resource", "operation", "code"),
    [
        (of_transactional_id(PAYMENTS), Operation.WRITE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (of_group(GROUP), Operation.READ, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (of_topic("orders"), Operation.READ, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
    ids=["id", "group", "topic"],
)
async def test_it_asks_for_the_transactional_id_the_group_and_the_topics(
    version: int, resource: Resource, operation: Operation, code: ErrorCode
) -> None:
    access = Denying()
    async with running_transactions(access=access) as context:
        producer = await new_producer(context, includes_group=False)
        access.denied = ((operation, resource),)
        assert await producer.commit_offsets({FIRST: 7, SECOND: 7}, version=version) == {FIRST: code, SECOND: code}
        assert await state_of(context) == "Empty"


@VERSIONS
async def test_unknown_and_empty_ids_are_refused(version: int) -> None:
    async with running_transactions() as context:
        for transactional_id, group_id, code in (
            ("unknown", GROUP, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
            ("", GROUP, ErrorCode.INVALID_REQUEST),
            ("unknown", "", ErrorCode.INVALID_GROUP_ID),
        ):
            stranger = Producer(context, transactional_id)
            stranger.producer_id = stranger.epoch = 0
            assert await stranger.commit_offsets({FIRST: 7}, group_id, version=version) == {FIRST: code}


@pytest.mark.parametrize("version", [3, 4, 5, 6])
async def test_a_member_commits_in_its_generation_and_in_no_other(version: int) -> None:
    async with running_transactions() as context:
        member = Member(context)
        await generation(member)
        producer = await new_producer(context)

        async def commit(member_id: str, generation_id: int) -> ErrorCode:
            done = await producer.commit_offsets(
                {FIRST: 7}, version=version, member_id=member_id, generation=generation_id
            )
            return done[FIRST]

        assert await commit(member.member_id, member.generation) is ErrorCode.NONE
        assert await commit(member.member_id, member.generation + 1) is ErrorCode.ILLEGAL_GENERATION
        assert await commit("stranger", member.generation) is ErrorCode.UNKNOWN_MEMBER_ID
        assert await commit("", -1) is ErrorCode.NONE, "who does not know its consumer, as versions before 3"


# -- coordinators that are not there ---------------------------------------------------------------------------------


@VERSIONS
async def test_while_the_group_is_loaded_old_clients_are_told_what_they_know(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        monkeypatch.setattr(context.groups.of(GROUP), "state", ShardState.LOADING)
        done = await producer.commit_offsets({FIRST: 7}, version=version)
        known = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert done == {FIRST: known}


@VERSIONS
async def test_another_brokers_group_is_not_coordinated_here(version: int) -> None:
    async with running_transactions() as context:
        producer = await new_producer(context)
        await lead(context, "__consumer_offsets", context.groups.index_of(GROUP) or 0, 1)
        assert await producer.commit_offsets({FIRST: 7}, version=version) == {FIRST: ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("code", "version", "told"),
    [
        (ErrorCode.CONCURRENT_TRANSACTIONS, 4, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 5, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.NOT_COORDINATOR, 5, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 5, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
async def test_what_the_coordinator_of_the_transaction_says_is_not_taken_for_the_groups(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, version: int, told: ErrorCode
) -> None:
    """A client would look for the group's coordinator again; those before version 5 give up at some of these."""

    async def refuse(inclusions: Inclusions, question: Inclusion) -> Included:
        del inclusions, question
        raise KafkaError(code, "because")

    async with running_transactions() as context:
        producer = await new_producer(context)
        monkeypatch.setattr(Inclusions, "ask", refuse)
        assert await producer.commit_offsets({FIRST: 7}, version=version) == {FIRST: told}
        assert (await described(context)).error_code == ErrorCode.NONE
