"""AlterClientQuotas (key 49): sets and removes limits of users, client ids and addresses (KIP-546).

All operations on one entity happen, or none does and it is told why; the others of the request are not concerned. An
entity named twice, or with a limit named twice, stays as it is. What was set counts on this broker when the answer is
out, and on the others when they hear of it. `validate_only` checks everything and changes nothing.

Each change is told in the log of what the authorizer says, with who made it.

Versions: 1 flexible.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER
from odradek.broker.cluster.quotas import QuotaEntity, decode_quotas, encode_quotas, quota_key
from odradek.broker.cluster.store import Conflict, MetadataStore, Txn
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.broker.quotas.alteration import altered, checked_entity
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResponse,
)

audit = logging.getLogger("kafka.authorizer.logger")

TIMEOUT_MS: Final = 30_000
"""The request has none of its own; this is Kafka's default for a request."""
ATTEMPTS_MAX: Final = 10
TOLD_LENGTH_MAX: Final = 200

Operations = Sequence[tuple[str, float | None]]
Names = tuple[tuple[str, str | None], ...]


async def handle(context: Context, call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    context.require(call, Operation.ALTER_CONFIGS, CLUSTER)
    changes = MetadataChange(context, call, TIMEOUT_MS)
    named = [_names(entry) for entry in request.entries]
    times = Counter(named)
    answers: dict[Names, EntryResponse] = {}
    for names, entry in zip(named, request.entries, strict=True):
        if names in answers:
            continue
        answer = answers[names] = EntryResponse(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in names]
        )
        try:
            if times[names] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The request names this entity more than once.")
            await _alter(context, call, changes, dict(names), entry, validate_only=request.validate_only)
        except KafkaError as error:
            answer.error_code = call.failed(error)
            answer.error_message = error.message
    return AlterClientQuotasResponse(entries=list(answers.values()))


def _names(entry: EntryData) -> Names:
    """By type, each once: of one that stands there twice the last name counts, as in Kafka."""
    names = {each.entity_type: each.entity_name for each in entry.entity}
    return tuple((kind, names[kind]) for kind in sorted(names))


async def _alter(
    context: Context,
    call: Call,
    changes: MetadataChange,
    names: Mapping[str, str | None],
    entry: EntryData,
    *,
    validate_only: bool,
) -> None:
    """Raises KafkaError."""
    entity = checked_entity(names)
    operations = [(each.key, None if each.remove else each.value) for each in entry.ops]
    present = context.metadata.image.quotas.get(entity)
    altered(entity, {} if present is None else present.limits, operations)
    if validate_only:
        return
    await changes.apply(lambda: _store(context.metadata.store, entity, operations))
    _tell(call, entity, operations)


async def _store(store: MetadataStore, entity: QuotaEntity, operations: Operations) -> int:
    """The key exists only while anything is set."""
    key = quota_key(entity)
    for _ in range(ATTEMPTS_MAX):
        entry = (await store.read(key)).entries.get(key)
        limits = altered(entity, {} if entry is None else decode_quotas(entry.value, key), operations)
        put, delete = ({key: encode_quotas(limits)}, ()) if limits else ({}, (key,))
        try:
            return await store.commit(Txn(expect={key: 0 if entry is None else entry.revision}, put=put, delete=delete))
        except Conflict:
            continue
    raise Conflict(f"others keep changing {key}")


def _tell(call: Call, entity: QuotaEntity, operations: Operations) -> None:
    of = " and ".join(f"the default {kind}" if name is None else f"{kind} {_shown(name)}" for kind, name in entity)
    what = ", ".join(
        f"removed {_shown(name)}" if limit is None else f"set {_shown(name)} to {limit:g}" for name, limit in operations
    )
    who = _shown(str(call.principal))
    audit.info("Principal = %s from host = %s changed the quotas of %s: %s", who, call.host, of, what)


def _shown(text: str) -> str:
    """What a client has named, escaped and cut."""
    return ascii(text[:TOLD_LENGTH_MAX])[1:-1]


def fail(request: AlterClientQuotasRequest, code: ErrorCode) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            EntryResponse(
                error_code=code,
                error_message=code.text,
                entity=[
                    EntityData(entity_type=each.entity_type, entity_name=each.entity_name) for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )
