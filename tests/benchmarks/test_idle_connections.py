"""Connections that do nothing: what is told of them, and that a real Odradek keeps the bound with some hundreds."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.harness.servers import running_odradek
from benchmarks.idle_connections import BAR, Idling, Wave, cells, greeting, idle, silent

COUNT = 400
MIB = 1 << 20


def test_a_connection_takes_its_share_of_the_larger_wave() -> None:
    idling = Idling(1024, 20 * MIB, (Wave(28 * MIB, 27 * MIB), Wave(30 * MIB, 29 * MIB)))
    assert idling.connection_kibibytes == pytest.approx(10.0)
    assert idling.again_share == pytest.approx(1.25)
    assert cells("silent", idling) == ["1,024 silent", "10.0 KiB", "8 MiB", "7 MiB", "10 MiB"]


@pytest.mark.parametrize("opened", [silent, greeting])
def test_an_idle_connection_takes_little_memory_and_the_next_ones_take_the_same(
    opened: Callable[[str, int], ExitStack], tmp_path: Path
) -> None:
    with running_odradek(tmp_path / "data") as server:
        idling = idle(server, COUNT, opened)
    assert BAR.is_met(idling.connection_kibibytes), idling
    assert idling.waves[1].with_bytes < idling.waves[0].with_bytes + COUNT * 4096, "the memory is used again"
