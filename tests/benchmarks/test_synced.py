"""Acknowledgements that come faster than the device can sync are suspicious, and loads are those of the issue."""

from benchmarks.harness.contest import Run, Runs
from benchmarks.host.device import SyncTimes
from benchmarks.synced import load_of, suspicions

DEVICE = SyncTimes((0.001, 0.002, 0.004))


def run_of(requests_per_s: float) -> Run:
    return Run(1.0, 1.0, {"requests/s": requests_per_s}, "", 0.0)


def test_nobody_syncs_faster_than_the_device_at_its_best() -> None:
    assert suspicions(Runs([run_of(999.0)], [run_of(500.0)]), DEVICE) == []
    (note,) = suspicions(Runs([run_of(10.0), run_of(1001.0)], [run_of(500.0)]), DEVICE)
    assert note.startswith("Odradek acknowledged more often")
    (note,) = suspicions(Runs([run_of(10.0)], [run_of(1001.0)]), DEVICE)
    assert note.startswith("Apache Kafka acknowledged more often")


def test_a_connection_waits_for_each_of_its_single_records() -> None:
    load = load_of("t", 64, 1, 20_000)
    assert (load.in_flight, load.records_per_batch, load.acks, load.is_shared) == (1, 1, -1, True)
    assert load.batch_count == 64 * (20_000 // 64)
    assert not load_of("t", 64, 64, 20_000).is_shared
