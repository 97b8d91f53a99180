"""What protects a broker: what is told of its listeners at each start, and what `--secure` refuses, each by itself."""

import logging
from dataclasses import replace

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener, parse_listener
from odradek.broker.config.option import ConfigError
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.launch.listen_options import ListenerError
from odradek.broker.launch.protection import (
    ListenerProtection,
    Protection,
    check,
    protection_of,
    refusals,
    tell,
    warnings,
)
from tests.broker.config.security_rows import security_rows

__all__ = ["security_rows"]

PLAINTEXT, SSL = SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL
SASL_PLAINTEXT, SASL_SSL = SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL
OUTSIDE = parse_listener("OUT://b1.example:9093")
LOOPBACK = parse_listener("IN://127.0.0.1:9092")
SCRAM = ("SCRAM-SHA-512",)
SAFE = ListenerProtection(OUTSIDE, SASL_SSL, mechanisms=SCRAM)
MUTUAL = ListenerProtection(OUTSIDE, SSL, client_auth="required")


def protected(*listeners: ListenerProtection, metrics: Listener | None = None) -> Protection:
    return Protection(listeners, metrics, has_authorizer=True)


# -- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (ListenerProtection(OUTSIDE, PLAINTEXT), "without authentication or encryption: whoever reaches it can do"),
        (ListenerProtection(OUTSIDE, SSL), "encrypted, but without authentication (ssl.client.auth=none): whoever "),
        (ListenerProtection(OUTSIDE, SSL, client_auth="requested"), "authentication (ssl.client.auth=requested): "),
        (ListenerProtection(OUTSIDE, SASL_PLAINTEXT, mechanisms=SCRAM), "without encryption: who is on the way reads"),
        (replace(SAFE, takes_unsigned_tokens=True), "takes tokens that nobody has signed"),
        (SAFE, None),
        (MUTUAL, None),
    ],
)
def test_a_listener_that_others_can_reach_is_warned_of(one: ListenerProtection, said: str | None) -> None:
    told = warnings(protected(one))
    if said is None:
        assert told == []
    else:
        (sentence,) = told
        assert sentence.startswith("listener OUT://b1.example:9093 accepts connections from other machines")
        assert said in sentence
    assert warnings(protected(replace(one, listener=LOOPBACK))) == []


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    one = ListenerProtection(OUTSIDE, PLAINTEXT)
    assert warnings(Protection([one]))[0].endswith("whoever reaches it can read, write and delete everything")
    assert warnings(protected(one))[0].endswith("whoever reaches it can do what ACLs allow to everybody")


def test_a_page_of_metrics_is_a_listener_without_authentication() -> None:
    page = parse_listener("PLAINTEXT://b1.example:9100")
    (sentence,) = warnings(protected(SAFE, metrics=page))
    assert sentence.startswith("the page of metrics on b1.example:9100 can be read from other machines, without ")
    assert warnings(protected(SAFE, metrics=LOOPBACK)) == []


@pytest.mark.parametrize(
    ("address", "is_told"),
    [
        ("A://127.0.0.1:9092", False),
        ("A://127.9.9.9:9092", False),
        ("A://localhost:9092", False),
        ("A://[::1]:9092", False),
        ("A://[0:0:0:0:0:0:0:1]:9092", False),
        ("A://[::ffff:127.0.0.1]:9092", False),
        ("A://0.0.0.0:9092", True),
        ("A://192.168.1.7:9092", True),
        ("A://:9092", True),
        ("A://[::]:9092", True),
        ("A://broker.example:9092", True),
        ("A://127.0.0.1.evil.example:9092", True),
        ("A://127.evil:9092", True),
        ("A://[::ffff:10.0.0.1]:9092", True),
    ],
)
def test_which_addresses_others_can_reach(address: str, is_told: bool) -> None:
    listener = parse_listener(address)
    told = warnings(protection_of([LOOPBACK, listener], BrokerConfig(), None))
    begin = f"listener {listener} accepts connections from other machines, without authentication or encryption: "
    assert told == ([f"{begin}whoever reaches it can read, write and delete everything"] if is_told else [])


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (SAFE, "listener OUT://b1.example:9093 speaks SASL_SSL (SCRAM-SHA-512)"),
        (MUTUAL, "listener OUT://b1.example:9093 speaks SSL (client certificates: required)"),
        (
            ListenerProtection(LOOPBACK, PLAINTEXT),
            "listener IN://127.0.0.1:9092 speaks PLAINTEXT, without authentication or encryption",
        ),
    ],
)
def test_what_protects_a_listener_is_said_in_a_line(one: ListenerProtection, text: str) -> None:
    assert str(one) == text


