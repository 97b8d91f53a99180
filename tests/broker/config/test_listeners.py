"""Kafka's own form of a listener: read and written back, twice the same name refused, loopback and wildcard known."""

import pytest

from odradek.broker.config.listeners import Listener, check_listeners, parse_listener


@pytest.mark.parametrize(
    "text", ["PLAINTEXT://127.0.0.1:9092", "INSIDE://:0", "OUT_1://[fe80::1]:65535", "X-Y://broker.example:1"]
)
def test_what_is_read_is_written_back(text: str) -> None:
    assert str(parse_listener(text)) == text


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "A://h", "A://h:65536", "A://::1:9", "://h:1", "A B://h:1", ""])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not NAME://HOST:PORT"):
        parse_listener(text)
    assert check_listeners((text,)) is not None


def test_a_name_stands_once() -> None:
    assert check_listeners(("A://h:1", "B://h:2")) is None
    assert check_listeners(("A://h:1", "a://h:2")) == "the listener name A stands twice"


def test_loopback_is_recognised() -> None:
    assert all(Listener("A", host, 1).is_loopback for host in ("127.0.0.1", "127.9.9.9", "localhost", "::1"))
    assert not any(Listener("A", host, 1).is_loopback for host in ("10.0.0.1", "::", "example.org"))


@pytest.mark.parametrize("host", ["${HOST}", "a b", "[::g]", "300.1.1.1", "x" * 64, "[name]"])
def test_a_host_that_cannot_be_is_refused(host: str) -> None:
    assert f"PLAINTEXT://{host}:9092" in (check_listeners([f"PLAINTEXT://{host}:9092"]) or "")
