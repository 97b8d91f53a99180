"""What is seen of replicas side by side: each breach is found where a mistake is put in, and nothing without it."""

from dataclasses import replace

import pytest

from odradek.broker.log.leftovers import tidy
from odradek.protocol.batches.batch import iterate_batches
from odradek.testing.sim.checking.finding import Anomaly
from odradek.testing.sim.cluster.faults import Action, Faults
from odradek.testing.sim.cluster.replica_watch import segments_on
from odradek.testing.sim.cluster.workload import ProducerAcks
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import simulate
from tests.broker.log.logs import FaultyDisk, batch, full
from tests.sim.canaries import CANARIES, sung

CLUSTER = Scenario(
    brokers=3,
    partitions=1,
    replication_factor=3,
    min_insync_replicas=2,
    is_synced=False,
    lag_ms=1_000,
    producers=(ProducerAcks(-1, is_idempotent=True), ProducerAcks(1)),
    interval_ms=50.0,
    safety_s=10.0,
    faults=0,
    keeps_to_loss_model=True,
)

FOUND = {
    "min.insync is not looked at before the append": ("below the minimum, and back", Anomaly.APPENDED_BELOW_MINIMUM),
    "the leader ignores the fetch's leader epoch": ("replicas in another order", Anomaly.OTHER_EPOCH),
    "an unclean restart keeps its in-sync place": ("back at once without its newest", Anomaly.READABLE_LOST),
}


def test_a_byte_that_differs_on_a_follower_is_found() -> None:
    def script(faults: Faults) -> list[Action]:
        def rot() -> None:
            (state,) = faults.partitions.values()
            device = faults.brokers.machine(state.replicas[-1]).device
            device.content("data/orders-0/00000000000000000000.log")[-1] ^= 1

        return [(2.0, rot)]

    violations = simulate(1, replace(CLUSTER, safety_s=4.0), script).violations
    assert [each for each in violations if Anomaly.REPLICAS_DIFFER.value in each]


@pytest.mark.only_in_sim
@pytest.mark.parametrize("canary", FOUND)
def test_it_is_found(canary: str) -> None:
    story, anomaly = FOUND[canary]
    scenario = replace(CLUSTER, stories=(story,))
    found: list[str] = []
    for seed in range(1, 6):
        assert simulate(seed, scenario).violations == []
        with sung(CANARIES[canary]):
            found += simulate(seed, scenario).violations
        if any(anomaly.value in each for each in found):
            return
    raise AssertionError(found)


def test_a_compacted_segment_with_half_of_its_place_counts_as_the_next_start_has_it() -> None:
    """However far its names have come."""
    for steps in range(100):
        disk = FaultyDisk()
        disk.make_dir("data")
        for name, offsets in {"0.log": (0, 1), "2.log": (2, 3), "4.log": (4,), "0.log.swap": (1, 3)}.items():
            data = [offset.to_bytes(8, "big") + batch()[8:] for offset in offsets]
            disk.write_new(f"data/{'0' * 19}{name}", data)
        disk.fail_at(steps, full, for_good=True)
        try:
            tidy(disk, "data")
            is_whole = True
        except OSError:
            is_whole = False
        disk.heal()
        found = {base: disk.read_whole(path) for base, path in segments_on(disk, "data").items()}
        offsets_found = {base: [header.base_offset for _, header in iterate_batches(found[base])] for base in found}
        assert offsets_found == {0: [1, 3], 4: [4]}
        if is_whole:
            assert steps > 3
            return
    raise AssertionError("it did not end")
