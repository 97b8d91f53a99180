"""The calls of Admin about ACLs (KIP-140). Any broker answers them, as in KafkaAdminClient.java.

A cluster without an authorizer refuses all three with SECURITY_DISABLED.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.client.admin.acls import (
    PATTERNS_SINCE,
    AclBinding,
    AclFilter,
    create_acls_request,
    created_acls,
    delete_acls_request,
    deleted_acls,
    describe_acls_request,
    described_acls,
    problem_of,
    refused,
)
from odradek.client.admin.base import AdminBase, items_of
from odradek.client.arguments import require_all
from odradek.client.errors.base import ClientError

__all__ = ["AclCalls"]

ALL_ACLS: Final = AclFilter()


class AclCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def describe_acls(
        self, matching: AclFilter = ALL_ACLS, *, timeout_ms: float | None = None
    ) -> list[AclBinding]:
        """The ACLs that a filter matches, in order. Raises BrokerError, UnsupportedVersion before Kafka 2.0."""
        deadline = self._deadline(timeout_ms)
        require_all("matching", [matching], AclFilter, "an AclFilter")

        async def once() -> list[AclBinding]:
            request = describe_acls_request(matching)
            return described_acls(await self._calls.ask(request, deadline, at_least=PATTERNS_SINCE))

        return await self._calls.until("DescribeAcls", once, deadline)

    async def create_acls(self, acls: Iterable[AclBinding], *, timeout_ms: float | None = None) -> None:
        """Creates ACLs; one that exists already is no error.

        Raises ItemsFailed with the error of each that was not created, and ClientError for one that names no resource,
        before anything is sent.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("acls", acls, "AclBinding objects")
        require_all("acls", wanted, AclBinding, "AclBinding objects")
        for acl in wanted:
            if (problem := problem_of(acl)) is not None:
                raise refused(acl, problem)

        async def attempt(some: list[AclBinding]) -> Mapping[AclBinding, ClientError | None]:
            request = create_acls_request(some)
            return created_acls(await self._calls.ask(request, deadline, at_least=PATTERNS_SINCE), some)

        await self._calls.complete("CreateAcls", wanted, attempt, deadline)

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: float | None = None
    ) -> dict[AclFilter, list[AclBinding]]:
        """Deletes the ACLs that filters match, and returns by filter which these were. No match is no error.

        A filter with nothing but defaults matches all ACLs there are. After a lost answer ACLs may be gone that no
        answer tells of any more. Raises ItemsFailed by filter, and ClientError for a filter with an empty text, which
        matches nothing: before anything is sent.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("filters", filters, "AclFilter objects")
        require_all("filters", wanted, AclFilter, "AclFilter objects")
        for each in wanted:
            if "" in (each.resource_name, each.principal, each.host):
                raise ClientError(
                    "an AclFilter has an empty name, principal or host, which matches nothing",
                    hint="Leave it None to match every one.",
                )

        async def attempt(some: list[AclFilter]) -> Mapping[AclFilter, list[AclBinding] | ClientError]:
            request = delete_acls_request(some)
            return deleted_acls(await self._calls.ask(request, deadline, at_least=PATTERNS_SINCE), some)

        return await self._calls.complete("DeleteAcls", wanted, attempt, deadline)
