"""Kafka's options that are not here: what is said of their names, and how Kafka lets them be changed at run time.

That the table holds Kafka 4.3.1's names, and no others, is shown by tests/compat/test_configs_like_kafka.py.
"""

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.kafka_options import NOT_HERE, is_fixed, needs_broker, needs_listener, reason_for


def test_no_option_stands_in_two_places() -> None:
    assert [name for name in NOT_HERE if name in BROKER_OPTIONS] == []
    assert [name for name in NOT_HERE if is_fixed(name) + needs_listener(name) + needs_broker(name) > 1] == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("num.io.threads", "one thread serves everything"),
        ("listener.name.outside.ssl.provider", NOT_HERE["ssl.provider"]),
        ("ssl.protocol", "`ssl.enabled.protocols` says which versions of TLS are spoken"),
        ("listener.name.outside.gssapi.sasl.kerberos.service.name", NOT_HERE["sasl.kerberos.kinit.cmd"]),
        ("listener.name.outside.num.network.threads", "one thread serves everything"),
        ("listener.name.outside.no.such.option", None),
        ("listener.name.", None),
        ("no.such.option", None),
        ("", None),
    ],
)
def test_why_an_option_is_not_here(name: str, reason: str | None) -> None:
    assert reason_for(name) == reason


@pytest.mark.parametrize(
    ("name", "fixed", "of_listener", "of_broker"),
    [
        ("process.roles", True, False, False),
        ("num.io.threads", False, False, False),
        ("ssl.keystore.key", False, True, False),
        ("ssl.client.auth", False, False, True),
        ("listener.name.outside.ssl.keystore.key", False, False, True),
        ("listener.name.outside.max.connections", False, False, False),
        ("no.such.option", False, False, False),
    ],
)
def test_how_kafka_changes_it_at_run_time(name: str, fixed: bool, of_listener: bool, of_broker: bool) -> None:
    assert (is_fixed(name), needs_listener(name), needs_broker(name)) == (fixed, of_listener, of_broker)
