"""Every line that the measurement tells its worker is one that the worker knows."""

from benchmarks.testkit.programs.worker import done
from benchmarks.testkit.reset import BARS, line_of


def test_the_worker_knows_its_lines() -> None:
    assert len({line_of(2, *kind) for kind in BARS}) == len(BARS)
    assert done(line_of(2, 1, 1).split()) > 0
