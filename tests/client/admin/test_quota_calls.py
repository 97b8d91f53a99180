"""Admin's calls about quotas, on a scripted cluster in memory and virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.quotas import QuotaComponent, QuotaEntity, QuotaFilter
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import disconnect_after, edited
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.security_handlers import Secured, serve_security

pytestmark = pytest.mark.virtual_time

ALICE = QuotaEntity.of(user="alice")
ALICES_CLIENT = QuotaEntity.of(user="alice", client_id="c")
USERS = QuotaEntity.of(user=None)


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Admin, ScriptedCluster, Secured]]:
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            yield admin, scripted, secured


async def test_quotas_are_set_described_and_removed() -> None:
    async with asking() as (admin, _, _):
        await admin.alter_client_quotas(
            {
                ALICE: {"producer_byte_rate": 1_000_000, "consumer_byte_rate": 0.5},
                ALICES_CLIENT: {"request_percentage": 50},
                USERS: {"request_percentage": 25},
            }
        )
        assert await admin.describe_client_quotas() == {
            ALICE: {"consumer_byte_rate": 0.5, "producer_byte_rate": 1_000_000},
            ALICES_CLIENT: {"request_percentage": 50},
            USERS: {"request_percentage": 25},
        }
        await admin.alter_client_quotas({ALICE: {"consumer_byte_rate": None}})
        assert await admin.describe_client_quotas(QuotaFilter.exactly(ALICE)) == {
            ALICE: {"producer_byte_rate": 1_000_000}
        }


async def test_filters_leave_out_what_they_do_not_match() -> None:
    async with asking() as (admin, _, secured):
        secured.quotas |= {each: {"request_percentage": 1.0} for each in (ALICE, ALICES_CLIENT, USERS)}
        for components, strict, found in (
            ([QuotaComponent.named("user", "alice")], False, {ALICE, ALICES_CLIENT}),
            ([QuotaComponent.named("user", "alice")], True, {ALICE}),
            ([QuotaComponent.named("user", None)], False, {USERS}),
            ([QuotaComponent.any_of("user")], True, {ALICE, USERS}),
            ([QuotaComponent.any_of("client-id")], False, {ALICES_CLIENT}),
        ):
            matching = QuotaFilter(tuple(components), is_strict=strict)
            assert set(await admin.describe_client_quotas(matching)) == found


async def test_each_entity_that_is_refused_has_its_own_error() -> None:
    async with asking() as (admin, _, secured):
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_client_quotas({ALICE: {"no_such_quota": 1}, USERS: {"request_percentage": 1}})
        assert {entity: error.code for entity, error in caught.value.errors.items()} == {
            ALICE: ErrorCode.INVALID_REQUEST
        }
        assert secured.quotas[USERS] == {"request_percentage": 1}


async def test_validate_only_changes_nothing() -> None:
    async with asking() as (admin, _, secured):
        await admin.alter_client_quotas({ALICE: {"request_percentage": 1}}, validate_only=True)
        assert not secured.quotas[ALICE]


async def test_what_cannot_be_is_refused_before_anything_is_sent() -> None:
    async with asking() as (admin, scripted, _):
        with pytest.raises(ClientError, match="names no user"):
            await admin.alter_client_quotas({QuotaEntity(()): {"request_percentage": 1}})
        with pytest.raises(TypeError, match="QuotaEntity objects"):
            await admin.alter_client_quotas({"alice": {"request_percentage": 1}})  # type: ignore[dict-item]
        with pytest.raises(TypeError, match="mappings of quotas"):
            await admin.alter_client_quotas({ALICE: 5})  # type: ignore[dict-item]
        assert scripted.count(AlterClientQuotasRequest) == 0


async def test_a_refusal_of_the_whole_question_is_raised() -> None:
    async with asking() as (admin, scripted, _):

        def refuse(response: object) -> None:
            vars_of: dict[str, object] = {"error_code": int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "entries": None}
            for name, value in vars_of.items():
                setattr(response, name, value)

        scripted.on(DescribeClientQuotasRequest, edited(refuse))
        with pytest.raises(BrokerError) as caught:
            await admin.describe_client_quotas()
        assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_lost_answer_is_asked_for_again() -> None:
    async with asking() as (admin, scripted, secured):
        scripted.on(AlterClientQuotasRequest, disconnect_after())
        await admin.alter_client_quotas({ALICE: {"request_percentage": 1}})
        assert scripted.count(AlterClientQuotasRequest) == 2
        assert secured.quotas[ALICE] == {"request_percentage": 1}
