"""The calls of Admin about quotas of users, client ids and addresses (KIP-546). Any broker answers them."""

from collections.abc import Mapping
from typing import Final

from odradek.client.admin.base import AdminBase, keys_of
from odradek.client.admin.quotas import (
    QuotaEntity,
    QuotaFilter,
    alter_quotas_request,
    altered_quotas,
    describe_quotas_request,
    described_quotas,
    problem_of,
)
from odradek.client.arguments import require_all
from odradek.client.errors.base import ClientError

__all__ = ["QuotaCalls"]

ALL_QUOTAS: Final = QuotaFilter()


class QuotaCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def describe_client_quotas(
        self, matching: QuotaFilter = ALL_QUOTAS, *, timeout_ms: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas that are set, by whose they are and by their names. Raises BrokerError.

        They are bytes in a second (`producer_byte_rate`, `consumer_byte_rate`), hundredths of a thread
        (`request_percentage`), changes in a second (`controller_mutation_rate`), or connections in a second
        (`connection_creation_rate`, of addresses).
        """
        deadline = self._deadline(timeout_ms)
        require_all("matching", [matching], QuotaFilter, "a QuotaFilter")

        async def once() -> dict[QuotaEntity, dict[str, float]]:
            return described_quotas(await self._calls.ask(describe_quotas_request(matching), deadline))

        return await self._calls.until("DescribeClientQuotas", once, deadline)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Sets quotas, or removes them (None). Those that are not named stay.

        Each entity is changed or refused by itself. Raises ItemsFailed, and ClientError for an entity or a value that
        cannot be, before anything is sent.
        """
        deadline = self._deadline(timeout_ms)
        entities = keys_of("changes", changes, "QuotaEntity objects")
        require_all("changes", entities, QuotaEntity, "QuotaEntity objects")
        require_all("changes", changes.values(), Mapping, "mappings of quotas' names to numbers")
        for entity, quotas in changes.items():
            if (problem := problem_of(entity, quotas.items())) is not None:
                raise ClientError(f"the quotas of {str(entity) or 'nobody'} cannot be changed: {problem}")

        async def attempt(some: list[QuotaEntity]) -> Mapping[QuotaEntity, ClientError | None]:
            request = alter_quotas_request({each: changes[each] for each in some}, validate_only=validate_only)
            return altered_quotas(await self._calls.ask(request, deadline))

        await self._calls.complete("AlterClientQuotas", changes, attempt, deadline)
