"""Which losses leave the model: who counts at that moment, and who has caught up since."""

from collections.abc import Sequence
from typing import Literal

import pytest

from odradek.testing.sim.checking.cluster_history import PartitionStored
from odradek.testing.sim.checking.history import FaultKind, Happened
from odradek.testing.sim.checking.loss_model import broker_id_of, is_survivable, losses_ms, wounds_of

Isr = tuple[int, ...]
Stored = tuple[Literal["stored"], Isr] | tuple[Literal["stored"], Isr, Isr]
Step = tuple[Literal["wound"], int] | Stored


def losses(*steps: Step, min_insync_replicas: int = 2, replicas: Isr = (1, 2, 3)) -> list[int]:
    """At which of the steps the model was left."""
    wounds: list[tuple[float, int]] = []
    states: list[PartitionStored] = []
    for at_ms, step in enumerate(steps):
        if step[0] == "wound":
            wounds.append((float(at_ms), step[1]))
        else:
            elr = step[2] if len(step) == 3 else ()
            states.append(PartitionStored(float(at_ms), "t", 0, replicas, step[1], step[1][0], 1, at_ms, elr))
    return [int(at_ms) for at_ms in losses_ms(wounds, states, min_insync_replicas)]


ALL: Stored = ("stored", (1, 2, 3))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([ALL, ("wound", 1)], []),
        ([ALL, ("wound", 1), ("wound", 2)], [2]),
        ([ALL, ("wound", 1), ("wound", 2), ("wound", 3)], [2, 3]),
        ([ALL, ("wound", 1), ("wound", 1)], []),
        ([ALL, ("wound", 1), ("stored", (2, 3)), ("wound", 2)], [3]),
        ([ALL, ("wound", 1), ("stored", (2, 3)), ALL, ("wound", 2)], []),
        ([ALL, ("wound", 1), ALL, ("wound", 2)], [3]),
        ([("stored", (1, 2)), ("wound", 3), ("wound", 1)], []),
        ([("stored", (1,), (2,)), ("wound", 2), ("wound", 1)], [2]),
        ([ALL, ("wound", 1), ("stored", (2, 3), (1,)), ALL, ("wound", 2)], [4]),
    ],
    ids=[
        "one",
        "two",
        "three",
        "the same one twice",
        "the second before the first is back",
        "the second after the first is back",
        "a set that merely still names the first",
        "one that was not in sync",
        "an eligible one counts",
        "an eligible one has not left",
    ],
)
def test_two_losses_without_a_return_between_them_leave_the_model(steps: Sequence[Step], expected: list[int]) -> None:
    assert losses(*steps) == expected


def test_one_loss_is_enough_where_one_replica_may_acknowledge() -> None:
    assert losses(ALL, ("wound", 1), min_insync_replicas=1) == [1]
    assert losses(("stored", (1,)), ("wound", 1), replicas=(1,)) == [1]


def test_without_metadata_every_loss_counts_and_none_is_made_good() -> None:
    assert losses(("wound", 1)) == [0]
    assert losses(("wound", 1), ("wound", 2)) == [1]


def test_a_machine_without_a_broker_loses_nothing() -> None:
    assert broker_id_of("broker-12", {}) == 12
    assert broker_id_of("etcd", {}) is None
    assert broker_id_of("north", {"north": 1}) == 1
    assert broker_id_of("client-2", {"north": 1}) is None


def test_what_was_synced_survives_a_power_failure_and_no_lost_disk() -> None:
    kinds: list[FaultKind] = ["power failure", "disk lost", "process crash", "pause"]
    happened = [Happened(float(index), kind, "broker-1") for index, kind in enumerate(kinds)]
    assert wounds_of(happened, {}, is_synced=False) == [(0.0, 1), (1.0, 1)]
    assert wounds_of(happened, {}, is_synced=True) == [(1.0, 1)]
    assert wounds_of([Happened(0.0, "disk lost", "client")], {}, is_synced=True) == []


@pytest.mark.parametrize(
    ("kind", "is_synced", "expected"),
    [
        ("power failure", False, False),
        ("power failure", True, True),
        ("disk lost", True, False),
        ("directory fails", True, False),
    ],
)
def test_a_second_wound_is_refused_to_who_wants_to_stay_within(
    kind: FaultKind, is_synced: bool, expected: bool
) -> None:
    state = PartitionStored(0.0, "t", 0, (1, 2, 3), (1, 2, 3), 1, 1, 0)
    first, second = Happened(1.0, "disk lost", "b1"), Happened(2.0, kind, "b2")
    ids = {"b1": 1, "b2": 2}
    assert is_survivable([], first, [state], 2, ids, is_synced=is_synced)
    assert is_survivable([first], second, [state], 2, ids, is_synced=is_synced) is expected


def test_a_lowered_min_insync_counts_until_two_are_in_sync_after_it_is_raised() -> None:
    def state(at_ms: float, *isr: int) -> PartitionStored:
        return PartitionStored(at_ms, "t", 0, (1, 2, 3), isr, isr[0], 1, int(at_ms))

    states = [state(0.0, 1, 2, 3), state(3.0, 1), state(6.0, 1, 2)]
    for at_ms, changes, is_outside in (
        (1.0, [], False),
        (2.5, [(2.0, 1)], True),
        (4.5, [(2.0, 1), (4.0, 2)], True),
        (6.5, [(2.0, 1), (4.0, 2)], False),
        (6.5, [(2.0, 1)], True),
    ):
        assert bool(losses_ms([(at_ms, 1)], states, 2, changes)) is is_outside, (at_ms, changes)


def test_a_replica_that_is_none_any_more_loses_nothing() -> None:
    def state(at_ms: float, *replicas: int) -> PartitionStored:
        return PartitionStored(at_ms, "t", 0, replicas, replicas, replicas[0], 1, int(at_ms))

    states = [state(0.0, 1, 2, 3), state(2.0, 2, 3)]
    assert losses_ms([(3.0, 1), (4.0, 2)], states, 2) == []
    assert losses_ms([(1.0, 1), (4.0, 2)], states, 2) == [4.0]
    assert losses_ms([(3.0, 2)], [state(0.0, 1, 2, 3), state(2.0, 2)], 2) == [3.0], "one replica is not two"


def test_a_broker_that_is_unregistered_is_a_wound() -> None:
    happened = [Happened(1.0, "unregistered", "broker-1")]
    assert wounds_of(happened, {}, is_synced=True) == [(1.0, 1)]


@pytest.mark.parametrize(
    ("before", "is_wound"),
    [
        (["clean stop", "exit"], False),
        (["exit"], True),
        (["clean stop"], True),
        (["clean stop", "process crash", "exit"], True),
        (["clean stop", "exit", "start"], True),
        (["directory fails", "clean stop", "exit"], True),
        (["disk fault", "clean stop", "exit"], True),
    ],
)
def test_who_ended_cleanly_loses_nothing_with_the_power(before: list[FaultKind], is_wound: bool) -> None:
    happened = [Happened(float(index), kind, "broker-1") for index, kind in enumerate(before)]
    happened.append(Happened(9.0, "power failure", "broker-1"))
    assert ((9.0, 1) in wounds_of(happened, {}, is_synced=False)) is is_wound
