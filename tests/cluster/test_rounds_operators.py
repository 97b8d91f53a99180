"""Operators change a cluster under load, while its processes are killed: nothing acknowledged is lost, nothing is
doubled, and what their answers promise stays true."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.operator_faults import (
    cancelled,
    created_while_away,
    deleted_then_killed,
    minimum_altered,
    moved_and_killed,
    moved_without_successor,
    preferred_elected,
)
from tests.cluster.real_cluster import plain_cluster
from tests.cluster.rounds import ROUNDS, Fault, Story, not_when_short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + 90 * ROUNDS)]

KINDS: Final[dict[str, Callable[[Story], Fault]]] = {
    "DeleteRecords, then SIGKILL of a leader": deleted_then_killed,
    "reassignment to a broker that is down": moved_without_successor,
    "reassignments, SIGKILL of leaders": lambda _: moved_and_killed,
    "reassignment cancelled, SIGKILL of a leader": lambda _: cancelled,
    "preferred elections, SIGKILL of a leader": lambda _: preferred_elected,
    "topic created while a broker is away": lambda _: created_while_away,
    "min.insync.replicas altered, SIGKILL of a follower": minimum_altered,
}


@not_when_short
@pytest.mark.parametrize("what", KINDS)
def test_nothing_is_lost_or_doubled_and_answers_stay_true(what: str, tmp_path: Path) -> None:
    with plain_cluster(tmp_path) as cluster, Story(what, cluster) as story:
        fault = KINDS[what](story)
        for _ in range(ROUNDS):
            story.round(fault)
