"""Who takes part in a chain, and under which transactional ids, without a process of any of them."""

import random
from pathlib import Path

import pytest

from processes.child_process import ChildProcess
from processes.cluster_processes import Processes
from tests.cluster.chain_rounds import chain
from tests.cluster.clients import Client
from tests.cluster.copiers import Copiers

LINKS = chain(("java", "odradek"), ("kafka-python", "librdkafka"))


def test_a_next_life_has_the_id_of_the_one_before_or_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def start(*lives: ChildProcess) -> None:
        started.extend(life.name for life in lives)

    monkeypatch.setattr(Client, "start", start)
    monkeypatch.setattr("tests.cluster.copiers.start_together", start)
    with Processes(tmp_path) as processes:
        copiers = Copiers(processes, "127.0.0.1:1", LINKS, random.Random(7))
        copiers.start()
        assert started == ["first-java.1", "first-odradek.1", "second-kafka-python.1", "second-librdkafka.1"]
        ids: list[str] = []
        for _ in range(20):
            copiers.kill("first-odradek")
            assert copiers.copier("first-odradek") is None
            copiers.come("first-odradek")
            copiers.come("first-odradek")
            ids.append(copiers.transactional_id("first-odradek"))
        assert len(started) == 24
        assert 3 < len(set(ids)) < 18
        assert ids == sorted(ids, key=lambda each: int(each.rpartition(".")[2])), "none comes back"
