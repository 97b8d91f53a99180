"""Groups that idle: a hundred take little more than nothing, and the bars are the issue's."""

from pathlib import Path

from benchmarks.groups.idle_groups import CPU_BAR, MEMORY_BAR, idle_with
from benchmarks.harness.servers import running_odradek


def test_a_hundred_groups_take_little(tmp_path: Path) -> None:
    with running_odradek(tmp_path / "data") as server:
        megabytes, percent = idle_with(server, "idle", 100, seconds=0.2)
    assert MEMORY_BAR.is_met(megabytes)
    assert percent < 50
    assert (str(MEMORY_BAR), str(CPU_BAR)) == ("≤ 20", "≤ 1")
