"""A start is timed until all groups are answered, and what they are answered has to be what was committed."""

from pathlib import Path

import pytest

from benchmarks.groups.offsets_loading import commit_all, prepare, start_until_loaded
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.servers import running_odradek


def test_offsets_are_there_after_a_start(tmp_path: Path) -> None:
    with running_odradek(tmp_path / "data") as server:
        prepare(server, "loaded")
        commit_all(server, "loaded", {"a": 3, "b": 4})
        assert 0 < start_until_loaded(server, "loaded", {"a": 3, "b": 4}) < 30
        with pytest.raises(LogDiffers, match="b has"):
            start_until_loaded(server, "loaded", {"a": 3, "b": 5})
