"""ACLs, quotas and users with passwords on the scripted cluster, kept in dictionaries, with few rules.

    secured = serve_security(cluster)
    secured.acls.add(AclBinding(…))
    secured.has_authorizer = False        # the calls about ACLs are refused with SECURITY_DISABLED

Passwords are changed by the controller alone, as in Kafka; the others answer NOT_CONTROLLER.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable

from odradek.client.admin.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from odradek.client.admin.quotas import QuotaEntity, QuotaMatch
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import alter_client_quotas, describe_client_quotas
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from tests.client.broker_handlers import Call
from tests.client.scripted_broker import ScriptedCluster

ALGORITHMS = {1: "sha256", 2: "sha512"}


class Secured:
    """The state behind the handlers."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.has_authorizer = True
        self.acls: set[AclBinding] = set()
        self.quotas: dict[QuotaEntity, dict[str, float]] = defaultdict(dict)
        self.users: dict[tuple[str, int], tuple[int, bytes, bytes]] = {}
        """By user and mechanism: iterations, salt, salted password."""

    def proves(self, user: str, mechanism: int, password: str) -> bool:
        """Whether what is stored was made of this password."""
        iterations, salt, salted = self.users[user, mechanism]
        return salted == hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), salt, iterations)

    # -------------------------------------------------------------------------------------------------------- ACLs
    def describe_acls(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeAclsRequest)
        if not self.has_authorizer:
            return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is set.")
        matching = AclFilter(
            AclResourceType(request.resource_type_filter),
            request.resource_name_filter,
            request.principal_filter,
            AclOperation(request.operation),
            AclPermission(request.permission_type),
            request.host_filter,
            AclPatternType(request.pattern_type_filter),
        )
        return DescribeAclsResponse(
            resources=[
                DescribeAclsResource(
                    resource_type=acl.resource_type,
                    resource_name=acl.resource_name,
                    pattern_type=acl.pattern_type,
                    acls=[
                        AclDescription(
                            principal=acl.principal,
                            host=acl.host,
                            operation=acl.operation,
                            permission_type=acl.permission,
                        )
                    ],
                )
                for acl in self.acls
                if matching.matches(acl)
            ]
        )

    def create_acls(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, CreateAclsRequest)
        results: list[AclCreationResult] = []
        for each in request.creations:
            if not self.has_authorizer:
                results.append(AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message="none"))
            elif ":" not in each.principal:
                results.append(AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message="no principal"))
            else:
                self.acls.add(
                    AclBinding(
                        AclResourceType(each.resource_type),
                        each.resource_name,
                        each.principal,
                        AclOperation(each.operation),
                        AclPermission(each.permission_type),
                        each.host,
                        AclPatternType(each.resource_pattern_type),
                    )
                )
                results.append(AclCreationResult())
        return CreateAclsResponse(results=results)

    def delete_acls(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DeleteAclsRequest)
        results: list[DeleteAclsFilterResult] = []
        for each in request.filters:
            matching = AclFilter(
                AclResourceType(each.resource_type_filter),
                each.resource_name_filter,
                each.principal_filter,
                AclOperation(each.operation),
                AclPermission(each.permission_type),
                each.host_filter,
                AclPatternType(each.pattern_type_filter),
            )
            gone = [acl for acl in self.acls if matching.matches(acl)]
            self.acls.difference_update(gone)
            results.append(DeleteAclsFilterResult(matching_acls=[matching_acl(acl) for acl in gone]))
        return DeleteAclsResponse(filter_results=results)

    # ------------------------------------------------------------------------------------------------------ quotas
    def describe_quotas(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeClientQuotasRequest)

        def matches(entity: QuotaEntity) -> bool:
            names = entity.names
            if request.strict and len(names) != len(request.components):
                return False
            for each in request.components:
                if each.entity_type not in names:
                    return False
                name = names[each.entity_type]
                wanted = {QuotaMatch.NAME.value: each.match, QuotaMatch.DEFAULT.value: None}
                if each.match_type in wanted and name != wanted[each.match_type]:
                    return False
            return True

        return DescribeClientQuotasResponse(
            entries=[
                describe_client_quotas.EntryData(
                    entity=[
                        describe_client_quotas.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.parts
                    ],
                    values=[describe_client_quotas.ValueData(key=key, value=value) for key, value in quotas.items()],
                )
                for entity, quotas in self.quotas.items()
                if quotas and matches(entity)
            ]
        )

    def alter_quotas(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, AlterClientQuotasRequest)
        entries: list[alter_client_quotas.EntryResponse] = []
        for each in request.entries:
            entity = QuotaEntity.from_names({part.entity_type: part.entity_name for part in each.entity})
            code = ErrorCode.NONE
            if any(op.key.startswith("no_such") for op in each.ops):
                code = ErrorCode.INVALID_REQUEST
            elif not request.validate_only:
                for op in each.ops:
                    if op.remove:
                        self.quotas[entity].pop(op.key, None)
                    else:
                        self.quotas[entity][op.key] = op.value
            entries.append(alter_client_quotas.EntryResponse(error_code=code, entity=each.entity))
        return AlterClientQuotasResponse(entries=entries)

    # ------------------------------------------------------------------------------------------------------- users
    def describe_users(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, DescribeUserScramCredentialsRequest)
        names = sorted({user for user, _ in self.users})
        if request.users:
            names = [each.name for each in request.users]
        results: list[DescribeUserScramCredentialsResult] = []
        for name in names:
            infos = [
                CredentialInfo(mechanism=mechanism, iterations=stored[0])
                for (user, mechanism), stored in self.users.items()
                if user == name
            ]
            code = ErrorCode.NONE if infos else ErrorCode.RESOURCE_NOT_FOUND
            results.append(DescribeUserScramCredentialsResult(user=name, error_code=code, credential_infos=infos))
        return DescribeUserScramCredentialsResponse(results=results)

    def alter_users(self, call: Call) -> Response:
        request = call.exchange.request
        assert isinstance(request, AlterUserScramCredentialsRequest)
        users = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
        results: list[AlterUserScramCredentialsResult] = []
        for user in users:
            code = ErrorCode.NONE
            if call.broker.node_id != self.cluster.controller_id:
                code = ErrorCode.NOT_CONTROLLER
            elif any(each.name == user and (user, each.mechanism) not in self.users for each in request.deletions):
                code = ErrorCode.RESOURCE_NOT_FOUND
            else:
                for gone in request.deletions:
                    if gone.name == user:
                        del self.users[user, gone.mechanism]
                for each in request.upsertions:
                    if each.name == user:
                        self.users[user, each.mechanism] = (each.iterations, each.salt, each.salted_password)
            results.append(AlterUserScramCredentialsResult(user=user, error_code=code))
        return AlterUserScramCredentialsResponse(results=results)


def matching_acl(acl: AclBinding, code: ErrorCode = ErrorCode.NONE) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=code,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def serve_security(cluster: ScriptedCluster) -> Secured:
    """Has all brokers serve this."""
    secured = Secured(cluster)
    handlers: dict[type, Callable[[Call], Response]] = {
        DescribeAclsRequest: secured.describe_acls,
        CreateAclsRequest: secured.create_acls,
        DeleteAclsRequest: secured.delete_acls,
        DescribeClientQuotasRequest: secured.describe_quotas,
        AlterClientQuotasRequest: secured.alter_quotas,
        DescribeUserScramCredentialsRequest: secured.describe_users,
        AlterUserScramCredentialsRequest: secured.alter_users,
    }
    for request_type, handler in handlers.items():
        cluster.serve(request_type, handler)
    return secured
