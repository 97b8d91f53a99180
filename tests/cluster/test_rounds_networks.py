"""One broker is cut off from the others, from etcd, from clients, in one direction or both; links are slow, and
connections half-open: nothing acknowledged is lost, nothing is doubled.

By a relay, which always works, and by namespaces where the user is root. The names of the tests tell what ran;
`test_networks.py` fails where neither works.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.namespaces import why_not
from tests.cluster.network_faults import (
    SIDES,
    WAYS,
    NamespacedCluster,
    RelayedCluster,
    Side,
    Way,
    cut,
    delayed,
    left_half_open,
    limited,
    namespaced_cluster,
    relayed_cluster,
    reset,
    slowed,
)
from tests.cluster.rounds import IS_SHORT, KINDS_A_CLUSTER, ROUNDS, Fault, Story, lots, not_when_short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240 + 90 * ROUNDS * KINDS_A_CLUSTER)]

CUTS: Final[dict[str, tuple[Side, Way]]] = {f"cut from {side}, {way}": (side, way) for side in SIDES for way in WAYS}
BY_RELAY: Final[dict[str, Callable[[RelayedCluster], Fault]]] = {
    "delay": lambda cluster: delayed(cluster.relay),
    "slow link": lambda cluster: slowed(cluster.relay),
    "reset": lambda cluster: reset(cluster.relay),
    "half-open, lost by who connected": lambda cluster: left_half_open(cluster.relay, "origin"),
    "half-open, lost by who accepted": lambda cluster: left_half_open(cluster.relay, "target"),
    **{what: partial(cut, side=side, way=way) for what, (side, way) in CUTS.items()},
}
BY_NAMESPACES: Final[dict[str, Callable[[NamespacedCluster], Fault]]] = {
    "slow link": lambda cluster: limited(cluster.namespaces),
    **{what: partial(cut, side=side, way=way) for what, (side, way) in CUTS.items()},
}


@not_when_short
@pytest.mark.parametrize("whats", lots(["any"] if IS_SHORT else BY_RELAY))
def test_nothing_is_lost_or_doubled_through_a_relay(whats: Sequence[str], tmp_path: Path) -> None:
    with (
        relayed_cluster(tmp_path) as cluster,
        Story(f"relay: {whats[0]}", cluster, bootstrap=cluster.advertised) as story,
    ):
        for what in whats:
            story.rounds(f"relay: {what}", BY_RELAY[what](cluster))


@not_when_short
@pytest.mark.parametrize("whats", lots(["any"] if IS_SHORT else BY_NAMESPACES))
def test_nothing_is_lost_or_doubled_between_namespaces(whats: Sequence[str], tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with namespaced_cluster(tmp_path) as cluster, Story(f"namespaces: {whats[0]}", cluster) as story:
        for what in whats:
            story.rounds(f"namespaces: {what}", BY_NAMESPACES[what](cluster))
