"""AlterClientQuotas: what is stored, what counts at once, what is refused, and who is told to have changed what."""

import logging

import pytest

from odradek.broker.access.principal import Principal
from odradek.broker.cluster.quotas import entity_of, quota_key
from odradek.broker.cluster.store import Conflict, Txn
from odradek.broker.handling.context import Caller, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from tests.broker.support import LISTENER, ask, running_broker

ALICE = entity_of({"user": "alice"})
Names = dict[str, str | None]


def entry(names: Names, *removed: str, **limits: float) -> EntryData:
    """Sets these limits, and removes those."""
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()],
        ops=[OpData(key=name, value=limit, remove=False) for name, limit in limits.items()]
        + [OpData(key=name, value=0.0, remove=True) for name in removed],
    )


async def alter(
    context: Context, *entries: EntryData, validate_only: bool = False, caller: Caller | None = None
) -> AlterClientQuotasResponse:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return await ask(context, request, 1, caller=caller)


def codes(answer: AlterClientQuotasResponse) -> list[int]:
    return [each.error_code for each in answer.entries]


async def test_limits_are_stored_and_count_when_the_answer_is_out() -> None:
    async with running_broker() as context:
        assert context.quotas is None
        answer = await alter(context, entry({"user": "alice"}, producer_byte_rate=1_000.0, request_percentage=50.0))
        assert codes(answer) == [ErrorCode.NONE]
        assert answer.entries[0].entity == [EntityData(entity_type="user", entity_name="alice")]
        assert context.quotas is not None
        assert context.quotas.quotas.producer.is_set
        await alter(context, entry({"user": "alice"}, "request_percentage", producer_byte_rate=2_000.0))
        assert context.metadata.image.quotas[ALICE].limits == {"producer_byte_rate": 2_000.0}
        assert not context.quotas.quotas.request.is_set


async def test_without_any_limit_nothing_is_left() -> None:
    async with running_broker() as context:
        await alter(context, entry({"user": "alice"}, producer_byte_rate=1_000.0))
        assert codes(await alter(context, entry({"user": "alice"}, "producer_byte_rate"))) == [ErrorCode.NONE]
        assert context.metadata.image.quotas == {}
        assert context.quotas is None
        assert (await context.metadata.store.read("/quotas/")).entries == {}
        assert codes(await alter(context, entry({"user": "alice"}, "producer_byte_rate"))) == [ErrorCode.NONE]


async def test_limits_of_addresses_alone_cost_requests_nothing() -> None:
    async with running_broker() as context:
        assert codes(await alter(context, entry({"ip": None}, connection_creation_rate=5.0))) == [ErrorCode.NONE]
        assert context.metadata.image.quotas
        assert context.quotas is None


async def test_each_entity_is_done_or_refused_by_itself() -> None:
    async with running_broker() as context:
        answer = await alter(
            context,
            entry({"user": "alice"}, producer_byte_rate=1.5),
            entry({"user": "bob"}, producer_byte_rate=1.0),
            entry({"group": "g"}, producer_byte_rate=1.0),
            entry({"user": "carol"}, producer_byte_rate=5.0, consumer_byte_rate=-1.0),
        )
        assert codes(answer) == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
        assert answer.entries[0].error_message == "Quota producer_byte_rate cannot be a fractional value"
        assert list(context.metadata.image.quotas) == [entity_of({"user": "bob"})]


async def test_what_is_named_twice_stays_as_it_is_and_is_answered_once() -> None:
    twice = entry({"user": "alice", "client-id": "app"}, producer_byte_rate=1.0)
    again = entry({"client-id": "app", "user": "alice"}, consumer_byte_rate=1.0)
    double = entry({"user": "bob"}, producer_byte_rate=1.0)
    double.ops.append(OpData(key="producer_byte_rate", value=2.0, remove=False))
    async with running_broker() as context:
        answer = await alter(context, twice, again, double)
        assert codes(answer) == [ErrorCode.INVALID_REQUEST] * 2
        assert context.metadata.image.quotas == {}


async def test_of_a_type_that_stands_twice_the_last_name_counts() -> None:
    """A client cannot say so; Kafka puts them into a map."""
    both = entry({"user": "alice"}, producer_byte_rate=1.0)
    both.entity.append(EntityData(entity_type="user", entity_name="bob"))
    async with running_broker() as context:
        assert codes(await alter(context, both)) == [ErrorCode.NONE]
        assert list(context.metadata.image.quotas) == [entity_of({"user": "bob"})]


async def test_validate_only_checks_and_changes_nothing() -> None:
    async with running_broker() as context:
        before = context.metadata.image.revision
        answer = await alter(
            context,
            entry({"user": "alice"}, producer_byte_rate=1.0),
            entry({"user": "bob"}, nope=1.0),
            validate_only=True,
        )
        assert codes(answer) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
        assert context.metadata.image.revision == before


async def test_a_change_of_somebody_else_is_not_undone() -> None:
    async with running_broker() as context:
        store = context.metadata.store
        await alter(context, entry({"user": "alice"}, producer_byte_rate=1.0))
        commit, calls = store.commit, list[Txn]()

        async def slow(txn: Txn) -> int:
            calls.append(txn)
            if len(calls) == 1:
                await commit(Txn(put={quota_key(ALICE): b'{"v":1,"quotas":{"request_percentage":9.0}}'}))
                raise Conflict("somebody was faster")
            return await commit(txn)

        store.commit = slow  # type: ignore[method-assign]
        assert codes(await alter(context, entry({"user": "alice"}, consumer_byte_rate=2.0))) == [ErrorCode.NONE]
        limits = context.metadata.image.quotas[ALICE].limits
        assert limits == {"request_percentage": 9.0, "consumer_byte_rate": 2.0}


async def test_who_changed_what_is_told_and_escaped(caplog: pytest.LogCaptureFixture) -> None:
    caller = Caller(LISTENER, host="192.0.2.1")
    caller.principal = Principal("User", "admin")
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        async with running_broker() as context:
            odd = entry({"user": "a\nb", "client-id": None}, "x\r", producer_byte_rate=1e6)
            await alter(context, odd, caller=caller)
            await alter(context, entry({"user": "alice"}, nope=1.0), caller=caller)
    [line] = [record.getMessage() for record in caplog.records if record.name == "kafka.authorizer.logger"]
    assert line == (
        "Principal = User:admin from host = 192.0.2.1 changed the quotas of user a\\nb and the default client-id: "
        "set producer_byte_rate to 1e+06, removed x\\r"
    )
