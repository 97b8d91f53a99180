"""The options of quotas and of how many connections there may be: how they are read, and who goes by them."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import INT_MAX, ConfigError, Dynamic, rows
from odradek.broker.config.quota_options import QuotaOptions, canonical, parse_overrides

OPTIONS = rows(QuotaOptions)
WINDOWS = [name for name in OPTIONS if ".window." in name]
LIMITS = ["max.connection.creation.rate", "max.connections.per.ip"]


def test_they_are_options_of_a_broker_in_order_of_their_names() -> None:
    assert list(OPTIONS) == sorted(OPTIONS)
    assert OPTIONS.items() <= BROKER_OPTIONS.items()


def test_the_defaults_are_apache_kafkas() -> None:
    config = BrokerConfig({})
    assert (config.quota_window_num, config.quota_window_size_seconds) == (11, 1)
    assert (config.controller_quota_window_num, config.controller_quota_window_size_seconds) == (11, 1)
    assert (config.max_connection_creation_rate, config.max_connections_per_ip) == (INT_MAX, INT_MAX)
    assert config.max_connections_per_ip_overrides == ""


def test_limits_may_change_while_the_broker_runs_and_windows_may_not() -> None:
    fixed = [row.name for row in OPTIONS.values() if row.dynamic is Dynamic.READ_ONLY]
    assert sorted(fixed) == WINDOWS
    assert {row.dynamic for row in OPTIONS.values()} == {Dynamic.READ_ONLY, Dynamic.CLUSTER_WIDE}


@pytest.mark.parametrize("name", [*WINDOWS, *LIMITS])
def test_what_makes_no_sense_is_refused(name: str) -> None:
    for value in ("-1", "many", *(["0"] if name in WINDOWS else [])):
        with pytest.raises(ConfigError, match=name):
            BrokerConfig({name: value})


def test_overrides_are_by_address() -> None:
    assert parse_overrides("") == {}
    assert parse_overrides(" 127.0.0.1:200 ,::1:7,[2001:DB8::1]:0,") == {"127.0.0.1": 200, "::1": 7, "2001:db8::1": 0}


@pytest.mark.parametrize(
    "value", ["localhost:5", "127.0.0.1", "127.0.0.1:-1", "127.0.0.1:x", ":5", "127.0.0.1:99999999999"]
)
def test_overrides_that_are_none_are_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="list of ADDRESS:COUNT"):
        BrokerConfig({"max.connections.per.ip.overrides": value})


def test_an_address_is_itself_however_it_is_written() -> None:
    assert canonical("::FFFF:10.0.0.1") == canonical("10.0.0.1") == "10.0.0.1"
    assert canonical("2001:DB8:0:0::1") == "2001:db8::1"
    assert canonical("fe80::1%eth0") == "fe80::1%eth0"


def test_a_callback_of_javas_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"client\.quota\.callback\.class .*classes of Java are not loaded"):
        BrokerConfig({"client.quota.callback.class": "org.example.Quotas"})
