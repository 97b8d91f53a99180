"""`--listen` and `--advertise`: what is accepted, what is advertised, and what the refusals say."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig, ConfigError
from odradek.broker.config.listeners import Listener
from odradek.broker.launch.listen_options import (
    ListenerError,
    check_inter_broker,
    check_listeners,
    check_sasl,
    parse_address,
    parse_metrics_address,
)


def parse_listeners(listen: tuple[str, ...], advertise: tuple[str, ...]) -> tuple[list[Listener], dict[str, Listener]]:
    """Both options as the command line gives them."""
    return check_listeners(
        [parse_address(text, "--listen") for text in listen], [parse_address(text, "--advertise") for text in advertise]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9092", Listener("PLAINTEXT", "127.0.0.1", 9092)),
        ("localhost:0", Listener("PLAINTEXT", "localhost", 0)),
        ("inside=10.0.0.1:9093", Listener("INSIDE", "10.0.0.1", 9093)),
        ("[::1]:9092", Listener("PLAINTEXT", "::1", 9092)),
        ("OUT=[fe80::1]:1", Listener("OUT", "fe80::1", 1)),
        (":9092", Listener("PLAINTEXT", "", 9092)),
    ],
)
def test_forms_that_are_read(text: str, expected: Listener) -> None:
    assert parse_address(text, "--listen") == expected


@pytest.mark.parametrize("text", ["127.0.0.1", "localhost:port", "::1:9092", "h:65536", "a b=h:1", "h:-1", ""])
def test_forms_that_are_refused_name_the_option_and_the_form(text: str) -> None:
    with pytest.raises(ListenerError, match=r"--listen .*"):
        parse_address(text, "--listen")


def test_a_listener_advertises_itself_unless_told_otherwise() -> None:
    listeners, advertised = parse_listeners(("A=127.0.0.1:1", "B=0.0.0.0:2"), ("B=broker.example:99",))
    assert [listener.name for listener in listeners] == ["A", "B"]
    assert advertised == {"A": Listener("A", "127.0.0.1", 1), "B": Listener("B", "broker.example", 99)}


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", ""])  # noqa: S104 - refused is what they should be
def test_a_wildcard_without_advertise_is_refused_with_what_to_add(host: str) -> None:
    with pytest.raises(ListenerError, match=r"add --advertise PLAINTEXT=HOST:9092"):
        parse_listeners((f"{host}:9092",), ())


@pytest.mark.parametrize(
    ("listen", "advertise", "sentence"),
    [
        (("h:1", "h:2"), (), "two listeners are named PLAINTEXT"),
        (("h:1",), ("X=h:1",), "no listener named X"),
        (("h:1",), ("h:1", "h:2"), "advertised twice"),
        (("h:1",), ("0.0.0.0:1",), "cannot connect to a wildcard"),
    ],
)
def test_contradictions_are_refused(listen: tuple[str, ...], advertise: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ListenerError, match=sentence):
        parse_listeners(listen, advertise)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("${HOST_IP}:9092", "a variable was not replaced"),
        ("a:1,b:2", "several addresses"),
        ("PLAINTEXT://a:1", "without a scheme"),
        ("a b:1", "space"),
        ("[fe80::zz]:1", "no IPv6 address"),
        ("[name]:1", "IPv6 addresses alone"),
        ("300.1.1.1:1", "no IPv4 address"),
        ("x" * 64 + ":1", "DNS allows 63"),
        ("a:٣", "a port from 0 to 65535"),
        ("a:" + "9" * 5000, "a port from 0 to 65535"),
        ("é=a:1", "letters, digits and _"),
        ("my_service.:0", None),
        ("broker:9092", None),
    ],
)
def test_what_only_others_would_have_noticed_is_refused(text: str, sentence: str | None) -> None:
    """And 0 is a port that can be advertised, for the one that was bound."""
    if sentence is None:
        parse_listeners(("127.0.0.1:0",), (text,))
        return
    with pytest.raises(ListenerError) as caught:
        parse_address(text, "--advertise")
    assert str(caught.value).startswith(f"--advertise {text}: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("host", ["0", "0.0.0.0", "[::]", "[::0]", "[0:0::0]", "*", "00.0"])  # noqa: S104
def test_no_spelling_of_the_wildcard_is_advertised(host: str) -> None:
    with pytest.raises(ListenerError, match="cannot connect to a wildcard"):
        parse_listeners(("127.0.0.1:1",), (f"{host}:1",))
    with pytest.raises(ListenerError, match="accepts on every address"):
        parse_listeners((f"{host}:1",), ())


def test_a_zone_is_for_this_machine_alone() -> None:
    with pytest.raises(ListenerError, match="has a zone"):
        parse_listeners(("127.0.0.1:1",), ("[fe80::1%eth0]:1",))
    with pytest.raises(ListenerError, match=r"has a zone, of this machine alone.*add --advertise PLAINTEXT=HOST:1"):
        parse_listeners(("[fe80::1%eth0]:1",), ())
    listeners, _ = parse_listeners(("[fe80::1%eth0]:1",), ("broker:1",))
    assert listeners[0].host == "fe80::1%eth0"


def test_brokers_need_a_listener_that_is_there() -> None:
    listeners, _ = parse_listeners(("A=127.0.0.1:1", "B=127.0.0.1:2"), ())
    check_inter_broker(None, listeners)
    check_inter_broker("b", listeners)
    with pytest.raises(ListenerError, match="no listener named X; there are A, B"):
        check_inter_broker("X", listeners)


def test_metrics_have_no_protocol() -> None:
    assert parse_metrics_address("h:1") == Listener("PLAINTEXT", "h", 1)
    with pytest.raises(ListenerError, match=r"^--metrics ssl=h:1: .* leave SSL= out"):
        parse_metrics_address("ssl=h:1")


def test_the_option_that_names_the_listener_of_brokers_is_told() -> None:
    listeners, _ = parse_listeners(("A=127.0.0.1:1",), ())
    with pytest.raises(ListenerError, match=r"^security\.inter\.broker\.protocol=SSL: there is no listener named SSL"):
        check_inter_broker("SSL", listeners, "security.inter.broker.protocol")


SASL = {"listener.security.protocol.map": "IN:PLAINTEXT,OUT:SASL_PLAINTEXT"}
PLAIN = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.out.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        "user_a='secret' username='a' password='secret';"
    ),
}


@pytest.mark.parametrize(
    ("options", "broker_listener", "said"),
    [
        ({}, "OUT", None),
        (SASL | PLAIN, "OUT", None),
        (SASL | PLAIN, "IN", None),
        (SASL, "IN", "the listener OUT speaks SASL.* GSSAPI"),
        (SASL | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, None, None),
        (SASL | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "IN", None),
        (SASL | {"sasl.enabled.mechanisms": "SCRAM-SHA-512"}, "OUT", "talk to one another by SASL on listener OUT"),
    ],
)
def test_sasl_has_what_it_needs(options: dict[str, str], broker_listener: str | None, said: str | None) -> None:
    listeners = [parse_address("IN=h:1", "--listen"), parse_address("OUT=h:2", "--listen")]
    if said is None:
        check_sasl(listeners, BrokerConfig(options), broker_listener)
        return
    with pytest.raises(ConfigError, match=said):
        check_sasl(listeners, BrokerConfig(options), broker_listener)
