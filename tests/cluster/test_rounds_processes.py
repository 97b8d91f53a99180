"""Processes that are killed, paused and restarted under load: nothing acknowledged is lost, nothing is doubled.

Each test is one cluster, a few kinds of rounds, and as many rounds of each as PROCESS_ROUNDS says. Without it there is
one round of the most telling kind.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.process_faults import (
    LONG_PAUSE_S,
    SHORT_PAUSE_S,
    all_killed,
    etcd_killed,
    etcd_paused,
    etcd_restarted,
    gone_without_etcd,
    killed,
    killed_alone,
    paused,
    restarted,
)
from tests.cluster.real_cluster import plain_cluster
from tests.cluster.rounds import IS_SHORT, KINDS_A_CLUSTER, ROUNDS, Fault, Story, lots, not_when_short
from tests.cluster.whole_process import cluster_in_one

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + 90 * ROUNDS * KINDS_A_CLUSTER)]

KINDS: Final[dict[str, Fault]] = {
    "SIGKILL, leader": killed("leader"),
    "SIGKILL, leader, while its followers stand still": killed_alone,
    "SIGKILL, follower": killed("follower"),
    "SIGKILL, controller": killed("controller"),
    "SIGKILL, etcd": etcd_killed,
    "SIGKILL, all brokers at once": all_killed,
    "SIGSTOP for a moment, leader": paused("leader", SHORT_PAUSE_S),
    "SIGSTOP for a moment, follower": paused("follower", SHORT_PAUSE_S),
    "SIGSTOP for a moment, controller": paused("controller", SHORT_PAUSE_S),
    "SIGSTOP for a moment, etcd": etcd_paused(SHORT_PAUSE_S),
    "SIGSTOP past the lease, leader": paused("leader", LONG_PAUSE_S),
    "SIGSTOP past the lease, follower": paused("follower", LONG_PAUSE_S),
    "SIGSTOP past the lease, controller": paused("controller", LONG_PAUSE_S),
    "SIGSTOP past the lease, etcd": etcd_paused(LONG_PAUSE_S),
    "clean restart, leader": restarted("leader"),
    "clean restart, follower": restarted("follower"),
    "clean restart, controller": restarted("controller"),
    "clean restart, etcd": etcd_restarted,
    "SIGKILL, leader, while etcd stands still": gone_without_etcd(is_clean=False),
    "clean restart, leader, while etcd stands still": gone_without_etcd(is_clean=True),
}
TELLING: Final = "SIGKILL, leader, while its followers stand still"


@pytest.mark.parametrize("whats", lots([TELLING] if IS_SHORT else KINDS))
def test_nothing_is_lost_or_doubled(whats: Sequence[str], tmp_path: Path) -> None:
    with plain_cluster(tmp_path) as cluster, Story(whats[0], cluster) as story:
        for what in whats:
            story.rounds(what, KINDS[what])


@not_when_short
def test_nothing_is_lost_or_doubled_when_three_brokers_in_one_process_are_killed(tmp_path: Path) -> None:
    what = "SIGKILL, three brokers in one process"
    with cluster_in_one(tmp_path) as cluster, Story(what, cluster) as story:
        story.rounds(what, all_killed)