def test_each_start_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tell([LOOPBACK, OUTSIDE], BrokerConfig(), OUTSIDE)
    assert [(record.levelname, record.message[:40]) for record in caplog.records] == [
        ("INFO", "listener IN://127.0.0.1:9092 speaks PLAI"),
        ("INFO", "listener OUT://b1.example:9093 speaks PL"),
        ("WARNING", "listener OUT://b1.example:9093 accepts c"),
        ("WARNING", "the page of metrics on b1.example:9093 c"),
    ]


@pytest.mark.usefixtures("security_rows")
def test_a_jaas_line_without_a_mechanism_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Its passwords would be nobody's, and it is a hint at a mistake (JaasContext.java warns, too)."""
    static = {"sasl.jaas.config": "hunter2", "listener.name.in.sasl.jaas.config": "hunter2"}
    static["listener.name.in.plain.sasl.jaas.config"] = "hunter2"
    with caplog.at_level(logging.WARNING):
        tell([LOOPBACK], BrokerConfig(static), None)
    assert [message.split()[0] for message in caplog.messages] == list(static)[:2]
    assert "hunter2" not in caplog.text


@pytest.mark.usefixtures("security_rows")
def test_what_counts_for_each_listener_is_found() -> None:
    config = BrokerConfig(
        {
            "listener.security.protocol.map": "A:SSL,B:SASL_SSL,C:SSL",
            "ssl.client.auth": "requested",
            "listener.name.a.ssl.client.auth": "required",
            "listener.name.b.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        }
    )
    listeners = [parse_listener(f"{name}://h:1") for name in "ABCD"]
    found = protection_of(listeners, config, None)
    assert [(each.protocol, each.client_auth, each.mechanisms) for each in found.listeners] == [
        (SSL, "required", ()),
        (SASL_SSL, "none", ("PLAIN", "OAUTHBEARER")),
        (SSL, "requested", ()),
        (PLAINTEXT, "none", ()),
    ]
    assert [each.knows_clients for each in found.listeners] == [True, True, False, False]


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [SAFE, MUTUAL])
def test_what_is_safe_may_start(one: ListenerProtection) -> None:
    assert refusals(protected(one, ListenerProtection(LOOPBACK, PLAINTEXT), metrics=LOOPBACK)) == []


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (ListenerProtection(OUTSIDE, PLAINTEXT), "speaks PLAINTEXT, which is not encrypted: use SASL_SSL, or SSL with"),
        (ListenerProtection(OUTSIDE, SASL_PLAINTEXT, mechanisms=SCRAM), "which is not encrypted: use SASL_SSL, or li"),
        (ListenerProtection(OUTSIDE, SSL), "set listener.name.out.ssl.client.auth=required, or use SASL_SSL"),
        (replace(MUTUAL, client_auth="requested"), "speaks SSL with ssl.client.auth=requested, so it does not know"),
        (replace(SAFE, takes_unsigned_tokens=True), "set sasl.oauthbearer.allow.unsecured.tokens=false"),
    ],
)
def test_a_listener_that_is_not_safe_is_refused_beyond_loopback(one: ListenerProtection, said: str) -> None:
    (sentence,) = refusals(protected(one))
    assert sentence.startswith("--secure: listener OUT://b1.example:9093 accepts connections from other machines and ")
    assert said in sentence
    assert refusals(protected(replace(one, listener=LOOPBACK))) == []


