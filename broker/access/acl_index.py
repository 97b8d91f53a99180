"""The ACLs, by what is asked: those that a resource falls under, of one principal, without a look at any other. Pure.

    sections(TOPIC, "orders")   the literal `orders`; prefixes `orders`, `order`, … where there are any; literal `*`

A section is one resource pattern with its ACLs by principal. Prefixes are found by their lengths: one look for each
length that a prefix of the type has, however many ACLs there are. A change makes another index, which shares all
sections that it does not touch.

Order is that of Kafka's StandardAcl, for it decides which of several rules an audit names: longer names first, then
pattern type, operation, principal, host, permission.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from odradek.broker.access.acl import WILDCARD, AclBinding, PatternType
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import Principal, parse_principal
from odradek.broker.access.resource import ResourceType

Section = Mapping[Principal, tuple[AclBinding, ...]]
_Key = tuple[ResourceType, PatternType, str]


class AclIndex:
    """All ACLs of a cluster. Immutable."""

    __slots__ = ("_lengths", "_sections", "count")

    def __init__(
        self, sections: Mapping[_Key, Section], lengths: Mapping[ResourceType, tuple[int, ...]], count: int
    ) -> None:
        self._sections = sections
        self._lengths = lengths
        self.count = count

    @classmethod
    def of(cls, bindings: Iterable[AclBinding]) -> "AclIndex":
        return cls({}, {}, 0).changed(bindings, ())

    def changed(self, added: Iterable[AclBinding], removed: Iterable[AclBinding]) -> "AclIndex":
        """With these ACLs, none of which is here yet, and without those, each of which is."""
        sections = dict(self._sections)
        touched: dict[_Key, dict[Principal, tuple[AclBinding, ...]]] = {}
        count = self.count
        for bindings, is_added in ((added, True), (removed, False)):
            for binding in bindings:
                key = binding.kind, binding.pattern, binding.name
                if (section := touched.get(key)) is None:
                    section = touched[key] = dict(sections.get(key, {}))
                principal = parse_principal(binding.principal)
                kept = [each for each in section.get(principal, ()) if each != binding]
                if is_added:
                    kept.append(binding)
                    kept.sort(key=_order)
                count += 1 if is_added else -1
                section[principal] = tuple(kept)
        for key, section in touched.items():
            left = {principal: bindings for principal, bindings in section.items() if bindings}
            if left:
                sections[key] = left
            else:
                sections.pop(key, None)
        lengths = self._lengths
        if any(pattern is PatternType.PREFIXED for _, pattern, _ in touched):
            lengths = _lengths(sections)
        return AclIndex(sections, lengths, count)

    def sections(self, kind: ResourceType, name: str) -> Iterator[Section]:
        """Those that a resource falls under, the closest first, and that of the wildcard last."""
        sections = self._sections
        if (section := sections.get((kind, PatternType.LITERAL, name))) is not None and name != WILDCARD:
            yield section
        for length in self._lengths.get(kind, ()):
            if length <= len(name) and (
                (section := sections.get((kind, PatternType.PREFIXED, name[:length]))) is not None
            ):
                yield section
        if (section := sections.get((kind, PatternType.LITERAL, WILDCARD))) is not None:
            yield section

    def of_kind(self, kind: ResourceType) -> Iterator[Section]:
        """Every section of a type."""
        return (section for key, section in self._sections.items() if key[0] is kind)


def _lengths(sections: Iterable[_Key]) -> dict[ResourceType, tuple[int, ...]]:
    """Of the prefixes of each type, the longest first."""
    found: dict[ResourceType, set[int]] = {}
    for kind, pattern, name in sections:
        if pattern is PatternType.PREFIXED:
            found.setdefault(kind, set()).add(len(name))
    return {kind: tuple(sorted(lengths, reverse=True)) for kind, lengths in found.items()}


def _order(binding: AclBinding) -> tuple[Operation, str, str, int]:
    return binding.operation, binding.principal, binding.host, binding.permission


def merged(section: Section, *principals: Principal) -> list[AclBinding]:
    """The ACLs of these principals in a section, in order."""
    found = [binding for principal in dict.fromkeys(principals) for binding in section.get(principal, ())]
    found.sort(key=_order)
    return found


@lru_cache(maxsize=4096)
def canonical_host(host: str) -> str:
    """An address in the one spelling by which addresses are compared: `::1` is `0:0:0:0:0:0:0:1`, which Java writes,
    and `::ffff:10.0.0.1`, which a socket of both families says, is `10.0.0.1`. What is no address stays as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)
