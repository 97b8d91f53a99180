"""What the worker does, with small clusters in this process."""

import pytest

from benchmarks.testkit.programs.worker import FIRST_RECORDS, done


@pytest.mark.parametrize("client", FIRST_RECORDS)
def test_a_start_is_timed_until_the_clients_record(client: str) -> None:
    assert 0 < done(["start", "1", client]) < 10


def test_a_kill_is_timed_until_somebody_else_acknowledges() -> None:
    assert 0 < done(["kill"]) < 20


def test_a_reset_is_timed() -> None:
    assert 0 < done(["reset", "1", "2", "3"]) < 10


@pytest.mark.parametrize("words", [["restart"], ["kill", "3"], []])
def test_what_it_does_not_know_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="none of the lines"):
        done(words)