@pytest.mark.parametrize(
    ("protection", "said"),
    [
        (replace(protected(SAFE), has_authorizer=False), "there is no authorizer, so everybody who is known may do"),
        (replace(protected(SAFE), allows_without_acl=True), "allow.everyone.if.no.acl.found allows everything"),
        (protected(SAFE, metrics=OUTSIDE), "the page of metrics on b1.example:9093 is open to other machines"),
        (replace(protected(SAFE), etcd_lacks=("TLS",)), "the metadata is in an etcd without TLS: whoever reaches it"),
    ],
)
def test_what_else_is_not_safe_is_refused(protection: Protection, said: str) -> None:
    (sentence,) = refusals(protection)
    assert said in sentence


def test_on_loopback_nobody_needs_an_authorizer_but_etcd_is_looked_at() -> None:
    """Whoever is on the machine reaches an etcd on loopback; the broker's own users are not the same."""
    only = Protection([ListenerProtection(LOOPBACK, PLAINTEXT)], allows_without_acl=True)
    assert refusals(only) == []
    assert len(refusals(replace(only, etcd_lacks=("TLS",)))) == 1


@pytest.mark.parametrize(
    ("options", "lacks"),
    [
        ({}, ["TLS", "credentials"]),
        ({"metadata.etcd.ca.location": "/ca"}, ["credentials"]),
        ({"metadata.etcd.ca.location": "/ca", "metadata.etcd.username": "odradek"}, ["credentials"]),
        ({"metadata.etcd.username": "odradek", "metadata.etcd.password": "x"}, ["TLS"]),
        (
            {"metadata.etcd.ca.location": "/ca", "metadata.etcd.username": "odradek", "metadata.etcd.password": "x"},
            [],
        ),
        ({"metadata.etcd.ca.location": "/ca", "metadata.etcd.certificate.location": "/c"}, []),
    ],
)
def test_what_an_etcd_lacks(options: dict[str, str], lacks: list[str]) -> None:
    config = BrokerConfig({"metadata.store": "etcd://127.0.0.1:2379/odradek", **options})
    assert [each.split()[0] for each in protection_of([LOOPBACK], config, None).etcd_lacks] == lacks
    assert protection_of([LOOPBACK], BrokerConfig(options), None).etcd_lacks == ()


def test_a_start_is_refused_with_every_reason() -> None:
    static = {"secure": "true", "metadata.store": "etcd://h:2379/x", "metadata.etcd.password": "hunter2"}
    with pytest.raises(ConfigError) as caught:
        check([OUTSIDE], BrokerConfig(static), OUTSIDE)
    first, *lines = str(caught.value).splitlines()
    assert (first, len(lines)) == ("4 mistakes in the configuration of the broker:", 4)
    assert all(line.startswith("  --secure: ") for line in lines)
    assert "hunter2" not in str(caught.value)
    check([OUTSIDE], BrokerConfig(static | {"secure": "false"}), OUTSIDE)
    check([LOOPBACK], BrokerConfig({"secure": "true"}), None)


@pytest.mark.usefixtures("security_rows")
def test_an_option_of_a_listener_that_is_not_there_is_refused() -> None:
    """Kafka takes it silently: the listener that was meant would ask nobody for a certificate."""
    config = BrokerConfig({"listener.name.external.ssl.client.auth": "required"})
    said = r"^listener\.name\.external\.ssl\.client\.auth: there is no listener named EXTERNAL; there are IN, OUT$"
    with pytest.raises(ListenerError, match=said):
        check([LOOPBACK, OUTSIDE], config, None)
    check([parse_listener("external://h:1")], config, None)
