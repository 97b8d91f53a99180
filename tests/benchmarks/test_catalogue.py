"""The catalogue names every figure of the issue once, and parts and names pick from it."""

from benchmarks.catalogue import CATALOGUE, PARTS, chosen


def test_names_are_different_and_parts_exist() -> None:
    names = [measurement.name for measurement in CATALOGUE]
    assert len(set(names)) == len(names)
    assert {measurement.part for measurement in CATALOGUE} <= set(PARTS)


def test_every_figure_has_a_measurement() -> None:
    assert {measurement.name for measurement in CATALOGUE} >= {
        *(f"produce-{name}{dirty}" for name in ("16k", "idempotent", "1m", "8") for dirty in ("", "-dirty")),
        *("java-produce-100", "java-produce-1024", "latency", "fetch", "java-consume", "arrival"),
        *("start", "memory", "synced-1", "synced-64", "synced-alone", "compaction", "idle-connections", "loop-lag"),
        *("full-partitions", "empty-partitions", "import"),
        *("cluster-produce", "cluster-latency", "kill-leader", "kill-controller", "stop-leader", "many-topics"),
        *(f"cores-{name}" for name in ("start", "stop", "idle", "fetch", "store")),
        *(f"cores-produce{size}{dirty}" for size in ("", "-1m") for dirty in ("", "-dirty")),
        *("cores-java-produce-100", "cores-java-produce-1024"),
        *("growth-partitions", "growth-connections", "growth-batches", "growth-records"),
    }


def test_nothing_asked_for_is_everything() -> None:
    assert chosen(CATALOGUE, [], []) == list(CATALOGUE)


def test_parts_and_names_pick_in_the_order_of_the_catalogue() -> None:
    assert {measurement.part for measurement in chosen(CATALOGUE, ["start"], [])} == {"start"}
    assert [measurement.name for measurement in chosen(CATALOGUE, [], ["fetch", "start"])] == ["start", "fetch"]
    assert chosen(CATALOGUE, ["start"], ["fetch"]) == []


def test_a_measurement_may_belong_to_several_parts() -> None:
    for part in ("log", "cores"):
        assert {"compaction", "compaction-100"} <= {measurement.name for measurement in chosen(CATALOGUE, [part], [])}
    assert "compaction" not in {measurement.name for measurement in chosen(CATALOGUE, ["start"], [])}
