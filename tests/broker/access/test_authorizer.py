"""StandardAuthorizer's rules, one by one, and all of them beside a slow authorizer that looks at one ACL after the
other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.acl_index import AclIndex
from odradek.broker.access.authorizer import Authorizer, Ground
from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import ANONYMOUS, Principal, parse_super_users
from odradek.broker.access.resource import CLUSTER, Resource, ResourceType, of_topic
from tests.broker.access.rules import ALICE, BOB, HOST, acl, deny, plainly_allows, plainly_allows_any

ORDERS = of_topic("orders")
TOPIC, PREFIXED = ResourceType.TOPIC, PatternType.PREFIXED
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def authorizer(*bindings: AclBinding, allows_without_acl: bool = False, super_users: str = "") -> Authorizer:
    users = parse_super_users(super_users)
    return Authorizer(users, allows_without_acl=allows_without_acl, index=AclIndex.of(bindings))


def allows(
    rules: Authorizer,
    operation: Operation = READ,
    resource: Resource = ORDERS,
    principal: Principal = ALICE,
    host: str = HOST,
) -> bool:
    return rules.decide(principal, host, operation, resource).allows


# ----------------------------------------------------------------------------------------------------------- one by one
def test_who_is_allowed_nothing_may_do_nothing() -> None:
    decision = authorizer().decide(ALICE, HOST, READ, ORDERS)
    assert (decision.allows, decision.ground, decision.rule) == (False, Ground.NO_ACL, "DefaultDeny")
    assert decision.why == "no ACL is for this resource, and allow.everyone.if.no.acl.found is false"


def test_an_acl_allows_what_it_says_to_whom_it_says_from_where_it_says() -> None:
    rules = authorizer(acl(host=HOST))
    assert allows(rules)
    assert not allows(rules, WRITE)
    assert not allows(rules, principal=BOB)
    assert not allows(rules, principal=Principal("Group", "alice"))
    assert not allows(rules, principal=Principal("User", "Alice")), "names are compared letter by letter"
    assert not allows(rules, host="10.0.0.2")
    assert not allows(rules, resource=of_topic("orders2"))
    assert not allows(rules, resource=Resource(ResourceType.GROUP, "orders"))
    decision = rules.decide(ALICE, HOST, READ, ORDERS)
    assert decision.rule == f"MatchingAcl(acl={acl(host=HOST)})"
    assert decision.why == f"an ACL allows it: ALLOW READ on TOPIC orders (LITERAL) to User:alice from host {HOST}"


def test_everybody_and_every_host_and_every_topic() -> None:
    rules = authorizer(acl(name="*", principal="User:*"))
    assert allows(rules, principal=BOB, resource=of_topic("anything"), host="::1")
    assert not allows(authorizer(acl(principal="Group:*")), principal=Principal("Group", "x"))


def test_a_prefix_covers_what_begins_with_it() -> None:
    rules = authorizer(acl(name="ord", pattern=PREFIXED))
    assert allows(rules)
    assert allows(rules, resource=of_topic("ord"))
    assert not allows(rules, resource=of_topic("or"))
    assert not allows(authorizer(acl(name="ord")), resource=ORDERS), "a literal one does not"


def test_one_that_denies_outweighs_all_that_allow() -> None:
    for denying in (
        deny(),
        deny(ALL),
        deny(name="*"),
        deny(principal="User:*"),
        deny(name="o", pattern=PREFIXED),
        deny(host=HOST),
    ):
        rules = authorizer(acl(), acl(ALL, "*"), denying)
        decision = rules.decide(ALICE, HOST, READ, ORDERS)
        assert (decision.allows, decision.acl) == (False, denying)
        assert decision.why.startswith("an ACL denies it: DENY ")
    assert allows(authorizer(acl(), deny(WRITE), deny(host="10.0.0.2"), deny(principal="User:bob")))


@pytest.mark.parametrize("implying", [READ, WRITE, Operation.DELETE, Operation.ALTER, DESCRIBE, ALL])
def test_what_allows_to_describe(implying: Operation) -> None:
    assert allows(authorizer(acl(implying)), DESCRIBE)


def test_what_is_implied_by_nothing_else() -> None:
    assert not allows(authorizer(acl(Operation.CREATE)), DESCRIBE)
    assert not allows(authorizer(acl(Operation.ALTER_CONFIGS)), DESCRIBE)
    assert allows(authorizer(acl(Operation.ALTER_CONFIGS)), Operation.DESCRIBE_CONFIGS)
    assert not allows(authorizer(acl(Operation.ALTER)), Operation.DESCRIBE_CONFIGS)
    assert not allows(authorizer(acl(DESCRIBE)), READ)


def test_one_that_denies_implies_nothing() -> None:
    assert allows(authorizer(acl(ALL), deny(READ)), DESCRIBE)
    assert not allows(authorizer(acl(ALL), deny(ALL)), DESCRIBE)


def test_without_an_acl_everybody_may_if_it_is_said() -> None:
    rules = authorizer(acl(principal="User:bob"), allows_without_acl=True)
    assert allows(rules, resource=of_topic("other"))
    assert not allows(rules), "there is one for this topic, for somebody else"
    assert rules.decide(ALICE, HOST, READ, ORDERS).ground is Ground.NO_ACL_COUNTS
    assert rules.decide(ALICE, HOST, READ, of_topic("other")).rule == "DefaultAllow"
    assert not allows(authorizer(acl(name="*", principal="User:bob"), allows_without_acl=True))
    assert not allows(authorizer(acl(name="or", pattern=PREFIXED, principal="User:bob"), allows_without_acl=True))


def test_super_users_may_do_everything() -> None:
    rules = authorizer(deny(ALL, "*", principal="User:*"), super_users=" User:admin ;User:CN=b1,O=x;;")
    assert allows(rules, principal=Principal("User", "admin"))
    assert allows(rules, principal=Principal("User", "CN=b1,O=x"))
    assert not allows(rules, principal=Principal("User", "CN=b1"))
    assert not allows(rules, principal=Principal("User", "Admin"))
    assert not allows(rules, principal=Principal("Group", "admin"))
    decision = rules.decide(Principal("User", "admin"), HOST, READ, ORDERS)
    assert (decision.ground, decision.rule) == (Ground.SUPER_USER, "SuperUser")
    assert decision.why == "the principal is one of super.users"


def test_a_name_with_a_colon_is_not_taken_for_another() -> None:
    """A broker hands the parts of a principal over; together they could be somebody else's."""
    rules = authorizer(acl(principal="User:a:b"), super_users="User:x:y")
    assert allows(rules, principal=Principal("User", "a:b"))
    assert not allows(rules, principal=Principal("User:a", "b"))
    assert not allows(rules, principal=Principal("User:x", "y"))


