"""Quotas of clients as the metadata store keeps them (KIP-546): a key for each entity, with its limits. Pure.

    /quotas/user=alice,client-id=billing    {"v":1,"quotas":{"producer_byte_rate":1048576.0}}
    /quotas/user                            of each user that has no entity of its own
    /quotas/ip=192.0.2.7                    {"v":1,"quotas":{"connection_creation_rate":10.0}}

An entity is a user, a client id, both, or an address; a type without a name stands for all that have no entity of their
own. In keys, names are written as Kafka sanitises them (Sanitizer.java), so that none holds a `/`, `,` or `=`. Which
entities and limits make sense is another question (quotas/alteration.py).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from odradek.broker.cluster.keys import QUOTAS_PREFIX, KeyKind
from odradek.broker.cluster.store import Event
from odradek.broker.cluster.values import Fields, MalformedMetadata, encode

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
"""In the order in which an entity names them."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Types with their names, in the order of TYPES; None: the default of the type."""

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")
_QUOTED: Final = re.compile(rb"%([0-9A-F]{2})")


class EntityQuotas(NamedTuple):
    """What is set for one entity."""

    limits: Mapping[str, float]
    """By name, as `producer_byte_rate`."""
    revision: int
    """Of its key, for the next conditional write."""


NO_QUOTAS: Final[Mapping[QuotaEntity, EntityQuotas]] = {}


def entity_of(names: Mapping[str, str | None]) -> QuotaEntity:
    """The entity with these names, by type. Types that are none of TYPES are left out."""
    return tuple((kind, names[kind]) for kind in TYPES if kind in names)


def quota_key(entity: QuotaEntity) -> str:
    parts = (kind if name is None else f"{kind}={sanitised(name)}" for kind, name in entity)
    return QUOTAS_PREFIX + ",".join(parts)


def parse_quota_entity(text: str) -> QuotaEntity:
    """The entity from what stands behind QUOTAS_PREFIX. Raises MalformedMetadata."""
    names: dict[str, str | None] = {}
    for part in text.split(","):
        kind, equals, name = part.partition("=")
        if kind not in TYPES or kind in names:
            raise MalformedMetadata(f"{QUOTAS_PREFIX}{text} names no entity that quotas are for")
        names[kind] = _desanitised(name) if equals else None
    return entity_of(names)


def encode_quotas(limits: Mapping[str, float]) -> bytes:
    return encode({"quotas": dict(limits)})


def decode_quotas(value: bytes, key: str) -> dict[str, float]:
    """Raises MalformedMetadata."""
    fields = Fields(value, key)
    limits: dict[str, float] = {}
    for name, limit in fields.mapping("quotas").items():
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            raise fields.wrong("quotas")
        limits[name] = float(limit)
    return limits


def changed_quotas(
    quotas: Mapping[QuotaEntity, EntityQuotas],
    events: Iterable[tuple[KeyKind, str, Event]],
    revision_of: Callable[[Event], int],
) -> Mapping[QuotaEntity, EntityQuotas]:
    """With what these events say of quotas; the same object where they say nothing. Raises MalformedMetadata."""
    of_quotas = [(name, event) for kind, name, event in events if kind is KeyKind.QUOTA]
    if not of_quotas:
        return quotas
    changed = dict(quotas)
    for name, event in of_quotas:
        entity = parse_quota_entity(name)
        if event.value is None:
            changed.pop(entity, None)
        else:
            changed[entity] = EntityQuotas(decode_quotas(event.value, event.key), revision_of(event))
    return changed


def sanitised(name: str) -> str:
    """As Kafka writes names into those of metrics and nodes: letters, digits, `.`, `-`, `_`, the rest as %XX of their
    UTF-8."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in name.encode())


def _desanitised(text: str) -> str:
    """Raises MalformedMetadata."""
    try:
        return _QUOTED.sub(lambda quoted: bytes((int(quoted[1], 16),)), text.encode()).decode()
    except UnicodeDecodeError:
        raise MalformedMetadata(f"{QUOTAS_PREFIX} holds the name {text}, which is no text") from None
