"""Admin's calls about transactional ids, on a scripted cluster in memory and virtual time."""

from typing import Any

import pytest

from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.transactions import (
    FencedProducer,
    TransactionDescription,
    TransactionListing,
    UnknownStates,
)
from odradek.client.errors.client_errors import BrokerError, UnsupportedVersion
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from tests.client.broker_faults import disconnect_after
from tests.client.groups_scene import codes
from tests.client.transactions_scene import P0, P2, asking

pytestmark = pytest.mark.virtual_time

MOVES = [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def listed(found: list[TransactionListing]) -> list[str]:
    return [each.transactional_id for each in found]


# ------------------------------------------------------------------------------------------------------------- listing
async def test_the_ids_of_all_brokers_are_listed_in_order() -> None:
    async with asking() as (admin, _, served):
        served.add("c", 7, node=0)
        served.add("a", 8, node=2, state="Ongoing")
        served.add("b", 9, node=1, state="CompleteAbort")
        assert await admin.list_transactions() == [
            TransactionListing("a", 8, "Ongoing", 2),
            TransactionListing("b", 9, "CompleteAbort", 1),
            TransactionListing("c", 7, "Empty", 0),
        ]
        assert listed(await admin.list_transactions(["Ongoing", "Empty"])) == ["a", "c"]
        assert listed(await admin.list_transactions(producer_ids=[9])) == ["b"]


async def test_filters_are_handed_on_to_every_broker() -> None:
    async with asking() as (admin, scripted, _):
        await admin.list_transactions(["Ongoing"], [7, 8], duration_ms=5_000, pattern="pay.*")
        requests: list[Any] = [each.request for each in scripted.exchanges]
        asked = [each for each in requests if isinstance(each, ListTransactionsRequest)]
        assert len(asked) == 3
        for request in asked:
            assert (request.state_filters, request.producer_id_filters) == (["Ongoing"], [7, 8])
            assert (request.duration_filter, request.transactional_id_pattern) == (5_000, "pay.*")


@pytest.mark.parametrize(
    ("last", "refused"), [(0, [{"duration_ms": 0}, {"pattern": "a"}]), (1, [{"pattern": "a", "duration_ms": 0}])]
)
async def test_what_an_older_broker_cannot_look_for_is_refused(last: int, refused: list[dict[str, Any]]) -> None:
    async with asking({ListTransactionsRequest: last}) as (admin, scripted, served):
        served.add("a", 7, state="Ongoing")
        for filters in refused:
            with pytest.raises(ItemsFailed) as caught:
                await admin.list_transactions(**filters)
            assert all(isinstance(error, UnsupportedVersion) for error in caught.value.errors.values())
        assert scripted.count(ListTransactionsRequest) == 0
        assert listed(await admin.list_transactions(["Ongoing"], [7])) == ["a"]


async def test_states_that_a_broker_does_not_know_are_an_error() -> None:
    async with asking() as (admin, _, _):
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_transactions(["ongoing", "Empty"])
        error = caught.value.errors[1]
        assert isinstance(error, UnknownStates)
        assert error.states == ("ongoing",)
        assert "broker 1 knows no transactions in the state(s) ongoing" in str(error)


async def test_a_broker_that_loads_its_ids_is_waited_for_or_named() -> None:
    async with asking(default_api_timeout_ms=3_000) as (admin, scripted, served):
        served.add("a", 7, node=0)
        served.add("b", 8, node=1)
        served.loading = {1}
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_transactions()
        assert codes(caught.value) == {1: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
        assert listed(list(caught.value.results[0])) == ["a"]
        scripted.network.loop.call_later(1.0, served.loading.clear)
        assert listed(await admin.list_transactions()) == ["a", "b"]


# ---------------------------------------------------------------------------------------------------------- describing
async def test_transactions_are_described_by_their_coordinators() -> None:
    async with asking() as (admin, scripted, served):
        its = served.add("a", 7, node=1, state="Ongoing", places=[("orders", 2), ("orders", 0)])
        its.producer_epoch, its.started_ms, its.timeout_ms = 4, 5_000, 30_000
        served.add("b", 8, node=2)
        assert await admin.describe_transactions(["a", "b"]) == {
            "a": TransactionDescription("a", "Ongoing", 1, 7, 4, 30_000, 5_000, (P0, P2)),
            "b": TransactionDescription("b", "Empty", 2, 8, 0, 60_000, None, ()),
        }
        assert scripted.count(FindCoordinatorRequest) == 1, "both at once"


async def test_an_id_that_does_not_exist_is_not_found() -> None:
    async with asking() as (admin, _, served):
        served.add("a", 7)
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_transactions(["a", "typo"])
        assert codes(caught.value) == {"typo": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
        assert "odradek transactions list" in str(caught.value.errors["typo"])
        assert caught.value.results["a"].producer_id == 7
        with pytest.raises(BrokerError) as one:
            await admin.describe_transaction("typo")
        assert one.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize("code", MOVES)
async def test_a_coordinator_that_is_none_any_more_is_looked_up_again(code: ErrorCode) -> None:
    async with asking() as (admin, scripted, served):
        served.add("a", 7, node=1)
        for _ in range(2):
            await admin.describe_transaction("a")
        assert scripted.count(FindCoordinatorRequest) == 1
        served.errors["a"] = [code]
        assert (await admin.describe_transaction("a")).coordinator_id == 1
        assert scripted.count(FindCoordinatorRequest) == 2


async def test_several_ids_are_looked_up_one_by_one_at_older_brokers() -> None:
    async with asking({FindCoordinatorRequest: 3}) as (admin, scripted, served):
        served.add("a", 7, node=1)
        served.add("b", 8, node=2)
        found = await admin.describe_transactions(["a", "b"])
        assert [each.coordinator_id for each in found.values()] == [1, 2]
        assert scripted.count(FindCoordinatorRequest) == 2


async def test_a_broker_that_coordinates_groups_alone_is_not_asked() -> None:
    """Version 0 of FindCoordinator has no key types: it would look for a group."""
    async with asking({FindCoordinatorRequest: 0}) as (admin, scripted, _):
        with pytest.raises(UnsupportedVersion):
            await admin.describe_transaction("a")
        assert scripted.count(FindCoordinatorRequest) == 0


# ------------------------------------------------------------------------------------------------------------- fencing
async def test_producers_are_fenced_when_their_transactions_are_aborted() -> None:
    async with asking() as (admin, scripted, served):
        served.add("a", 7, node=1, state="Ongoing").producer_epoch = 4
        served.add("b", 8, node=2)
        found = await admin.fence_producers(["a", "b", "new"], timeout_ms=20_000)
        assert found == {"a": FencedProducer(7, 6), "b": FencedProducer(8, 1), "new": FencedProducer(900, 0)}
        assert served.transactions["a"].state == "CompleteAbort"
        requests: list[Any] = [each.request for each in scripted.exchanges]
        asked = [each for each in requests if isinstance(each, InitProducerIdRequest)]
        assert len(asked) == 4, "that of which the transaction was under way twice"
        assert {(each.producer_id, each.producer_epoch) for each in asked} == {(-1, -1)}


async def test_the_time_of_a_fencing_is_that_of_the_call_or_of_a_request() -> None:
    """The coordinator takes it for its own write, too, so that a short one would end that."""
    async with asking(request_timeout_ms=10_000) as (admin, _, served):
        await admin.fence_producers(["a"], timeout_ms=60_000)
        assert served.transactions["a"].timeout_ms == 10_000
        await admin.fence_producers(["a"], timeout_ms=500)
        assert 400 < served.transactions["a"].timeout_ms <= 500


async def test_a_fencing_whose_answer_is_lost_is_repeated() -> None:
    async with asking() as (admin, scripted, served):
        served.add("a", 7, node=1)
        scripted.on(InitProducerIdRequest, disconnect_after())
        assert await admin.fence_producers(["a"]) == {"a": FencedProducer(7, 2)}


async def test_a_fencing_that_is_refused_says_why() -> None:
    async with asking() as (admin, _, served):
        for code, said in (
            (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Write to fence its producer"),
            (ErrorCode.INVALID_TRANSACTION_TIMEOUT, "transaction.max.timeout.ms"),
        ):
            served.errors["a"] = [code]
            with pytest.raises(ItemsFailed) as caught:
                await admin.fence_producers(["a"])
            assert codes(caught.value) == {"a": code}
            assert said in str(caught.value.errors["a"])
