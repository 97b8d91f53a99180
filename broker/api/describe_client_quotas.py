"""DescribeClientQuotas (key 48): the limits of users, client ids and addresses that a filter matches (KIP-546).

Without components everything matches; strict, nothing does. A component says of one type which name the entity has,
that it is the default, or that it has any. Entities come in the order of their types and names.

Versions: 1 flexible.
"""

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.quotas import EntityQuotas, QuotaEntity
from odradek.broker.handling.context import Call, Context
from odradek.broker.quotas.alteration import Component, EntityFilter
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


async def handle(context: Context, call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    try:
        context.require(call, Operation.DESCRIBE_CONFIGS, CLUSTER)
        components = [Component(each.entity_type, each.match_type, each.match) for each in request.components]
        wanted = EntityFilter(components, strict=request.strict)
    except KafkaError as error:
        return _failed(call.failed(error), error.message)
    quotas = context.metadata.image.quotas
    entities = sorted(quotas, key=lambda entity: [(kind, name or "") for kind, name in entity])
    return DescribeClientQuotasResponse(
        entries=[_entry(entity, quotas[entity]) for entity in entities if wanted.matches(entity)]
    )


def _entry(entity: QuotaEntity, set_for: EntityQuotas) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=name, value=limit) for name, limit in set_for.limits.items()],
    )


def _failed(code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def fail(request: DescribeClientQuotasRequest, code: ErrorCode) -> DescribeClientQuotasResponse:
    del request
    return _failed(code, code.text)
