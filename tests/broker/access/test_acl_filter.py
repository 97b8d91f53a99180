"""Filters: each field met by its own value, by every one, or as its pattern type says."""

from itertools import product
from typing import Any

import pytest

from odradek.broker.access.acl import AclBinding, PatternType, Permission
from odradek.broker.access.acl_filter import ANY, MATCH, AclFilter
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.access.rules import acl

EVERY = AclFilter(ANY, None, ANY, None, None, ANY, ANY)
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def test_any_is_met_by_every_one() -> None:
    for kind, pattern, permission in product(ResourceType, PatternType, Permission):
        assert EVERY.matches(acl(kind=kind, pattern=pattern, permission=permission))


@pytest.mark.parametrize(
    "field",
    [
        {"kind": ResourceType.GROUP},
        {"principal": "User:bob"},
        {"principal": ""},
        {"principal": "User:*"},
        {"host": "10.0.0.1"},
        {"host": ""},
        {"operation": Operation.WRITE},
        {"operation": Operation.ALL},
        {"permission": Permission.DENY},
        {"kind": 99},
        {"operation": 99},
        {"permission": 99},
        {"pattern": 99},
    ],
)
def test_a_field_that_differs_is_not_met(field: dict[str, Any]) -> None:
    """What is implied, wildcards of principals and hosts, and empty names mean nothing here."""
    assert not EVERY._replace(**field).matches(acl())


def test_a_field_that_is_the_same_is_met() -> None:
    binding = acl()
    assert AclFilter(*binding).matches(binding)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        (LITERAL, "orders", {"orders"}),
        (LITERAL, "*", {"*"}),
        (LITERAL, "", set[str]()),
        (PREFIXED, "ord", {"ord…"}),
        (PREFIXED, "orders", {"orders…"}),
        (ANY, "orders", {"orders", "orders…"}),
        (ANY, "ord", {"ord…"}),
        (ANY, "", set[str]()),
        (MATCH, "orders", {"orders", "orders…", "ord…", "*"}),
        (MATCH, "ordinary", {"ord…", "*"}),
        (MATCH, "*", {"*"}),
        (MATCH, "", {"*"}),
        (LITERAL, None, {"orders", "*"}),
        (PREFIXED, None, {"orders…", "ord…"}),
        (ANY, None, {"orders", "orders…", "ord…", "*"}),
        (MATCH, None, {"orders", "orders…", "ord…", "*"}),
    ],
)
def test_a_name_means_what_its_pattern_type_says(pattern: int, name: str | None, expected: set[str]) -> None:
    bindings: dict[str, AclBinding] = {
        "orders": acl(name="orders"),
        "*": acl(name="*"),
        "ord…": acl(name="ord", pattern=PREFIXED),
        "orders…": acl(name="orders", pattern=PREFIXED),
    }
    wanted = EVERY._replace(pattern=pattern, name=name)
    assert {told for told, binding in bindings.items() if wanted.matches(binding)} == expected


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"kind": 99}, "Unknown patternFilter."),
        ({"pattern": 5}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission": 4}, "Unknown entryFilter."),
    ],
)
def test_a_deletion_by_what_is_not_known_is_refused(field: dict[str, Any], message: str) -> None:
    EVERY.require_known()
    AclFilter(*acl()).require_known()
    with pytest.raises(KafkaError, match=message) as raised:
        EVERY._replace(**field).require_known()
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_unknown_in_any_field_makes_the_request_malformed() -> None:
    assert not EVERY.has_unknown
    for field in ("kind", "pattern", "operation", "permission"):
        unknown: dict[str, Any] = {field: 0}
        assert EVERY._replace(**unknown).has_unknown
