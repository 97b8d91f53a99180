"""Operators change a cluster under load, while its processes are killed: nothing acknowledged is lost, nothing is
doubled, and what their answers promise stays true."""

from collections.abc import Callable, Sequence
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
from tests.cluster.rounds import KINDS_A_CLUSTER, ROUNDS, Fault, Story, lots, not_when_short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + 90 * ROUNDS * KINDS_A_CLUSTER)]

DELETES: Final = "DeleteRecords, then SIGKILL of a leader"
"""With a cluster of its own: where records were deleted, replicas need not have logs of the same length."""
KINDS: Final[dict[str, Callable[[Story], Fault]]] = {
    DELETES: deleted_then_killed,
    "reassignment to a broker that is down": moved_without_successor,
    "reassignments, SIGKILL of leaders": lambda _: moved_and_killed,
    "reassignment cancelled, SIGKILL of a leader": lambda _: cancelled,
    "preferred elections, SIGKILL of a leader": lambda _: preferred_elected,
    "topic created while a broker is away": lambda _: created_while_away,
    "min.insync.replicas altered, SIGKILL of a follower": minimum_altered,
}


@not_when_short
@pytest.mark.parametrize("whats", [*lots([DELETES]), *lots(what for what in KINDS if what != DELETES)])
def test_nothing_is_lost_or_doubled_and_answers_stay_true(whats: Sequence[str], tmp_path: Path) -> None:
    with plain_cluster(tmp_path) as cluster, Story(whats[0], cluster) as story:
        for what in whats:
            story.rounds(what, KINDS[what](story))
