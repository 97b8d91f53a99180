"""What the brokers of a test are told follows from the options, and `config` has the last word."""

import pytest

from odradek.testing.cluster_options import DEFAULTS, ClusterOptions


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_of_the_kit_gives_way_to_what_the_test_says(name: str) -> None:
    assert ClusterOptions().static[name] == DEFAULTS[name]
    assert ClusterOptions(config={name: "7"}).static[name] == "7"


@pytest.mark.parametrize(("config", "wait_ms"), [({}, 500), ({"replica.fetch.wait.max.ms": "50"}, 50)])
def test_all_brokers_are_told(config: dict[str, str], wait_ms: int) -> None:
    assert [each.config.replica_fetch_wait_max_ms for each in ClusterOptions(config=config).settings()] == [wait_ms] * 3
