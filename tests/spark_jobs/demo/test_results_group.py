"""A group of two reads all of a topic, also when one of them is killed; what is missing or other is named."""

import zlib
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from kafka import KafkaProducer

from odradek.spark_jobs.demo import results_group
from odradek.spark_jobs.demo.following import Place
from odradek.spark_jobs.demo.load import create_topics
from odradek.spark_jobs.demo.results_group import ResultsGroup
from odradek.spark_jobs.demo.steps import DemoFailed
from odradek.spark_jobs.demo.verify import read_records
from processes.odradek_broker import OdradekBroker, settings_words

pytestmark = pytest.mark.compat

SESSION_MS = 1000
PARTITIONS = 4


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    options = settings_words({"group.min.session.timeout.ms": "500"})
    with OdradekBroker(tmp_path_factory.mktemp("results") / "data", *options) as broker:
        create_topics(broker.bootstrap, "results", partitions=PARTITIONS)
        yield broker.bootstrap


def produce(bootstrap: str, label: str) -> Mapping[Place, int]:
    """Ten records into each partition; the checksums of all that the topic holds."""
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(10 * PARTITIONS):
            producer.send("results", f"{label} {number}".encode(), partition=number % PARTITIONS)
        producer.flush()
    return {
        (record.partition, record.offset): zlib.crc32(record.value) for record in read_records(bootstrap, "results")
    }


def test_nothing_is_missed_when_one_is_killed(bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ResultsGroup(bootstrap, "results", tmp_path, SESSION_MS) as group:
        label = 0
        while not group.is_shared:  # the first to join has read what there was
            produce(bootstrap, f"before {(label := label + 1)}")
        group.wait_until_shared()
        group.kill_one()
        expected = produce(bootstrap, "after")
        reading = group.wait_for(expected, lambda _count: None)
        assert reading.by_killed > 0
        assert reading.by_other > 0
        assert reading.again == reading.by_killed + reading.by_other - len(expected)
        monkeypatch.setattr(results_group, "READ_TIMEOUT_S", 0.0)
        with pytest.raises(DemoFailed, match=r"has not read 1 of .*: \(3, 9999\)"):
            group.wait_for({**expected, (3, 9999): 0}, lambda _count: None)
        with pytest.raises(DemoFailed, match=r"something else at partition and offset \(0, 0\)"):
            group.wait_for({**expected, (0, 0): 1}, lambda _count: None)


def test_a_member_that_ends_is_told_with_what_it_said(tmp_path: Path) -> None:
    with (
        ResultsGroup("nonsense:-1", "results", tmp_path, SESSION_MS) as group,
        pytest.raises(DemoFailed, match=r"has ended: (.|\n)*nonsense"),
    ):
        group.wait_until_shared()
