"""Brokers are known by their client ids, and nobody else is taken for one."""

import pytest

from odradek.testing.faults.own_clients import is_between_brokers


@pytest.mark.parametrize(("client_id", "is_so"), [("broker-1", True), ("broker-x", False), ("b", False), (None, False)])
def test_brokers_are_told_apart(client_id: str | None, is_so: bool) -> None:
    assert is_between_brokers(client_id) is is_so
