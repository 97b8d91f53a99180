"""What is told of a topic that uses one core only: where there are several brokers on one machine."""

import pytest

from odradek.client.commands.warnings import uses_one_core


def test_a_lone_partition_among_brokers_of_one_machine_is_told_of() -> None:
    assert uses_one_core("orders", ["127.0.0.1"] * 4) == (
        "orders has one partition, which one of the 4 brokers of this machine serves, on one core: give --partitions 4 "
        "or more to use all of them"
    )


@pytest.mark.parametrize("hosts", [[], ["a"], ["a", "b"], ["a", "a", "b"]])
def test_elsewhere_nothing_is_said(hosts: list[str]) -> None:
    assert uses_one_core("orders", hosts) is None
