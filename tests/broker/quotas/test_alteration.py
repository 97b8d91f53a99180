"""What may be set for whom, and which entities a filter matches, as ClientQuotaControlManager and ClientQuotasImage."""

from math import inf, nan

import pytest

from odradek.broker.cluster.quotas import QuotaEntity, entity_of
from odradek.broker.quotas.alteration import Component, EntityFilter, altered, checked_entity
from odradek.protocol.errors import ErrorCode, KafkaError

USER, IP = entity_of({"user": "alice"}), entity_of({"ip": None})
ENTITIES: dict[str, QuotaEntity] = {
    "alice": entity_of({"user": "alice"}),
    "alice's app": entity_of({"user": "alice", "client-id": "app"}),
    "alice's default": entity_of({"user": "alice", "client-id": None}),
    "default user": entity_of({"user": None}),
    "default user's app": entity_of({"user": None, "client-id": "app"}),
    "app": entity_of({"client-id": "app"}),
    "default client": entity_of({"client-id": None}),
    "address": entity_of({"ip": "192.0.2.1"}),
    "default address": entity_of({"ip": None}),
}
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({}, "empty client quota entity"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        ({"user": ""}, "Empty user not supported"),
        ({"client-id": ""}, "Empty client-id not supported"),
        ({"ip": "::1", "user": "alice"}, "cannot be combined"),
        ({"ip": None, "client-id": None}, "cannot be combined"),
        ({"ip": "localhost"}, "localhost is not a valid IP address"),
        ({"ip": "1.2.3"}, "not a valid IP address"),
        ({"ip": "1.2.3.4.5"}, "not a valid IP address"),
    ],
)
def test_entities_that_make_no_sense_are_refused(names: dict[str, str | None], reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as refused:
        checked_entity(names)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", list(ENTITIES))
def test_entities_are_what_they_are_called(name: str) -> None:
    assert checked_entity(dict(ENTITIES[name])) == ENTITIES[name]


def test_the_order_of_types_does_not_matter() -> None:
    assert checked_entity({"client-id": "b", "user": "a"}) == checked_entity({"user": "a", "client-id": "b"})


@pytest.mark.parametrize(
    ("entity", "name", "limit", "reason"),
    [
        (USER, "nope", 1.0, "Invalid configuration key nope"),
        (USER, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (IP, "producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
        (USER, "producer_byte_rate", 0.0, "must be greater than 0"),
        (USER, "request_percentage", -1.0, "must be greater than 0"),
        (USER, "consumer_byte_rate", 1.5, "cannot be a fractional value"),
        (USER, "producer_byte_rate", 2.0**64, "must not be greater than 9223372036854775807"),
        (IP, "connection_creation_rate", 2.0**31, "must not be greater than 2147483647"),
        (USER, "request_percentage", inf, "must be a finite number"),
        (USER, "controller_mutation_rate", nan, "must be a finite number"),
    ],
)
def test_limits_that_make_no_sense_are_refused(entity: QuotaEntity, name: str, limit: float, reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as refused:
        altered(entity, {}, [(name, limit)])
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_limits_are_set_and_removed() -> None:
    present = {"producer_byte_rate": 5.0, "request_percentage": 200.0}
    operations = [("producer_byte_rate", None), ("request_percentage", 0.5), ("consumer_byte_rate", 1024.0000001)]
    assert altered(USER, present, operations) == {"request_percentage": 0.5, "consumer_byte_rate": 1024.0000001}
    assert present == {"producer_byte_rate": 5.0, "request_percentage": 200.0}
    assert altered(USER, {}, [("whatever", None)]) == {}, "what is not set may be removed"


def test_a_limit_named_twice_is_refused() -> None:
    with pytest.raises(KafkaError, match="more than once"):
        altered(USER, {}, [("producer_byte_rate", 1.0), ("producer_byte_rate", None)])


def matched(*components: tuple[str, int, str | None], strict: bool = False) -> set[str]:
    wanted = EntityFilter([Component(*each) for each in components], strict=strict)
    return {name for name, entity in ENTITIES.items() if wanted.matches(entity)}


def test_filters_match_what_kafkas_match() -> None:
    assert matched() == set(ENTITIES)
    assert matched(strict=True) == set()
    assert matched(("user", EXACT, "alice")) == {"alice", "alice's app", "alice's default"}
    assert matched(("user", EXACT, "alice"), strict=True) == {"alice"}
    assert matched(("user", DEFAULT, None)) == {"default user", "default user's app"}
    assert matched(("user", SPECIFIED, None), strict=True) == {"alice", "default user"}
    assert matched(("user", SPECIFIED, None), ("client-id", EXACT, "app")) == {"alice's app", "default user's app"}
    assert matched(("client-id", DEFAULT, None), ("user", EXACT, "alice"), strict=True) == {"alice's default"}
    assert matched(("ip", SPECIFIED, None)) == {"address", "default address"}
    assert matched(("user", EXACT, "nobody")) == set()


@pytest.mark.parametrize(
    ("components", "reason", "code"),
    [
        ([("", EXACT, "a")], "empty entity type", ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "a"), ("user", DEFAULT, None)], "more than once", ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "a")], "Unsupported entity type group", ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], "needs match string", ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], "takes no match string", ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], "takes no match string", ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], "Unknown match type 3", ErrorCode.INVALID_REQUEST),
        ([("ip", DEFAULT, None), ("user", DEFAULT, None)], "cannot be combined", ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense_are_refused(
    components: list[tuple[str, int, str | None]], reason: str, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError, match=reason) as refused:
        matched(*components)
    assert refused.value.code is code
