"""The test that is measured tells its memory, with brokers and without."""

from pathlib import Path

import pytest

from benchmarks.host.machine import parse_proportional_bytes, parse_resident_bytes
from benchmarks.testkit.programs.fixture_memory import TOPIC, test_memory
from odradek.testing import cluster

tell = test_memory
test_memory.__test__ = False  # type: ignore[attr-defined]  # it is the one that is measured, and not one of ours


def test_both_kinds_of_memory_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = tmp_path / "answer.txt"
    monkeypatch.setenv("TESTKIT_ANSWER", str(answer))
    tell("")
    told = answer.read_text()
    assert 1_000_000 < parse_proportional_bytes(told) <= parse_resident_bytes(told)


def test_with_brokers_a_record_is_sent_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTKIT_ANSWER", str(tmp_path / "answer.txt"))
    with cluster(1, topics=[TOPIC]) as kafka:
        tell(kafka.bootstrap_servers)
        assert len(kafka.records(TOPIC)) == 1
