"""Quotas as Admin takes and returns them, and the requests that describe and change them (KIP-546). Pure.

    QuotaEntity.of(user="alice")                        what alice does, with whatever client id
    QuotaEntity.of(user="alice", client_id=None)        with a client id that has no quota of its own (the default)
    QuotaEntity.of(ip="10.0.0.7")                       connections from there

Types and match types are those of ClientQuotaEntity.java and DescribeClientQuotasRequest.java.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple, Self

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.protocol.messages import alter_client_quotas, describe_client_quotas
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

__all__ = ["QuotaComponent", "QuotaEntity", "QuotaFilter"]

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
DEFAULT_TEXT: Final = "<default>"
"""How the default of a type is written, as in kafka-configs."""


class _Absent(Enum):
    ABSENT = "absent"


_ABSENT: Final = _Absent.ABSENT
Name = str | None
"""Of a user, client id or address; None: the default for those without a quota of their own."""


class QuotaEntity(NamedTuple):
    """Whose quotas: names by type, in order of the types. See `of`."""

    parts: tuple[tuple[str, Name], ...]

    @classmethod
    def of(
        cls,
        *,
        user: Name | _Absent = _ABSENT,
        client_id: Name | _Absent = _ABSENT,
        ip: Name | _Absent = _ABSENT,
    ) -> Self:
        """A user, a client id, a user's client id, or an address; None stands for the default of a type."""
        given = {USER: user, CLIENT_ID: client_id, IP: ip}
        return cls.from_names({kind: name for kind, name in given.items() if not isinstance(name, _Absent)})

    @classmethod
    def from_names(cls, names: Mapping[str, Name]) -> Self:
        """By type as brokers write them: `user`, `client-id`, `ip`."""
        return cls(tuple(sorted(names.items(), key=_by_type)))

    @property
    def names(self) -> dict[str, Name]:
        return dict(self.parts)

    def __str__(self) -> str:
        return " ".join(f"{kind} {DEFAULT_TEXT if name is None else name}" for kind, name in self.parts)


def _by_type(part: tuple[str, Name]) -> tuple[int, str]:
    kind = part[0]
    return TYPES.index(kind) if kind in TYPES else len(TYPES), kind


class QuotaMatch(Enum):
    """What of a type a filter matches."""

    NAME = 0
    DEFAULT = 1
    ANY = 2
    """Every one that has quotas, the default included."""


class QuotaComponent(NamedTuple):
    """One type of a filter."""

    entity_type: str
    match: QuotaMatch
    name: str | None = None

    @classmethod
    def named(cls, entity_type: str, name: Name) -> Self:
        """The one of this name, or (None) the default."""
        return cls(entity_type, QuotaMatch.DEFAULT if name is None else QuotaMatch.NAME, name)

    @classmethod
    def any_of(cls, entity_type: str) -> Self:
        return cls(entity_type, QuotaMatch.ANY)


class QuotaFilter(NamedTuple):
    """Which entities are meant; the default: all. `is_strict`: none that has other types as well."""

    components: tuple[QuotaComponent, ...] = ()
    is_strict: bool = False

    @classmethod
    def exactly(cls, entity: QuotaEntity) -> Self:
        """The filter that matches this entity and no other."""
        return cls(tuple(QuotaComponent.named(kind, name) for kind, name in entity.parts), is_strict=True)


def describe_quotas_request(matching: QuotaFilter) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            describe_client_quotas.ComponentData(entity_type=kind, match_type=match.value, match=name)
            for kind, match, name in matching.components
        ],
        strict=matching.is_strict,
    )


def described_quotas(response: DescribeClientQuotasResponse) -> dict[QuotaEntity, dict[str, float]]:
    """By entity, in order. Raises BrokerError."""
    if response.error_code:
        raise broker_error(response.error_code, response.error_message, "DescribeClientQuotas")
    found = {
        QuotaEntity.from_names({part.entity_type: part.entity_name for part in entry.entity}): {
            each.key: each.value for each in sorted(entry.values, key=lambda value: value.key)
        }
        for entry in response.entries or ()
    }
    return {entity: found[entity] for entity in sorted(found, key=_order)}


def _order(entity: QuotaEntity) -> list[tuple[str, bool, str]]:
    return [(kind, name is None, name or "") for kind, name in entity.parts]


def alter_quotas_request(
    changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool
) -> AlterClientQuotasRequest:
    """A value of None removes the quota."""
    return AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.EntryData(
                entity=[
                    alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts
                ],
                ops=[
                    alter_client_quotas.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in quotas.items()
                ],
            )
            for entity, quotas in changes.items()
        ],
        validate_only=validate_only,
    )


def altered_quotas(response: AlterClientQuotasResponse) -> dict[QuotaEntity, ClientError | None]:
    outcomes: dict[QuotaEntity, ClientError | None] = {}
    for entry in response.entries:
        entity = QuotaEntity.from_names({part.entity_type: part.entity_name for part in entry.entity})
        what = f"AlterClientQuotas of {entity}"
        failed = broker_error(entry.error_code, entry.error_message, what) if entry.error_code else None
        outcomes[entity] = failed
    return outcomes


def problem_of(entity: QuotaEntity, quotas: Iterable[tuple[str, object]]) -> str | None:
    """Why this cannot be asked for; None for nothing."""
    if not entity.parts:
        return "it names no user, client id or address"
    if any(name == "" for _, name in entity.parts):
        return "a name in it is empty; None stands for the default"
    for key, value in quotas:
        if not key:
            return "the name of a quota is empty"
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            return f"{key} is no number"
    return None
