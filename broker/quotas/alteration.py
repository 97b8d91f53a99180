"""What AlterClientQuotas may set, and for whom; which entities a filter of DescribeClientQuotas matches (KIP-546).

Users and client ids, alone or together, have limits of requests; an address has one of connections. The rules and their
order are those of ClientQuotaControlManager.java and ClientQuotasImage.java.

Two are stricter: an address is written as an address, and not as a host's name, which may stand for another one
tomorrow, on each broker by itself; and a limit is a finite number.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, NamedTuple

from odradek.broker.cluster.quotas import CLIENT_ID, IP, TYPES, USER, QuotaEntity, entity_of
from odradek.protocol.errors import ErrorCode, KafkaError

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
WHOLE_MAX: Final[Mapping[str, int]] = {
    "producer_byte_rate": LONG_MAX,
    "consumer_byte_rate": LONG_MAX,
    CONNECTION_CREATION_RATE: INT_MAX,
}
"""Limits that are whole numbers, with the highest."""
OF_REQUESTS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
OF_ADDRESSES: Final = frozenset({CONNECTION_CREATION_RATE})
FRACTION_MAX: Final = 1e-6
"""By so much a whole number may be off."""

MATCH_EXACT: Final = 0
MATCH_DEFAULT: Final = 1
MATCH_SPECIFIED: Final = 2


def checked_entity(names: Mapping[str, str | None]) -> QuotaEntity:
    """The entity with these names, by type. Raises KafkaError INVALID_REQUEST."""
    for kind, name in names.items():
        if kind not in TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}; it must be one of {', '.join(TYPES)}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP in names:
        if len(names) > 1:
            raise _invalid("Quotas of an ip cannot be combined with those of a user or client-id")
        if (address := names[IP]) is not None and not _is_address(address):
            raise _invalid(f"{address} is not a valid IP address")
    return entity_of(names)


def altered(
    entity: QuotaEntity, current: Mapping[str, float], operations: Sequence[tuple[str, float | None]]
) -> dict[str, float]:
    """The limits of an entity after these operations, each a name and its new limit, None to remove it. Raises
    KafkaError INVALID_REQUEST."""
    if len({name for name, _ in operations}) < len(operations):
        raise _invalid("A quota is named more than once for this entity")
    allowed = OF_ADDRESSES if entity[0][0] == IP else OF_REQUESTS
    limits = dict(current)
    for name, limit in operations:
        if limit is None:
            limits.pop(name, None)  # whatever it is called, as in Kafka
        else:
            _check_limit(name, limit, allowed)
            limits[name] = limit
    return limits


def _check_limit(name: str, limit: float, allowed: frozenset[str]) -> None:
    if name not in allowed:
        raise _invalid(f"Invalid configuration key {name}; it must be one of {', '.join(sorted(allowed))}")
    if not isfinite(limit):
        raise _invalid(f"Quota {name} must be a finite number")
    if limit <= 0:
        raise _invalid(f"Quota {name} must be greater than 0")
    if (highest := WHOLE_MAX.get(name)) is not None:
        if limit > highest:
            raise _invalid(f"Quota {name} must not be greater than {highest}")
        if limit % 1.0 > FRACTION_MAX:
            raise _invalid(f"Quota {name} cannot be a fractional value")


class Component(NamedTuple):
    """One condition of a filter, as it came."""

    entity_type: str
    match_type: int
    match: str | None


class EntityFilter:
    """Which entities are meant."""

    __slots__ = ("_exact", "_specified", "_strict")

    def __init__(self, components: Sequence[Component], *, strict: bool) -> None:
        """Strict: entities with other types as well are left out. Raises KafkaError: INVALID_REQUEST,
        UNSUPPORTED_VERSION."""
        self._exact: dict[str, str | None] = {}
        self._specified: set[str] = set()
        self._strict = strict
        for component in components:
            self._add(component)
        kinds = self._exact.keys() | self._specified
        if IP in kinds and kinds & {USER, CLIENT_ID}:
            raise _invalid("A filter of ip cannot be combined with one of user or client-id")

    def _add(self, component: Component) -> None:
        kind, match_type, match = component
        if not kind:
            raise _invalid("Invalid empty entity type")
        if kind in self._exact or kind in self._specified:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if match_type not in (MATCH_EXACT, MATCH_DEFAULT, MATCH_SPECIFIED):
            raise _invalid(f"Unknown match type {match_type}")
        if (match is None) is (match_type == MATCH_EXACT):
            raise _invalid(f"Match type {match_type} of {kind} {'needs' if match is None else 'takes no'} match string")
        if match_type == MATCH_SPECIFIED:
            self._specified.add(kind)
        else:
            self._exact[kind] = match

    def matches(self, entity: QuotaEntity) -> bool:
        """Whether the entity is meant."""
        names = dict(entity)
        if self._strict and len(names) != len(self._exact) + len(self._specified):
            return False
        return self._specified <= names.keys() and all(
            kind in names and names[kind] == match for kind, match in self._exact.items()
        )


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
