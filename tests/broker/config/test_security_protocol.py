"""`listener.security.protocol.map`: read as Kafka writes it, refused with what is wrong, and looked up by name."""

import pytest

from odradek.broker.config.security_protocol import (
    PROTOCOL_MAP_DEFAULT,
    SecurityProtocol,
    check_protocol_map,
    parse_protocol_map,
    protocol_of,
)

PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL
SASL_PLAINTEXT, SASL_SSL = SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL


def test_what_a_protocol_asks_for() -> None:
    assert {each for each in SecurityProtocol if each.is_encrypted} == {SSL, SASL_SSL}
    assert {each for each in SecurityProtocol if each.needs_authentication} == {SASL_PLAINTEXT, SASL_SSL}


def test_the_default_maps_each_name_onto_itself() -> None:
    assert parse_protocol_map(PROTOCOL_MAP_DEFAULT) == {each.name: each for each in SecurityProtocol}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("OUT:SSL", {"OUT": SSL}),
        (" inside : plaintext , out-1:Sasl_SSL", {"INSIDE": PLAINTEXT, "OUT-1": SASL_SSL}),
    ],
)
def test_what_is_read(text: str, expected: dict[str, SecurityProtocol]) -> None:
    assert parse_protocol_map(text) == expected
    assert check_protocol_map(text) is None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SSL", "it must be NAME:PROTOCOL, separated by commas"),
        (":SSL", "it must be NAME:PROTOCOL, separated by commas"),
        ("A:SSL,", "it must be NAME:PROTOCOL, separated by commas"),
        ("A:TLS", "'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("A:", "'' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("A:SSL,a:SSL", "the listener name A stands twice"),
    ],
)
def test_what_is_refused(text: str, wrong: str) -> None:
    assert check_protocol_map(text) == wrong


@pytest.mark.parametrize(
    ("name", "expected"),
    [("OUT", SASL_SSL), ("SASL_SSL", PLAINTEXT), ("SSL", SSL), ("PLAINTEXT", PLAINTEXT), ("OTHER", PLAINTEXT)],
)
def test_a_name_is_looked_up_in_the_map_then_among_the_protocols(name: str, expected: SecurityProtocol) -> None:
    assert protocol_of(name, {"OUT": SASL_SSL, "SASL_SSL": PLAINTEXT}) is expected
