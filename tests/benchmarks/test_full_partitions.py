"""A few full partitions of a real Odradek: made, filled out, started with, read, and started with after SIGKILL."""

from pathlib import Path

import pytest

from benchmarks.full_partitions import TOPIC, fill, read_some, start_after_kill, start_until_all_answer
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import Plan
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.servers import running_odradek
from benchmarks.load.sparse import BATCH_BYTES


def test_partitions_are_full_when_the_broker_starts_and_what_they_hold_is_read(tmp_path: Path) -> None:
    plan = Plan(full_partitions=3, partition_bytes=20 * BATCH_BYTES)
    bench = Bench(plan, tmp_path, [], lambda line: None)
    with running_odradek(tmp_path / "data") as server:
        assert fill(bench, server) == 3 * 20 * BATCH_BYTES
        sizes = [path.stat().st_size for path in server.data_dir.glob(f"{TOPIC}-*/{0:020d}.log")]
        assert sizes == [20 * BATCH_BYTES] * 3
        times = start_until_all_answer(bench, server)
        assert 0 < times.first_answer_s <= times.all_answers_s
        read_some(bench, server)
        assert start_after_kill(bench, server) > 0
        read_some(bench, server)


def test_partitions_that_end_elsewhere_are_noticed(tmp_path: Path) -> None:
    three, four = (
        Bench(Plan(full_partitions=2, partition_bytes=count * BATCH_BYTES), tmp_path, [], lambda line: None)
        for count in (3, 4)
    )
    with running_odradek(tmp_path / "data") as server:
        fill(three, server)
        with pytest.raises(LogDiffers, match=r"partitions end at \[4\] instead of 5"):
            start_until_all_answer(four, server)
