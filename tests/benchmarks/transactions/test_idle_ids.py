"""Transactional ids that idle: a hundred take next to nothing, and the bar is the issue's."""

from pathlib import Path

from benchmarks.harness.servers import running_odradek
from benchmarks.transactions.idle_ids import BAR, idle_with


def test_a_hundred_ids_take_little(tmp_path: Path) -> None:
    with running_odradek(tmp_path / "data") as server:
        assert BAR.is_met(idle_with(server, 100))
    assert str(BAR) == "≤ 20"
