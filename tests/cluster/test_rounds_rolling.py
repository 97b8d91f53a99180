"""A rolling restart of all brokers under load: no send fails in a client with the settings that it has by default."""

from pathlib import Path
from random import Random

import pytest

from tests.cluster.real_cluster import RealCluster, plain_cluster
from tests.cluster.rounds import ROUNDS, Story, not_when_short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + 120 * ROUNDS)]


@not_when_short
def test_no_send_fails_when_all_brokers_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    what = "rolling restart"
    with plain_cluster(tmp_path) as cluster, Story(what, cluster, is_patient=True) as story:
        story.rounds(what, _all_restarted)


def _all_restarted(cluster: RealCluster, rng: Random) -> None:
    """The next one when all replicas are in sync again, as an operator does it."""
    for broker in rng.sample(cluster.brokers, len(cluster.brokers)):
        cluster.happened("clean stop", broker.name)
        broker.stop()
        cluster.happened("start", broker.name)
        broker.start()
        cluster.wait_until_whole()
