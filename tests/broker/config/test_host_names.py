"""Which hosts can be told to others, and which mean every address of a machine: examples, and any text at all."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.host_names import host_problem, is_wildcard

VALID = [
    "localhost", "broker.example", "broker.example.", "my_service", "_x", "a-b", "10.0.0.1", "xn--bcher-kva.example",
    "::1", "fe80::1%eth0", "2001:db8::1", "x" * 63, ".".join(["x" * 63] * 3 + ["y" * 61]), "1a", "kafka-1",
]  # fmt: skip
INVALID = {
    "${HOST_IP}": "variable", "$HOST": "variable", "{{ host }}": "variable", "a b": "space", "a\tb": "space",
    "a,b": "several", "http//x": "scheme", "eth0%1": "zone", "bücher.example": "xn--", "256.1.1.1": "IPv4",
    "127.1": "IPv4", "12345": "IPv4", "x" * 64: "between two dots", ".".join(["x" * 63] * 4): "253", "a..b": "letters",
    "-a": "letters", "a-": "letters", ".": "letters", "a;b": "letters", "::g": "IPv6", "1:2": "IPv6", "[::1]": "IPv6",
    "a@b": "letters", "fe80::1%": "IPv6",
}  # fmt: skip
WILDCARDS = ["", "*", "0", "0.0", "0.0.0.0", "00.0.0.0", "0x0", "::", "::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"]  # noqa: S104


@pytest.mark.parametrize("host", VALID)
def test_what_can_be_a_host(host: str) -> None:
    assert host_problem(host) is None
    assert not is_wildcard(host)


@pytest.mark.parametrize("host", list(INVALID))
def test_what_can_not_be_is_told_with_what_to_write(host: str) -> None:
    problem = host_problem(host)
    assert problem is not None
    assert INVALID[host] in problem


@pytest.mark.parametrize("host", WILDCARDS)
def test_whatever_means_every_address_is_a_wildcard(host: str) -> None:
    assert is_wildcard(host)
    assert host_problem(host) is None


@given(host=st.one_of(st.text(), st.from_regex(r"[0-9a-fx:.%*]*", fullmatch=True), st.ip_addresses().map(str)))
def test_any_text_is_judged(host: str) -> None:
    """What passes consists of what Kafka takes, too; and every IP address passes."""
    problem = host_problem(host)
    if problem is None and host != "*":
        assert all(sign.isascii() and (sign.isalnum() or sign in "-_.:%") for sign in host)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    assert problem is None
    assert is_wildcard(host) or not address.is_unspecified
