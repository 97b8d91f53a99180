"""The bench hands out names that nobody else has, options for its brokers, and brokers of its own."""

from pathlib import Path

import pytest

from benchmarks.harness.bench import Bench, unless_refused
from benchmarks.harness.plan import Plan
from benchmarks.harness.results import Unavailable
from benchmarks.load.wire import create_topic, delete_topic
from odradek.protocol.errors import KafkaError


def test_topics_have_names_of_their_own(tmp_path: Path) -> None:
    bench = Bench(Plan(), tmp_path, [], lambda line: None)
    assert [bench.topic("a"), bench.topic("b"), bench.topic("a")] == ["a-1", "b-2", "a-3"]


def test_an_odradek_of_ones_own_has_the_settings_of_the_bench_and_further_ones(tmp_path: Path) -> None:
    with Bench(Plan(), tmp_path, ["num.partitions=3"], lambda line: None) as bench:
        assert bench.options("a=b") == ["--set", "num.partitions=3", "--set", "a=b"]
        with bench.own_odradek("mine", "--log-level", "error") as server:
            assert server.data_dir == tmp_path / "mine"
            with server.wire() as wire:
                create_topic(wire, "t", 2)
            assert sorted(path.name for path in server.data_dir.glob("t-*")) == ["t-0", "t-1"]


def test_closing_a_bench_that_has_not_started_anything_does_nothing(tmp_path: Path) -> None:
    with Bench(Plan(), tmp_path, [], lambda line: None) as bench:
        pass
    bench.close()


def test_only_a_refused_option_and_no_other_error_makes_a_figure_unavailable(tmp_path: Path) -> None:
    options = {"no.such.option": "1"}
    with (
        Bench(Plan(), tmp_path, [], lambda line: None) as bench,
        bench.own_odradek("mine") as server,
        server.wire() as wire,
    ):
        with pytest.raises(Unavailable, match=r"refuses.*no\.such\.option"), unless_refused(server, options):
            create_topic(wire, "t", configs=options)
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"), unless_refused(server, options):
            delete_topic(wire, "t")
