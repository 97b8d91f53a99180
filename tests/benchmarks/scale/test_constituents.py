"""A broker of a real cluster is lost and its partitions are led by others; tables say what was measured."""

from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.contest import Run
from benchmarks.scale.batch_costs import SHAPES, batch_table
from benchmarks.scale.constituents import Loss, heartbeat_cost, lose_broker, loss_text, metadata_table, store_table
from benchmarks.scale.metadata_costs import metadata_costs
from benchmarks.scale.store_costs import StoreCost


def test_the_loss_of_a_broker_is_timed_until_others_lead(cluster: Cluster) -> None:
    loss = lose_broker(cluster, "loss", 6)
    assert (loss.partitions, loss.led) == (6, 2)
    assert 0 < loss.seconds < 60
    assert loss.controller_cpu_s >= 0


def test_a_heartbeat_costs_something(cluster: Cluster) -> None:
    assert 0 < heartbeat_cost(cluster) < 10_000


def test_tables_have_a_column_for_each_size_and_a_row_for_each_kind() -> None:
    costs = [metadata_costs(300), metadata_costs(600)]
    head, _rule, *rows = metadata_table(costs).split("\n\n")[1].splitlines()
    assert head.endswith("| 300 | 600 |") or ("300" in head and "600" in head)
    assert len(rows) == 13
    table = store_table([StoreCost("single", 10, 1.0, 0.1), StoreCost("watched", 10, 2.0, 0.1)], "etcd")
    assert "one partition each, one writer" in table
    assert "the same with 20 watches" in table
    assert "1,000 of them led" in loss_text(Loss(3000, 1000, 0.5, 0.1, 0.1), 50.0)


def test_batches_have_a_row_for_each_shape_with_the_median_of_its_runs() -> None:
    runs = [
        Run(1.0, speed, {"MB/s": speed, "s/GB": 10.0, "µs/request": 170.0}, "", 0.0) for speed in (90.0, 140.0, 1.0)
    ]
    _, _, *rows = batch_table(dict.fromkeys(SHAPES, runs)).split("\n\n")[1].splitlines()
    assert [row.split("|")[2].strip() for row in rows] == ["90"] * len(SHAPES)
    assert "1,024 KiB, 2 in flight" in rows[-1]
