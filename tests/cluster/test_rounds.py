"""What is looked at in the end, besides the history: a broker's own errors, and its logs whatever their segments."""

import re
from pathlib import Path

import pytest

from tests.cluster.rounds import batched, check_logs, log_of


def test_an_error_of_a_brokers_own_is_found_and_shown(tmp_path: Path) -> None:
    (tmp_path / "broker-1.log").write_text(
        "WARNING odradek.broker.membership.registration: the metadata store does not answer\n"
    )
    (tmp_path / "kafka-python.log").write_text("Traceback (most recent call last):\n  a client's\n")
    check_logs(tmp_path)
    (tmp_path / "broker-2.log").write_text("before\nTraceback (most recent call last):\n  line 1\nKeyError: 7\n")
    with pytest.raises(AssertionError, match=r"broker-2\.log") as caught:
        check_logs(tmp_path)
    assert "KeyError: 7" in str(caught.value)


def test_an_error_that_was_meant_hides_no_other(tmp_path: Path) -> None:
    meant = re.compile(r"broker \d was killed")
    log = tmp_path / "brokers.log"
    log.write_text("ERROR   supervisor: broker 2 was killed by SIGKILL\nINFO    broker: registered\n")
    check_logs(tmp_path, meant)
    with pytest.raises(AssertionError, match="broker 2 was killed"):
        check_logs(tmp_path)
    log.write_text(log.read_text() + "ERROR   broker: the log is damaged\n")
    with pytest.raises(AssertionError, match="the log is damaged"):
        check_logs(tmp_path, meant)


def test_a_log_is_the_same_in_other_segments(tmp_path: Path) -> None:
    for name, parts in {"one": [b"abcdef"], "other": [b"ab", b"cd", b"ef"]}.items():
        (tmp_path / name).mkdir()
        for index, part in enumerate(parts):
            (tmp_path / name / f"{2 * index:020d}.log").write_bytes(part)
            (tmp_path / name / f"{2 * index:020d}.index").write_bytes(b"-")
    assert log_of(tmp_path / "one") == log_of(tmp_path / "other") == b"abcdef"


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (5, [5]), (6, [3, 3]), (7, [4, 3]), (14, [5, 5, 4]), (20, [5, 5, 5, 5])]
)
def test_kinds_are_divided_evenly_and_each_is_there_once(count: int, sizes: list[int]) -> None:
    kinds = [f"kind {number}" for number in range(count)]
    found = list(batched(kinds, 5))
    assert [len(each) for each in found] == sizes
    assert [kind for each in found for kind in each] == kinds