def test_addresses_are_compared_as_addresses() -> None:
    rules = authorizer(acl(name="*"), deny(host="0:0:0:0:0:0:0:1"), deny(host="::ffff:10.0.0.9"))
    assert not allows(rules, host="::1")
    assert not allows(rules, host="10.0.0.9")
    assert not allows(rules, host="::ffff:10.0.0.9")
    assert allows(rules, host="10.0.0.8")


def test_a_broker_that_does_not_know_its_address_may_from_somewhere() -> None:
    action, kind = Operation.CLUSTER_ACTION, ResourceType.CLUSTER
    name = CLUSTER.name

    def may(*bindings: AclBinding) -> bool:
        return authorizer(*bindings).may_from_somewhere(ALICE, action, CLUSTER).allows

    assert not may()
    assert may(acl(action, name, kind=kind))
    assert may(acl(ALL, name, kind=kind, host="10.0.0.7"))
    assert not may(acl(action, name, kind=kind, principal="User:bob"))
    assert not may(acl(action, name, kind=kind, host="10.0.0.7"), deny(ALL, name, kind=kind))
    assert authorizer(super_users="User:ANONYMOUS").may_from_somewhere(ANONYMOUS, action, CLUSTER).allows


# ------------------------------------------------------------------------------------------- at least one of a type
def any_topic(*bindings: AclBinding, operation: Operation = WRITE, allows_without_acl: bool = False) -> bool:
    rules = authorizer(*bindings, allows_without_acl=allows_without_acl)
    return rules.decide_any(ALICE, HOST, operation, TOPIC)


