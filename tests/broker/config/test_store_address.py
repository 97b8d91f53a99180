"""`metadata.store` names a store, or is refused with what is allowed instead."""

import pytest

from odradek.broker.config.store_address import (
    PREFIX_SIZE_MAX,
    Endpoint,
    StoreAddress,
    check_store_address,
    parse_store_address,
)


def test_stores_of_one_process_have_a_name_only() -> None:
    assert parse_store_address("memory:") == StoreAddress("memory")
    assert parse_store_address("embedded:") == StoreAddress("embedded")


def test_another_process_of_this_machine_has_a_path() -> None:
    assert parse_store_address("unix:/run/a b/store.sock") == StoreAddress("unix", path="/run/a b/store.sock")
    assert parse_store_address("unix:store.sock").path == "store.sock"


@pytest.mark.parametrize("text", ["unix:", "unix:/", "unix:/a\0b"])
def test_a_path_of_a_socket_is_one(text: str) -> None:
    assert check_store_address(text) == "behind unix: there must be the path of a socket"


@pytest.mark.parametrize(
    ("text", "endpoints", "prefix"),
    [
        ("etcd://etcd-1:2379/prod", [("etcd-1", 2379)], "/prod"),
        (
            "etcd://a,b:1,[::1]:65535,[fe80::1]/x",
            [("a", 2379), ("b", 1), ("::1", 65535), ("fe80::1", 2379)],
            "/x",
        ),
        ("etcd://10.0.0.1:2379,10.0.0.1:2379/kafka/prod_1.a-b/", [("10.0.0.1", 2379)], "/kafka/prod_1.a-b"),
    ],
)
def test_etcd_has_members_and_a_prefix(text: str, endpoints: list[tuple[str, int]], prefix: str) -> None:
    expected = tuple(Endpoint(host, port) for host, port in endpoints)
    assert parse_store_address(text) == StoreAddress("etcd", expected, prefix)
    assert check_store_address(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must be memory:, embedded:, unix:PATH or etcd://"),
        ("memory", "must be memory:, embedded:, unix:PATH or etcd://"),
        ("embedded:/x", "must be memory:, embedded:, unix:PATH or etcd://"),
        ("http://h:2379/x", "must be memory:, embedded:, unix:PATH or etcd://"),
        ("etcd:///x", "must be memory:, embedded:, unix:PATH or etcd://"),
        ("etcd://h:2379", "there must be /prefix"),
        ("etcd://h:2379/", "there must be /prefix"),
        ("etcd://h:2379/a b", "there must be /prefix"),
        ("etcd://h:2379//a", "there must be /prefix"),
        ("etcd://h:2379/" + "a" * PREFIX_SIZE_MAX, "there must be /prefix"),
        ("etcd://h:2379,/a", "each member of etcd must be HOST or HOST:PORT, and '' is not"),
        ("etcd://h:0/a", "'h:0' is not"),
        ("etcd://h:65536/a", "'h:65536' is not"),
        ("etcd://::1/a", "'::1' is not"),
        ("etcd://user@h:port/a", "'user@h:port' is not"),
        ("etcd://[fe80::1%eth0]/a", "'[fe80::1%eth0]' is not"),
    ],
)
def test_anything_else_is_refused_with_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        parse_store_address(text)
    assert reason in str(caught.value)
    assert check_store_address(text) == str(caught.value)


def test_endpoints_are_written_as_they_are_read() -> None:
    for text in ("h:1", "[::1]:2379"):
        (endpoint,) = parse_store_address(f"etcd://{text}/x").endpoints
        assert str(endpoint) == text
