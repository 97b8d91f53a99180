"""Names of options under a listener and a mechanism: which there are, and what is said of the others."""

import pytest

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.listener_options import listeners_in, prefix_of, refusal, row_of, scoped_option
from tests.broker.config.security_rows import SecurityRows, security_rows

__all__ = ["security_rows"]

pytestmark = pytest.mark.usefixtures("security_rows")

ALL = BROKER_OPTIONS


@pytest.mark.parametrize(
    ("name", "listener", "mechanism", "option"),
    [
        ("listener.name.external.ssl.key.password", "external", "", "ssl.key.password"),
        ("listener.name.a-b_c.ssl.client.auth", "a-b_c", "", "ssl.client.auth"),
        ("listener.name.ssl.max.connections", "ssl", "", "max.connections"),
        ("listener.name.x.plain.sasl.jaas.config", "x", "plain", "sasl.jaas.config"),
        ("listener.name.x.scram-sha-512.connections.max.reauth.ms", "x", "scram-sha-512", "connections.max.reauth.ms"),
        ("listener.name.x.connections.max.reauth.ms", "x", "", "connections.max.reauth.ms"),
        ("listener.name.x.sasl.jaas.config", "x", "", "sasl.jaas.config"),
    ],
)
def test_an_option_of_a_listener(name: str, listener: str, mechanism: str, option: str) -> None:
    assert scoped_option(name, ALL) == (listener, mechanism, ALL[option])
    assert row_of(name, ALL) is ALL[option]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("listener.name.x", "an option of a listener is listener.name.NAME.OPTION"),
        ("listener.name..ssl.key.password", "an option of a listener is listener.name.NAME.OPTION"),
        ("listener.name.x.", "an option of a listener is listener.name.NAME.OPTION"),
        (
            "listener.name.EXTERNAL.ssl.key.password",
            "in lower case there: listener.name.external.ssl.key.password",
        ),
        ("listener.name.x.num.partitions", "num.partitions cannot be set for one listener; write num.partitions"),
        (
            "listener.name.x.plain.ssl.key.password",
            "ssl.key.password cannot be set for one mechanism; write listener.name.x.ssl.key.password",
        ),
        ("listener.name.x.plain.num.partitions", "cannot be set for one mechanism; write num.partitions"),
        ("listener.name.x.PLAIN.sasl.jaas.config", "the mechanism is written in lower case there, plain"),
        (
            "listener.name.x.gssapi.sasl.jaas.config",
            "gssapi is no mechanism of SASL that is served; those are plain, scram-sha-256, scram-sha-512, oauthbearer",
        ),
        ("listener.name.x.ssl.key.pasword", "did you mean listener.name.x.ssl.key.password?"),
        ("listener.name.x.plain.sasl.jaas.conf", "did you mean listener.name.x.plain.sasl.jaas.config?"),
    ],
)
def test_another_name_is_refused_with_what_to_write(name: str, said: str) -> None:
    """Kafka takes each of them, and nothing comes of it."""
    assert scoped_option(name, ALL) is None
    assert row_of(name, ALL) is None
    error = refusal(name, ALL)
    assert name in error.message
    assert error.message.endswith(said)


def test_a_broker_has_its_own_rows() -> None:
    assert row_of("ssl.key.password", ALL) is SecurityRows.ssl_key_password
    assert row_of("no.such", ALL) is None
    assert scoped_option("ssl.key.password", ALL) is None


def test_listeners_are_found_by_the_first_option_of_each() -> None:
    names = (
        "num.partitions",
        "listener.name.b.plain.sasl.jaas.config",
        "listener.name.a.ssl.client.auth",
        "listener.name.b.ssl.client.auth",
        "listener.name.c.no.such",
    )
    assert listeners_in(names, ALL) == {"b": names[1], "a": names[2]}
    assert prefix_of("EXTERNAL") == "listener.name.external."
