"""FindCoordinator: the leader of the group's partition of `__consumer_offsets`, or of the transactional id's one of
`__transaction_state`, which the first question creates; who has no coordinator gets an error of its own, in both
shapes."""

from collections.abc import Mapping

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_transactional_id
from odradek.broker.cluster.features import ENVELOPE, GROUPS, SUPPORTED
from odradek.broker.coordinator.key_partition import partition_of
from odradek.broker.handling import coordinator_topics
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tests.broker.groups import SETTINGS, finalize, running_groups
from tests.broker.support import HERE, NODE_ID, ask, make_topic, running_broker
from tests.broker.transactions import Denying, lead

SINGLE, SEVERAL = range(4), range(4, 7)
GROUP, TRANSACTION, SHARE = range(3)
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
OF_TRANSACTIONS = {"transaction.state.log.num.partitions": "3"}


def here(key: str, listener: str = "PLAINTEXT") -> Coordinator:
    host, port = HERE.endpoints[listener]
    return Coordinator(key=key, node_id=NODE_ID, host=host, port=port, error_code=0, error_message="")


@pytest.mark.parametrize("version", SINGLE)
async def test_a_group_is_coordinated_here(version: int) -> None:
    async with running_broker(SETTINGS) as context:
        answer = await ask(context, FindCoordinatorRequest(key="billing", key_type=GROUP), version)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None if version == 0 else "NONE")
        assert (answer.node_id, answer.host, answer.port) == (NODE_ID, *HERE.endpoints["PLAINTEXT"])
        assert answer.coordinators == []
        assert len(context.metadata.image.topics[OFFSETS].partitions) == 2


async def test_several_groups_are_answered_in_order() -> None:
    async with running_broker(SETTINGS) as context:
        for version in SEVERAL:
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["b", "a", "", "b"])
            answer = await ask(context, request, version)
            assert answer.coordinators == [here("b"), here("a"), here(""), here("b")]
            external = await ask(context, request, version, listener="EXTERNAL")
            assert external.coordinators[0] == here("b", "EXTERNAL"), "at the address of the listener that was asked"
            assert (await ask(context, FindCoordinatorRequest(coordinator_keys=[]), version)).coordinators == []


async def test_a_group_is_found_by_how_many_partitions_there_are() -> None:
    """An adopted topic may have another count than the option says."""
    async with running_broker(SETTINGS) as context:
        await make_topic(context, OFFSETS, 7, {"cleanup.policy": "compact"})
        assert context.groups.index_of("billing") == partition_of("billing", 7)
        request = FindCoordinatorRequest(coordinator_keys=["billing"])
        assert (await ask(context, request, 6)).coordinators == [here("billing")]


async def test_a_partition_without_a_leader_has_no_coordinator() -> None:
    async with running_broker(SETTINGS) as context:
        await make_topic(context, OFFSETS, 2, {"cleanup.policy": "compact"}, replicas=(1,), leader=-1)
        [found] = (await ask(context, FindCoordinatorRequest(coordinator_keys=["a"]), 6)).coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        assert OFFSETS in (found.error_message or "")


async def nobody(
    context: Context, version: int, key_type: int, *keys: str
) -> Mapping[str, tuple[ErrorCode, str | None]]:
    """Codes and messages, by key, of what has no coordinator."""
    if version < 4:
        [key] = keys
        answer = await ask(context, FindCoordinatorRequest(key=key, key_type=key_type), version)
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)
        assert answer.coordinators == []
        return {key: (ErrorCode(answer.error_code), answer.error_message)}
    request = FindCoordinatorRequest(coordinator_keys=[*keys], key_type=key_type)
    coordinators = (await ask(context, request, version)).coordinators
    assert [each.key for each in coordinators] == [*keys]
    assert {(each.node_id, each.host, each.port) for each in coordinators} == {(-1, "", -1)}
    return {each.key: (ErrorCode(each.error_code), each.error_message) for each in coordinators}


