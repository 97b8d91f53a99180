"""A consumer group under faults of its coordinator, with members of five libraries that come and go, ours and Java's
among them: every record is processed, offsets never go back, each partition has one owner, and nobody is stuck.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.group_faults import GroupFault, all_killed, cut_from, killed, paused, restarted, rolled
from tests.cluster.group_rounds import GROUP_OPTIONS, GroupStory
from tests.cluster.network_faults import SIDES, Side, relayed_cluster
from tests.cluster.real_cluster import plain_cluster
from tests.cluster.rounds import IS_SHORT, KINDS_A_CLUSTER, ROUNDS, lots, not_when_short

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300 + 120 * ROUNDS * KINDS_A_CLUSTER)]

KINDS: Final[dict[str, GroupFault]] = {
    "SIGKILL, coordinator": killed,
    "SIGKILL, all brokers at once": all_killed,
    "SIGSTOP past the lease, coordinator": paused,
    "clean restart, coordinator": restarted,
    "rolling restart": rolled,
}
TELLING: Final = "SIGKILL, coordinator"


@pytest.mark.parametrize("whats", lots([TELLING] if IS_SHORT else KINDS))
def test_a_group_misses_nothing(whats: Sequence[str], tmp_path: Path) -> None:
    with plain_cluster(tmp_path, *GROUP_OPTIONS) as cluster, GroupStory(whats[0], cluster) as story:
        for what in whats:
            story.rounds(what, KINDS[what])


@not_when_short
@pytest.mark.parametrize("sides", lots(SIDES))
def test_a_group_misses_nothing_when_its_coordinator_is_cut_off(sides: Sequence[Side], tmp_path: Path) -> None:
    with (
        relayed_cluster(tmp_path) as cluster,
        GroupStory(f"coordinator cut from {sides[0]}", cluster, bootstrap=cluster.advertised) as story,
    ):
        for side in sides:
            story.rounds(f"coordinator cut from {side}", cut_from(side))
