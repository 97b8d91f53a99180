"""Fetch in sessions (KIP-227): an answer holds what is new, and a client out of step starts anew."""

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition
from tests.broker.api.fetching import (
    BY_ID,
    BY_NAME,
    FINAL,
    INITIAL,
    fetched,
    offsets,
    request,
    told,
    wanted,
    with_records,
)
from tests.broker.support import append, ask, batch, running_broker


async def session_of(context: Context, *partitions: FetchPartition) -> int:
    """A session that has been told everything there is."""
    response = await ask(context, request(*partitions, session=(0, INITIAL)), BY_NAME)
    assert len(told(response)) == len(partitions)
    assert response.session_id > 0
    return response.session_id


async def test_a_session_answers_only_what_is_new() -> None:
    async with running_broker() as context:
        partition = await with_records(context, partitions=3)
        session = await session_of(context, wanted(0, 3), wanted(1), wanted(2))
        nothing = await ask(context, request(session=(session, 1)), BY_NAME)
        append(partition, batch(b"d"))
        news = await ask(context, request(session=(session, 2)), BY_NAME)
    assert (nothing.session_id, told(nothing)) == (session, [])
    assert [(answer.partition_index, offsets(answer)) for answer in told(news)] == [(0, [3])]


async def test_a_moved_log_start_is_news() -> None:
    async with running_broker() as context:
        partition = await with_records(context)
        session = await session_of(context, wanted(0, 3))
        await context.partitions.delete_records(partition, 2)
        (answer,) = await fetched(context, request(session=(session, 1)))
    assert (answer.log_start_offset, offsets(answer)) == (2, [])


async def test_a_session_takes_new_offsets_new_partitions_and_forgets_others() -> None:
    async with running_broker() as context:
        await with_records(context, partitions=2)
        session = await session_of(context, wanted(0, 3))
        both = await fetched(context, request(wanted(0, 1), wanted(1), session=(session, 1)))
        one = await fetched(context, request(wanted(1), session=(session, 2), forgotten=(0,)))
        append(context.partitions.leader("orders", 0), batch(b"d"))
        silent = await fetched(context, request(session=(session, 3)))
    assert [(answer.partition_index, offsets(answer)) for answer in both] == [(0, [1, 2]), (1, [])]
    assert one == []
    assert silent == []


async def test_an_error_is_told_again_until_it_is_over() -> None:
    async with running_broker() as context:
        await with_records(context)
        session = await session_of(context, wanted(0, 3), wanted(7))
        for epoch in (1, 2):
            (answer,) = await fetched(context, request(session=(session, epoch)))
            assert (answer.partition_index, answer.error_code) == (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize(
    ("epoch", "known", "code"),
    [
        (5, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ],
)
async def test_a_session_out_of_step_is_refused_as_a_whole(epoch: int, known: bool, code: ErrorCode) -> None:
    async with running_broker() as context:
        await with_records(context)
        session = await session_of(context, wanted(0, 3))
        response = await ask(context, request(session=(session if known else session + 1, epoch)), BY_NAME)
    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


async def test_a_session_by_names_does_not_go_on_by_ids() -> None:
    async with running_broker() as context:
        await with_records(context)
        session = await session_of(context, wanted(0, 3))
        response = await ask(context, request(session=(session, 1)), BY_ID)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


async def test_a_final_fetch_closes_its_session() -> None:
    async with running_broker() as context:
        await with_records(context)
        session = await session_of(context, wanted(0, 3))
        last = await ask(context, request(wanted(0, 0), session=(session, FINAL)), BY_NAME)
        after = await ask(context, request(session=(session, 1)), BY_NAME)
    assert (last.session_id, [offsets(answer) for answer in told(last)]) == (0, [[0, 1, 2]])
    assert after.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_without_room_for_sessions_a_full_fetch_is_answered_without_one() -> None:
    async with running_broker({"max.incremental.fetch.session.cache.slots": "0"}) as context:
        await with_records(context)
        response = await ask(context, request(wanted(), session=(0, INITIAL)), BY_NAME)
    assert (response.session_id, [offsets(answer) for answer in told(response)]) == (0, [[0, 1, 2]])