@pytest.mark.parametrize("version", SINGLE[1:])
async def test_a_transactional_id_is_coordinated_here(version: int) -> None:
    async with running_broker(OF_TRANSACTIONS) as context:
        answer = await ask(context, FindCoordinatorRequest(key="payments", key_type=TRANSACTION), version)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, "NONE")
        assert (answer.node_id, answer.host, answer.port) == (NODE_ID, *HERE.endpoints["PLAINTEXT"])
        assert [*context.metadata.image.topics] == [TRANSACTIONS]
        assert len(context.metadata.image.topics[TRANSACTIONS].partitions) == 3


@pytest.mark.parametrize("version", SEVERAL)
async def test_several_transactional_ids_are_answered_in_order_each_by_its_partition(version: int) -> None:
    async with running_broker(OF_TRANSACTIONS) as context:
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["b", "a", "b"])
        assert (await ask(context, request, version)).coordinators == [here("b"), here("a"), here("b")]
        await lead(context, TRANSACTIONS, partition_of("a", 3), 1)
        codes = [each.error_code for each in (await ask(context, request, version)).coordinators]
        assert partition_of("a", 3) != partition_of("b", 3)
        assert codes == [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]


@pytest.mark.parametrize("version", [*SINGLE[1:], *SEVERAL])
async def test_while_a_broker_without_transactions_is_registered_nothing_is_created(version: int) -> None:
    """It may lead partitions of transactions, and knows no markers."""
    async with running_broker(OF_TRANSACTIONS) as context:
        await finalize(context, {ENVELOPE: 1, GROUPS: 1})
        [(code, message)] = (await nobody(context, version, TRANSACTION, "a")).values()
        assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "without coordinators of transactional producers: upgrade it" in (message or "")
        assert TRANSACTIONS not in context.metadata.image.topics


@pytest.mark.parametrize("version", [*SINGLE[1:], *SEVERAL])
async def test_who_may_not_see_the_transactional_id_is_told_nothing(version: int) -> None:
    access = Denying((Operation.DESCRIBE, of_transactional_id("a")))
    async with running_broker(OF_TRANSACTIONS, access=access) as context:
        [(code, _)] = (await nobody(context, version, TRANSACTION, "a")).values()
        assert code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_share_groups_have_no_coordinators_yet() -> None:
    async with running_groups() as context:
        for version in (*SINGLE[1:], *SEVERAL):
            [(code, message)] = (await nobody(context, version, SHARE, "a")).values()
            assert code is (ErrorCode.COORDINATOR_NOT_AVAILABLE if version >= 6 else ErrorCode.INVALID_REQUEST)
            assert message


async def test_a_type_that_there_is_not_is_an_invalid_request() -> None:
    async with running_groups() as context:
        for version in (*SINGLE[1:], *SEVERAL):
            [(code, message)] = (await nobody(context, version, 9, "a")).values()
            assert (code, message) == (ErrorCode.INVALID_REQUEST, "there are no coordinators of type 9")


@pytest.mark.parametrize("version", [*SINGLE, *SEVERAL])
async def test_while_a_broker_without_coordinators_is_registered_nothing_is_created(version: int) -> None:
    async with running_broker(SETTINGS) as context:
        await finalize(context, {ENVELOPE: 1})
        [(code, message)] = (await nobody(context, version, GROUP, "a")).values()
        assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert version == 0 or "upgrade it" in (message or "")
        assert OFFSETS not in context.metadata.image.topics
        await finalize(context, SUPPORTED)
        request = FindCoordinatorRequest(coordinator_keys=["a"])
        assert (await ask(context, request, 6)).coordinators == [here("a")]


async def test_the_topic_is_tried_once_for_all_keys_and_each_failure_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[None] = []

    async def refuse(*_: object) -> None:
        tries.append(None)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller")

    monkeypatch.setattr(coordinator_topics, "ensure_internal_topic", refuse)
    async with running_broker(SETTINGS) as context:
        found = await nobody(context, 6, GROUP, "a", "b")
        assert {code for code, _ in found.values()} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert "REQUEST_TIMED_OUT: no controller" in (found["b"][1] or "")
        assert len(tries) == 1
        assert context.metrics.apis["FindCoordinator"].errors == {ErrorCode.COORDINATOR_NOT_AVAILABLE: 2}
