"""A consumer group under faults of its coordinator, with members of five libraries that come and go, ours and Java's
among them: every record is processed, offsets never go back, each partition has one owner, and nobody is stuck.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.cluster.group_faults import GroupFault, all_killed, cut_from, killed, paused, restarted, rolled
from tests.cluster.group_rounds import GROUP_OPTIONS, GroupStory
from tests.cluster.network_faults import SIDES, relayed_cluster
from tests.cluster.real_cluster import plain_cluster
from tests.cluster.rounds import IS_SHORT, ROUNDS, not_when_short

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300 + 120 * ROUNDS)]

KINDS: Final[dict[str, GroupFault]] = {
    "SIGKILL, coordinator": killed,
    "SIGKILL, all brokers at once": all_killed,
    "SIGSTOP past the lease, coordinator": paused,
    "clean restart, coordinator": restarted,
    "rolling restart": rolled,
}
TELLING: Final = "SIGKILL, coordinator"


@pytest.mark.parametrize("what", [TELLING] if IS_SHORT else KINDS)
def test_a_group_misses_nothing(what: str, tmp_path: Path) -> None:
    with plain_cluster(tmp_path, *GROUP_OPTIONS) as cluster, GroupStory(what, cluster) as story:
        for _ in range(ROUNDS):
            story.round(KINDS[what])


@not_when_short
@pytest.mark.parametrize("side", ["etcd"] if IS_SHORT else SIDES)
def test_a_group_misses_nothing_when_its_coordinator_is_cut_off(side: str, tmp_path: Path) -> None:
    with (
        relayed_cluster(tmp_path) as cluster,
        GroupStory(f"coordinator cut from {side}", cluster, bootstrap=cluster.advertised) as story,
    ):
        fault = next(cut_from(each) for each in SIDES if each == side)
        for _ in range(ROUNDS):
            story.round(fault)
