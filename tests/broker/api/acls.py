"""What the tests of ACLs' APIs share: a broker with an authorizer, and requests made of ACLs."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import Principal
from odradek.broker.access.resource import ResourceType
from odradek.broker.cluster.store import MetadataStore
from odradek.broker.config.access_options import STANDARD_AUTHORIZER
from odradek.broker.handling.context import Caller, Context
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tests.broker.support import LISTENER, ask, running_broker

RULES: Mapping[str, str] = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:admin;User:broker-1"}
ANY = 1


def caller(name: str = "admin", host: str = "10.0.0.9") -> Caller:
    made = Caller(LISTENER, f"{host}:1", host)
    made.principal = Principal("User", name)
    return made


@asynccontextmanager
async def ruled_broker(
    settings: Mapping[str, str] = RULES, store: MetadataStore | None = None
) -> AsyncGenerator[Context]:
    """Alone, with an authorizer; the controller."""
    async with running_broker(settings, store=store) as context:
        await context.member.controller.work()
        yield context


def creation(binding: AclBinding, **fields: int | str) -> AclCreation:
    made = AclCreation(
        resource_type=binding.kind,
        resource_name=binding.name,
        resource_pattern_type=binding.pattern,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


async def create(
    context: Context, *bindings: AclBinding | AclCreation, version: int = 3, by: Caller | None = None
) -> CreateAclsResponse:
    creations = [creation(each) if isinstance(each, AclBinding) else each for each in bindings]
    return await ask(context, CreateAclsRequest(creations=creations), version, caller=by or caller())


def everything(**fields: int | str | None) -> DeleteAclsFilter:
    made = DeleteAclsFilter(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


async def delete(
    context: Context, *filters: DeleteAclsFilter, version: int = 3, by: Caller | None = None
) -> DeleteAclsResponse:
    return await ask(context, DeleteAclsRequest(filters=list(filters)), version, caller=by or caller())


async def describe(
    context: Context, *, version: int = 3, by: Caller | None = None, **fields: int | str | None
) -> DescribeAclsResponse:
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    return await ask(context, request, version, caller=by or caller())


def told(response: DescribeAclsResponse) -> set[AclBinding]:
    """The ACLs of an answer."""
    return {
        AclBinding(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            each.principal,
            each.host,
            Operation(each.operation),
            Permission(each.permission_type),
        )
        for resource in response.resources
        for each in resource.acls
    }


def known(context: Context) -> set[AclBinding]:
    """The ACLs of the metadata."""
    return set(context.metadata.image.acls.values())
