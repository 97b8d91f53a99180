"""`--listen` and `--advertise`: what is accepted, what is advertised, and what the refusals say."""

import pytest

from broker.listen_options import ListenerError, check_listeners, parse_address
from broker.listeners import Listener


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
