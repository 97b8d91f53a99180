"""ListTransactions: the transactional ids that are coordinated here and pass all filters of the request."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tests.broker.support import ask, running_broker
from tests.broker.transactions import Denying, Producer, completed, lead, running_transactions

pytestmark = pytest.mark.virtual_time
VERSIONS = pytest.mark.parametrize("version", range(3))


async def three(context: Context) -> list[Producer]:
    """One that has begun nothing, one with an open transaction, one that has committed."""
    producers = [Producer(context, name) for name in ("empty", "open", "over")]
    for producer in producers:
        await producer.init()
    for producer in producers[1:]:
        await producer.send(b"a")
    await producers[2].end(commit=True)
    await completed(context, "over")
    return producers


async def listed(context: Context, version: int = 2, **filters: Any) -> ListTransactionsResponse:
    return await ask(context, ListTransactionsRequest(**filters), version)


def names(answer: ListTransactionsResponse) -> Sequence[str]:
    assert answer.error_code == ErrorCode.NONE
    return sorted(each.transactional_id for each in answer.transaction_states)


@VERSIONS
async def test_without_filters_all_are_listed_with_their_states(version: int) -> None:
    async with running_transactions() as context:
        producers = await three(context)
        answer = await listed(context, version)
        told = {each.transactional_id: (each.producer_id, each.transaction_state) for each in answer.transaction_states}
        assert told == {
            "empty": (producers[0].producer_id, "Empty"),
            "open": (producers[1].producer_id, "Ongoing"),
            "over": (producers[2].producer_id, "CompleteCommit"),
        }
        assert answer.unknown_state_filters == []


@VERSIONS
async def test_filters_of_states_and_producers_have_to_be_passed_both(version: int) -> None:
    async with running_transactions() as context:
        producers = await three(context)
        ids = [each.producer_id for each in producers]
        assert names(await listed(context, version, state_filters=["Ongoing", "Empty"])) == ["empty", "open"]
        assert names(await listed(context, version, producer_id_filters=[ids[2], ids[1]])) == ["open", "over"]
        both = await listed(context, version, state_filters=["Ongoing"], producer_id_filters=[ids[0], ids[1]])
        assert names(both) == ["open"]


@VERSIONS
async def test_states_that_there_are_not_are_told_and_let_nothing_pass(version: int) -> None:
    async with running_transactions() as context:
        await three(context)
        answer = await listed(context, version, state_filters=["Onging", "Dead", "PrepareEpochFence"])
        assert (names(answer), answer.unknown_state_filters) == ([], ["Onging"]), "Kafka knows the others"


@pytest.mark.parametrize("version", [1, 2])
async def test_a_duration_lets_pass_what_has_been_open_for_longer(version: int) -> None:
    async with running_transactions() as context:
        await three(context)
        await asyncio.sleep(5)
        assert names(await listed(context, version, duration_filter=4_900)) == ["open"]
        assert names(await listed(context, version, duration_filter=5_100)) == []
        assert len(names(await listed(context, version, duration_filter=-1))) == 3


async def test_a_pattern_matches_the_whole_id() -> None:
    pytest.importorskip("re2")
    async with running_transactions() as context:
        await three(context)
        assert names(await listed(context, transactional_id_pattern="o.*")) == ["open", "over"]
        assert names(await listed(context, transactional_id_pattern="pen")) == []
        assert len(names(await listed(context, transactional_id_pattern=""))) == 3
        answer = await listed(context, transactional_id_pattern="(")
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


@VERSIONS
async def test_ids_that_the_caller_may_not_see_are_left_out(version: int) -> None:
    access = Denying((Operation.DESCRIBE, of_transactional_id("open")))
    async with running_transactions(access=access) as context:
        await three(context)
        assert names(await listed(context, version)) == ["empty", "over"]


@VERSIONS
async def test_while_a_partition_is_loaded_the_client_asks_again(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    async with running_transactions() as context:
        await three(context)
        monkeypatch.setattr(context.transactions.shards.at(1), "state", ShardState.LOADING)
        answer = await listed(context, version)
        assert (answer.error_code, answer.transaction_states) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])


@VERSIONS
async def test_what_another_broker_coordinates_is_not_listed(version: int) -> None:
    async with running_transactions() as context:
        await three(context)
        await lead(context, "__transaction_state", 0, 1)
        left = [name for name in ("empty", "open", "over") if context.transactions.shards.index_of(name) == 1]
        assert names(await listed(context, version)) == left
    async with running_broker() as context:
        assert names(await listed(context, version)) == []
