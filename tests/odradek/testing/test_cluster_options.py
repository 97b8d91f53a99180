"""What the brokers of a test are told follows from the options, and `config` has the last word."""

import pytest

from odradek.testing.cluster_options import ClusterOptions


@pytest.mark.parametrize(("config", "wait_ms"), [({}, 50), ({"replica.fetch.wait.max.ms": "500"}, 500)])
def test_a_new_topics_first_record_waits_briefly_for_followers(config: dict[str, str], wait_ms: int) -> None:
    assert [each.config.replica_fetch_wait_max_ms for each in ClusterOptions(config=config).settings()] == [wait_ms] * 3
