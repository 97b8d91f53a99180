"""The index finds what a resource falls under, whatever was added and removed before, in Kafka's order."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.access.acl import AclBinding, PatternType
from odradek.broker.access.acl_index import AclIndex, canonical_host, merged
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import EVERYBODY
from odradek.broker.access.resource import Resource, ResourceType
from tests.broker.access.rules import ALICE, acl, covers, deny

NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "ab*"])
BINDINGS = st.builds(
    acl,
    st.sampled_from([Operation.READ, Operation.ALL]),
    NAMES,
    kind=st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    pattern=st.sampled_from(PatternType),
    principal=st.sampled_from(["User:alice", "User:bob", "User:*"]),
)


def found(index: AclIndex, kind: ResourceType, name: str) -> list[AclBinding]:
    return [each for section in index.sections(kind, name) for bindings in section.values() for each in bindings]


@given(st.lists(st.tuples(st.booleans(), BINDINGS), max_size=30), NAMES)
def test_it_finds_all_that_cover_a_resource_and_nothing_else(changes: list[tuple[bool, AclBinding]], name: str) -> None:
    index, kept = AclIndex.of(()), set[AclBinding]()
    for is_added, binding in changes:
        if is_added and binding not in kept:
            index, kept = index.changed([binding], ()), kept | {binding}
        elif not is_added and binding in kept:
            index, kept = index.changed((), [binding]), kept - {binding}
    assert index.count == len(kept)
    for kind in ResourceType:
        expected = {binding for binding in kept if covers(binding, Resource(kind, name))}
        there = found(index, kind, name)
        assert set(there) == expected
        assert len(there) == len(expected), "each once"
        assert {each for section in index.of_kind(kind) for some in section.values() for each in some} == {
            binding for binding in kept if binding.kind is kind
        }


def test_one_is_not_changed_by_the_next() -> None:
    first = AclIndex.of([acl(name="a")])
    second = first.changed([acl(name="b"), acl(Operation.WRITE, "a")], [acl(name="a")])
    assert found(first, ResourceType.TOPIC, "a") == [acl(name="a")]
    assert found(first, ResourceType.TOPIC, "b") == []
    assert found(second, ResourceType.TOPIC, "a") == [acl(Operation.WRITE, "a")]
    assert found(second.changed((), [acl(Operation.WRITE, "a")]), ResourceType.TOPIC, "a") == []


def test_the_closest_comes_first_and_the_wildcard_last() -> None:
    prefixed = PatternType.PREFIXED
    bindings = [
        acl(name="*"),
        acl(name="o", pattern=prefixed),
        acl(name="orders", pattern=prefixed),
        acl(name="orders"),
        acl(name="ord", pattern=prefixed),
    ]
    there = found(AclIndex.of(bindings), ResourceType.TOPIC, "orders")
    assert [(each.name, each.pattern.name) for each in there] == [
        ("orders", "LITERAL"),
        ("orders", "PREFIXED"),
        ("ord", "PREFIXED"),
        ("o", "PREFIXED"),
        ("*", "LITERAL"),
    ]


def test_within_a_pattern_operation_and_principal_order() -> None:
    mine, everybodys = acl(Operation.WRITE), deny(Operation.READ, principal="User:*")
    (section,) = AclIndex.of([mine, everybodys]).sections(ResourceType.TOPIC, "orders")
    assert merged(section, ALICE, EVERYBODY) == [everybodys, mine]
    assert merged(section, EVERYBODY, EVERYBODY) == [everybodys], "who is called * is not asked twice"


def test_addresses_have_one_spelling() -> None:
    assert canonical_host("0:0:0:0:0:0:0:1") == canonical_host("::1") == "::1"
    assert canonical_host("::ffff:10.0.0.1") == "10.0.0.1"
    assert canonical_host("10.0.0.1") == "10.0.0.1"
    assert canonical_host("*") == "*"
    assert canonical_host("b1.example") == "b1.example"
    assert canonical_host("fe80::1%eth0") == "fe80::1%eth0"
