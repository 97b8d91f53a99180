"""Shows which texts and pairs name brokers, and that anything else is refused as `bootstrap_servers`."""

from dataclasses import replace
from typing import Any

import pytest

from odradek.client.configuration.addresses import Address
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ConfigError


@pytest.mark.parametrize(
    ("written", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        (" a:1 , b:2", [("a", 1), ("b", 2)]),
        (["a:1", "b:2", "a:1"], [("a", 1), ("b", 2)]),
        ("[::1]:9092,[fe80::1%eth0]:1", [("::1", 9092), ("fe80::1%eth0", 1)]),
        ([("a", 1), Address("::1", 2)], [("a", 1), ("::1", 2)]),
        ("10.0.0.1:65535", [("10.0.0.1", 65535)]),
        ("my-broker_1.example.com:1", [("my-broker_1.example.com", 1)]),
    ],
)
def test_brokers_are_read(written: Any, addresses: list[tuple[str, int]]) -> None:
    config = ClientConfig(written)
    assert list(config.bootstrap_addresses) == addresses
    shown = [str(each) for each in config.bootstrap_addresses]
    assert ClientConfig(shown).bootstrap_addresses == config.bootstrap_addresses


@pytest.mark.parametrize(
    "written",
    [
        *("", "localhost", "localhost:", ":9092", "::1:9092", "[::1]", "[zz]:1", "a b:1", "a:1;b:2", "a:1,,b:2"),
        *("a:0", "a:65536", "a:999999", "a:\u0661", "a:-1", "a:1.5", "SSL://a:1"),
        *(9092, None, b"a:1", [], [9092], [None], [("a", "1")], [("a", True)], [("a", 0)], [("a", 1, 2)], [("", 1)]),
    ],
    ids=str,
)
def test_what_names_no_broker_is_refused(written: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientConfig(written)
    assert caught.value.settings == ("bootstrap_servers",)


def test_a_protocol_in_an_address_belongs_elsewhere() -> None:
    with pytest.raises(ConfigError, match="without SSL://, which security_protocol says"):
        ClientConfig("SSL://a:1")


def test_a_config_is_copied_with_its_addresses() -> None:
    config = ClientConfig("a:1,[::1]:2")
    assert replace(config, client_id="other").bootstrap_addresses == config.bootstrap_addresses
