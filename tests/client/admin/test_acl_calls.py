"""Admin's calls about ACLs, on a scripted cluster in memory and virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.client.admin.acls import AclBinding, AclFilter, AclOperation, AclPatternType, AclResourceType
from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError, UnsupportedVersion
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import disconnect_after, edited
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster
from tests.client.security_handlers import Secured, serve_security

pytestmark = pytest.mark.virtual_time

READS = AclBinding(AclResourceType.TOPIC, "orders", "User:billing", AclOperation.READ)
WRITES = READS._replace(operation=AclOperation.WRITE)
GROUP = AclBinding(
    AclResourceType.GROUP, "billing", "User:billing", AclOperation.READ, pattern_type=AclPatternType.PREFIXED
)


@asynccontextmanager
async def asking() -> AsyncGenerator[tuple[Admin, ScriptedCluster, Secured]]:
    with scripted_cluster(brokers=2) as scripted:
        serve_admin(scripted)
        secured = serve_security(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment) as admin:
            yield admin, scripted, secured


async def test_acls_are_created_described_and_deleted() -> None:
    async with asking() as (admin, _, secured):
        await admin.create_acls([READS, WRITES, GROUP, READS])
        assert secured.acls == {READS, WRITES, GROUP}
        assert await admin.describe_acls() == sorted([READS, WRITES, GROUP])
        assert await admin.describe_acls(AclFilter(AclResourceType.GROUP)) == [GROUP]
        every_read, nothing = AclFilter(operation=AclOperation.READ), AclFilter(principal="User:bob")
        assert await admin.delete_acls([every_read, nothing]) == {every_read: [READS, GROUP], nothing: []}
        assert secured.acls == {WRITES}


async def test_nothing_is_created_or_deleted_by_nothing() -> None:
    async with asking() as (admin, scripted, _):
        await admin.create_acls([])
        assert await admin.delete_acls([]) == {}
        assert scripted.count(CreateAclsRequest) == scripted.count(DeleteAclsRequest) == 0


async def test_each_acl_that_is_refused_has_its_own_error() -> None:
    async with asking() as (admin, _, secured):
        wrong = READS._replace(principal="billing")
        with pytest.raises(ItemsFailed) as caught:
            await admin.create_acls([READS, wrong])
        assert {acl: error.code for acl, error in caught.value.errors.items()} == {wrong: ErrorCode.INVALID_REQUEST}
        assert list(caught.value.results) == [READS]
        assert secured.acls == {READS}


async def test_without_an_authorizer_all_three_are_refused() -> None:
    async with asking() as (admin, scripted, secured):
        secured.has_authorizer = False
        with pytest.raises(BrokerError, match="SECURITY_DISABLED"):
            await admin.describe_acls()
        with pytest.raises(ItemsFailed, match="SECURITY_DISABLED"):
            await admin.create_acls([READS])

        def refuse(response: object) -> None:
            for result in getattr(response, "filter_results", []):
                result.error_code = ErrorCode.SECURITY_DISABLED

        scripted.on(DeleteAclsRequest, edited(refuse))
        with pytest.raises(ItemsFailed, match="SECURITY_DISABLED"):
            await admin.delete_acls([AclFilter()])


async def test_what_is_not_definite_is_refused_before_anything_is_sent() -> None:
    async with asking() as (admin, scripted, _):
        with pytest.raises(ClientError, match="cannot be created: its operation is ANY"):
            await admin.create_acls([READS, READS._replace(operation=AclOperation.ANY)])
        with pytest.raises(ClientError, match="matches nothing"):
            await admin.delete_acls([AclFilter(resource_name="")])
        with pytest.raises(TypeError, match="acls must be AclBinding objects"):
            await admin.create_acls([AclFilter()])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="filters must be AclFilter objects"):
            await admin.delete_acls([READS])  # type: ignore[list-item]
        assert scripted.count(CreateAclsRequest) == scripted.count(DeleteAclsRequest) == 0


async def test_a_lost_answer_is_asked_for_again() -> None:
    async with asking() as (admin, scripted, secured):
        scripted.on(CreateAclsRequest, disconnect_after())
        await admin.create_acls([READS])
        assert scripted.count(CreateAclsRequest) == 2
        assert secured.acls == {READS}


async def test_a_broker_that_knows_no_pattern_types_is_not_asked() -> None:
    async with asking() as (admin, scripted, _):
        for broker in scripted.brokers.values():
            broker.versions[DescribeAclsRequest] = (0, 0)
            broker.close_connections()
        with pytest.raises(UnsupportedVersion, match="DescribeAcls"):
            await admin.describe_acls()


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_each_version_that_knows_pattern_types_will_do(version: int) -> None:
    async with asking() as (admin, scripted, _):
        for broker in scripted.brokers.values():
            for request in (CreateAclsRequest, DescribeAclsRequest, DeleteAclsRequest):
                broker.versions[request] = (version, version)
            broker.close_connections()
        await admin.create_acls([GROUP])
        assert await admin.describe_acls(AclFilter.exactly(GROUP)) == [GROUP]
        assert await admin.delete_acls([AclFilter.exactly(GROUP)]) == {AclFilter.exactly(GROUP): [GROUP]}
