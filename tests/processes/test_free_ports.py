"""Ports that are free when they are looked for, and that no connection gets afterwards."""

import socket

import pytest

from processes import free_ports as module
from processes.free_ports import FIRST, free_ports, free_run


def test_they_are_different_free_and_below_those_of_connections() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        assert FIRST <= max(ports) < min(server.getsockname()[1], connection.getsockname()[1])
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()


def test_a_port_that_is_taken_is_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    [first, second] = sorted(free_ports(2))
    monkeypatch.setattr(module, "FIRST", first)
    monkeypatch.setattr(module, "_end", lambda: first + 1)
    with socket.create_server(("127.0.0.1", first)), pytest.raises(OSError, match="hardly any is free"):
        free_ports(1)
    assert free_ports(1) == [first]
    assert second > first


def test_ports_next_to_one_another_are_free_and_below_those_of_connections() -> None:
    first = free_run(5)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        assert first >= FIRST
        assert first + 4 < min(server.getsockname()[1], connection.getsockname()[1])
    for port in range(first, first + 5):
        socket.create_server(("127.0.0.1", port)).close()


def test_a_run_with_a_port_that_is_taken_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_run(3)
    monkeypatch.setattr(module, "FIRST", first)
    monkeypatch.setattr(module, "_end", lambda: first + 3)
    with socket.create_server(("127.0.0.1", first + 1)), pytest.raises(OSError, match="none is free"):
        free_run(3)
    assert free_run(3) == first