def test_at_least_one_of_a_type() -> None:
    assert not any_topic()
    assert any_topic(acl(WRITE))
    assert any_topic(acl(ALL, "o", pattern=PREFIXED))
    assert any_topic(acl(WRITE, "*"))
    assert not any_topic(acl(READ))
    assert not any_topic(acl(WRITE, principal="User:bob"))
    assert not any_topic(acl(WRITE, host="10.0.0.2"))
    assert not any_topic(acl(WRITE, kind=ResourceType.GROUP))
    assert not any_topic(acl(WRITE), operation=DESCRIBE), "Kafka does not look at what is implied here"
    assert any_topic(allows_without_acl=True)


def test_what_is_denied_again_is_not_one() -> None:
    assert not any_topic(acl(WRITE), deny(WRITE))
    assert any_topic(acl(WRITE), acl(WRITE, "other"), deny(WRITE))
    assert not any_topic(acl(WRITE, "*"), deny(ALL, "*"))
    assert not any_topic(acl(WRITE), deny(WRITE, "ord", pattern=PREFIXED))
    assert not any_topic(acl(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "o", pattern=PREFIXED))
    assert not any_topic(acl(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "ord", pattern=PREFIXED))
    assert any_topic(acl(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "orders", pattern=PREFIXED))
    assert any_topic(acl(WRITE, "ord", pattern=PREFIXED), deny(WRITE, "ord")), "only this one name is"


# ----------------------------------------------------------------------------------------------- beside a slow one
NAMES = ("a", "ab", "abc", "b", "*")
PRINCIPALS = (ALICE, BOB, Principal("User", "*"))
HOSTS = (HOST, "10.0.0.2")
KINDS = (ResourceType.TOPIC, ResourceType.GROUP)
BINDINGS = st.builds(
    AclBinding,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from(PatternType),
    st.sampled_from([str(each) for each in PRINCIPALS]),
    st.sampled_from(["*", *HOSTS]),
    st.sampled_from(Operation),
    st.sampled_from(Permission),
)


@given(
    st.sets(BINDINGS, max_size=12),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from([each for each in Operation if each is not ALL]),
    st.builds(Resource, st.sampled_from(KINDS), st.sampled_from(["a", "ab", "abcd", "b", "c", "*"])),
    st.booleans(),
)
def test_it_decides_as_one_that_looks_at_each_acl(
    bindings: set[AclBinding],
    principal: Principal,
    host: str,
    operation: Operation,
    resource: Resource,
    allows_without_acl: bool,
) -> None:
    decision = authorizer(*bindings, allows_without_acl=allows_without_acl).decide(principal, host, operation, resource)
    assert decision.allows == plainly_allows(
        bindings, principal, host, operation, resource, allows_without_acl=allows_without_acl
    )
    assert decision.acl is None or (decision.acl in bindings and decision.allows == (decision.acl.permission == 3))


@given(
    st.sets(BINDINGS, max_size=8),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from([READ, WRITE, Operation.CREATE]),
    st.sampled_from(KINDS),
)
def test_at_least_one_as_one_that_tries_names(
    bindings: set[AclBinding], principal: Principal, host: str, operation: Operation, kind: ResourceType
) -> None:
    """Kafka says yes to a literal `*` whatever prefixes are denied, and no to one that is denied whatever is allowed
    besides; and looks at no prefix that a literal denial hits. So both agree where nothing denies a literal name below
    an allowed prefix."""
    rules = authorizer(*bindings)
    expected = plainly_allows_any(bindings, principal, host, operation, kind)
    if expected:
        assert rules.decide_any(principal, host, operation, kind)
