"""A right that was taken away is gone at every broker, whatever happens to brokers, lines and the store meanwhile; and
mistakes that are put in on purpose are found."""

import pytest

from odradek.broker.access.access import Asker
from odradek.broker.access.ruled_access import RuledAccess
from odradek.broker.cluster.image import ClusterImage
from odradek.broker.controller.applied_revisions import AppliedRevisions, Behind
from tests.sim.revocation import BROKER_COUNT, Fault, Log, play

LATE = [Fault(8.0, "late", broker_id, 20.0) for broker_id in range(1, BROKER_COUNT + 1)]
"""The store tells the brokers of changes with a delay, which their leases do not notice."""
ALONE = [Fault(10.0 + 10.0 * number, "alone", number + 1, 9.0) for number in range(2)]
"""One after the other is cut off from the store and the others, and not from the clients."""


def seen(log: Log) -> str:
    return (
        f"{len(log.revoked_ms)} revocations, {len(log.granted)} granted, {log.refused_count} refused, "
        f"{log.turned_away_count} turned away, {log.failed_changes} changes failed"
    )


def waits_for_nobody(applied: AppliedRevisions, revision: int, image: ClusterImage, *, may_be_others: bool) -> Behind:
    return Behind((), 0.0)


def always(access: RuledAccess, asker: Asker) -> bool:
    return True


@pytest.mark.parametrize("seed", [1, 2])
def test_whoever_was_revoked_is_answered_nothing_after_the_revocation(seed: int) -> None:
    log = play(seed, 32.0, 9)
    assert log.violations() == [], f"seed {seed}: {seen(log)}"
    assert len(log.revoked_ms) >= 5, seen(log)
    assert log.granted, seen(log)
    assert log.refused_count, seen(log)


def test_without_faults_nobody_is_turned_away() -> None:
    log = play(1, 15.0, faults=0)
    assert log.violations() == []
    assert (log.turned_away_count, log.failed_changes) == (0, 0), seen(log)
    assert len(log.revoked_ms) > 10, seen(log)


def test_what_the_store_tells_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log = play(1, 20.0, 0, LATE)
    assert log.violations() == []
    assert len(log.revoked_ms) > 2, seen(log)
    monkeypatch.setattr(AppliedRevisions, "behind", waits_for_nobody)
    assert play(1, 20.0, 0, LATE).violations(), "a controller that waits for nobody is found"


def test_a_broker_that_is_cut_off_answers_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    log = play(1, 30.0, 0, ALONE)
    assert log.violations() == []
    assert log.turned_away_count, seen(log)
    monkeypatch.setattr(RuledAccess, "is_certain", always)
    assert play(1, 30.0, 0, ALONE).violations(), "a broker that is always certain is found"
