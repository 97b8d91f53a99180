"""etcd is away for a minute: acks=all goes on with the whole in-sync set, consumers wait, and all resumes by itself."""

from pathlib import Path
from random import Random
from typing import Final, Literal

import pytest

from tests.cluster.client_session import now_ms
from tests.cluster.gaps import longest_gap_ms
from tests.cluster.real_cluster import PlainCluster, RealCluster, plain_cluster
from tests.cluster.rounds import ROUNDS, Story, lasts, not_when_short

AWAY_S: Final = 60.0
LEASE_S: Final = 4.0
"""Twice the lease: until then readers may still be served, and have what they had fetched before."""
GAP_MAX_MS: Final = 2_000.0

pytestmark = [pytest.mark.slow, pytest.mark.minutes, pytest.mark.timeout(180 + 150 * ROUNDS)]

How = Literal["SIGKILL", "SIGSTOP"]


@not_when_short
@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_acks_all_goes_on_without_etcd_and_consumers_wait(how: How, tmp_path: Path) -> None:
    what = f"etcd away for {AWAY_S:.0f} s, {how}"
    with plain_cluster(tmp_path) as cluster, Story(what, cluster) as story:

        def away(cluster: RealCluster, rng: Random) -> None:
            del rng
            assert isinstance(cluster, PlainCluster)
            story.clients.wait_for_reading()  # or they still hand out what they have fetched long ago
            from_ms = now_ms()
            _take_away(cluster, how)
            lasts(AWAY_S)
            story.clients.look()
            to_ms = now_ms()
            gap_ms = longest_gap_ms(story.clients.history(), from_ms, to_ms)
            assert gap_ms < GAP_MAX_MS, f"nothing was acknowledged for {gap_ms:.0f} ms"
            read = story.clients.polls_between(from_ms + LEASE_S * 1000, to_ms)
            assert read == [], "somebody read from a leader whose lease was over"
            _bring_back(cluster, how)
            story.clients.wait_for_reading()

        story.rounds(what, away)


def _take_away(cluster: PlainCluster, how: How) -> None:
    cluster.happened("store fault", cluster.etcd.name, how)
    if how == "SIGKILL":
        cluster.etcd.kill()
    else:
        cluster.etcd.pause()


def _bring_back(cluster: PlainCluster, how: How) -> None:
    cluster.happened("heal", cluster.etcd.name)
    if how == "SIGKILL":
        cluster.etcd.start()
    else:
        cluster.etcd.resume()
